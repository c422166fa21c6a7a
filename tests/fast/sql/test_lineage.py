"""Where the columns of a query come from: by a table of queries, and against what random queries do on DuckDB."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import duckdb
import pytest
from fast.sql.reading_cases import cases, resolve, schema
from hypothesis import HealthCheck, assume, given, note, settings
from kit.case import Case, Row, Table
from kit.duck import DuckExecutor
from kit.long_tests import LONG
from kit.queries import cases as random_cases

from headrace.algebra.lineage import Influence, Lineage, Origins, followed, lineage_of
from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.reader.context import ViewText
from headrace.sql.reader.reader import Reading, read

EXECUTOR = DuckExecutor()


def reading(query: str) -> Reading:
    return read(query, resolve=resolve, schema=schema, origins_only=True)


def lineage(query: str) -> Lineage:
    tree = reading(query).tree
    assert tree is not None
    return lineage_of(tree)


def shown(found: Lineage) -> str:
    lines = [f"{name} <- {written(origins)}" for name, origins in found.columns.items()]
    return "\n".join([*lines, f"rows: {written(found.rows)}"]).replace(" \n", "\n").rstrip()


def written(origins: Origins) -> str:
    return ", ".join(f"{each.table.table}.{each.column} {each.influence}" for each in sorted(origins))


@pytest.mark.parametrize(("query", "expected"), cases("lineage.spec"))
def test_where_columns_come_from(query: str, expected: str) -> None:
    assert shown(lineage(query)) == expected


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT a FROM t UNION BY NAME SELECT a FROM t", "UNION BY NAME"),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT a, unheard_of(b) AS x, rand() AS r FROM t", "unheard_of()"),
        ("SELECT a, rand() AS r FROM t ORDER BY a + 1 LIMIT 1 + 1", "LIMIT"),
    ],
)
def test_what_is_not_understood_has_no_lineage(query: str, construct: str) -> None:
    found = reading(query)
    assert found.tree is None
    assert construct in [refusal.construct for refusal in found.refusals]


def test_what_only_tells_origins_is_still_refused_otherwise() -> None:
    for query in ("SELECT rand() AS r FROM t", "SELECT b, collect_list(a) AS x FROM t GROUP BY b"):
        assert reading(query).tree is not None
        assert read(query, resolve=resolve, schema=schema).tree is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("IDENTITY", "IDENTITY", "IDENTITY"),
        ("TRANSFORMATION", "IDENTITY", "TRANSFORMATION"),
        ("AGGREGATION", "TRANSFORMATION", "AGGREGATION"),
        ("TRANSFORMATION", "AGGREGATION", "AGGREGATION"),
        ("CONDITIONAL", "AGGREGATION", "CONDITIONAL"),
        ("IDENTITY", "FILTER", "FILTER"),
        ("WINDOW", "JOIN", "JOIN"),
    ],
)
def test_one_influence_after_another(first: str, second: str, expected: str) -> None:
    assert Influence(first).then(Influence(second)) is Influence(expected)


# ---- across stream tables


def test_stream_tables_are_followed_to_base_tables() -> None:
    defined = {
        "big": lineage("SELECT id, amount * 2 AS twice, region FROM orders WHERE customer > 1"),
        "sums": _over(
            "SELECT region, sum(twice) AS total FROM big WHERE id > 3 GROUP BY region", "big", "id twice region"
        ),
    }
    found = followed(_name("sums"), {_name(name): each for name, each in defined.items()})
    assert shown(found).splitlines() == [
        "region <- orders.region IDENTITY",
        "total <- orders.amount AGGREGATION",
        "rows: orders.customer FILTER, orders.id FILTER, orders.region GROUP_BY",
    ]
    alone = followed(_name("sums"), {_name("sums"): defined["sums"]})  # that of `big` is not known
    assert shown(alone).splitlines()[1] == "total <- big.twice AGGREGATION"


def test_cycles_of_stream_tables_end() -> None:
    one = _over("SELECT x, y FROM two UNION ALL SELECT x + 1, y FROM two", "two", "x y")
    two = _over("SELECT y AS x, x AS y FROM one WHERE x < 9", "one", "x y")
    base = lineage("SELECT a AS x, b AS y FROM t")
    joined = Lineage({n: two.columns[n] | base.columns[n] for n in ("x", "y")}, two.rows | base.rows)
    found = followed(_name("one"), {_name("one"): one, _name("two"): joined})
    for name in ("x", "y"):
        assert {(each.table.table, each.column) for each in found.columns[name]} == {("t", "a"), ("t", "b")}
    assert {(each.column, each.influence.value) for each in found.rows} == {("a", "FILTER"), ("b", "FILTER")}


def _name(name: str) -> TableName:
    return TableName(LAKE, ("shop",), name)


def _over(query: str, name: str, columns: str) -> Lineage:
    def named(_: TableName) -> tuple[Column, ...] | ViewText:
        return tuple(Column(each, "int") for each in columns.split())

    tree = read(query, resolve=resolve, schema=named).tree
    assert tree is not None
    return lineage_of(tree)


# ---- against what queries do


@settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=False, max_examples=25 if LONG else 12)
@given(random_cases(depth=2, windows=1))
def test_what_is_no_origin_changes_nothing(case: Case) -> None:
    """Values of a column that is no origin can be exchanged, and a result's column stays what it was."""
    tree = read(case.query, resolve=lambda parts: _name(parts[-1]), schema=_schema_of(case), origins_only=True).tree
    assume(tree is not None)
    assert tree is not None
    found = lineage_of(tree)
    try:
        before = _columns(case)
    except duckdb.Error:  # what only Spark understands
        assume(False)
    for table in case.tables:
        for i, column in enumerate(table.columns):
            changed = _exchanged(case, table, i)
            try:
                after = _columns(changed)
            except duckdb.Error:  # it divides by the new values, say
                continue
            for name, was, now in zip(found.columns, before, after, strict=True):
                origins = found.columns[name] | found.rows
                if not any((each.table.table, each.column) == (table.name, column.name) for each in origins):
                    note(f"{table.name}.{column.name} changes {name}")
                    note(changed.script())
                    assert was == now


def _schema_of(case: Case):  # type: ignore[no-untyped-def]
    columns = {table.name: table.columns for table in case.tables}
    return lambda name: columns[name.table]


def _columns(case: Case) -> list[Counter[object]]:
    for table in case.tables:
        EXECUTOR.define(table.name, table.columns, table.rows)
    rows = EXECUTOR.rows(case.query)
    width = len(EXECUTOR.describe(case.query))
    return [Counter(repr(row[i]) for row in rows) for i in range(width)]


def _exchanged(case: Case, table: Table, at: int) -> Case:
    rows = tuple(_with(row, at, _other(row[at], i)) for i, row in enumerate(table.rows))
    return replace(case, tables=tuple(replace(t, rows=rows) if t is table else t for t in case.tables))


def _with(row: Row, at: int, value: object) -> Row:
    return (*row[:at], value, *row[at + 1 :])


def _other(value: object, number: int) -> object:
    match value:
        case bool():
            return not value
        case int() | float() | Decimal():
            return value + type(value)(7 + number)  # type: ignore[operator]
        case dt.date():
            return value + dt.timedelta(days=7 + number)
        case str():
            return f"{value}{number}"
    return value
