"""Queries of unreasonable size: read in bounded time, or refused in plain words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fast.sql.reading_cases import resolve, schema

from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.compiler.derive import delta_program, full_program
from headrace.errors import Unsupported
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.optimizer import Optimizer
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.reader import Reading, read
from headrace.sql.references import references


def reading(query: str) -> Reading:
    return read(query, resolve=resolve, schema=schema)


def chain(kind: str, tables: int) -> str:
    joins = (f"{kind} t AS t{i} ON t{i}.a = t{i - 1}.a" for i in range(1, tables))
    return f"SELECT t0.a FROM t AS t0 {' '.join(joins)}"


def ctes(number: int, body: str) -> str:
    names = ["t", *(f"c{i}" for i in range(number))]
    defined = (f"{new} AS ({body.format(old)})" for old, new in pairwise(names))
    return f"WITH {', '.join(defined)} SELECT a FROM {names[-1]}"


READ = {
    "joins": chain("JOIN", 60),
    "outer joins": chain("FULL JOIN", 60),
    "unions": " UNION ALL ".join(f"SELECT a, {i} AS b FROM t" for i in range(600)),
    "values": f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(20_000)))})",
    "conditions": f"SELECT a FROM t WHERE {' OR '.join(f'a = {i} AND b <> {i}' for i in range(3_000))}",
    "brackets": f"SELECT {'(' * 150}a{')' * 150} AS x FROM t",
    "nested": f"SELECT a FROM {'(SELECT a FROM ' * 50}t{')' * 50}",
    "comment": f"SELECT a /* {'x' * 2_000_000} */ FROM t",
}


@pytest.mark.parametrize("name", READ)
def test_what_is_long_is_read(name: str) -> None:
    found = reading(READ[name])
    assert found.refusals == ()
    assert found.tree is not None


def test_many_sums_are_followed() -> None:
    found = reading(f"SELECT a, {', '.join(f'sum(b + {i}) AS s{i}' for i in range(1_000))} FROM t GROUP BY a")
    assert found.tree is not None
    assert full_program(found.tree, AuxiliaryViews(), {}).companion is not None


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_a_join_of_many_tables_is_followed(kind: str) -> None:
    found = reading(chain(kind, 40))
    assert found.tree is not None
    changed, views = frozenset(found.sources), AuxiliaryViews()
    tree = with_types(found.tree, lambda node: tuple(Column(name, "int") for name in node.columns))
    program = delta_program(
        tree, views, changed, frozenset(), Optimizer(), sizes={}, companion_rows=0, whole=False, ansi=True, types={}
    )
    assert program is not None
    # each input's change is read before and after it by every join above: more would be an expanded tree
    assert sum(1 for step in program.steps for _ in walk(step.relation)) < 15 * 40**2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (ctes(12, "SELECT x.a FROM {0} AS x JOIN {0} AS y ON x.a = y.a"), "more than 2000 operators"),
        (ctes(90, "SELECT DISTINCT a + 1 AS a FROM {0}"), "one above the other"),
        (ctes(900, "SELECT a FROM {0}"), "nested too deep"),
        (" UNION ALL ".join(f"SELECT a, {i} AS b FROM t" for i in range(3_000)), "set operations"),
        (" EXCEPT ALL ".join(f"SELECT a, {i} AS b FROM t" for i in range(250)), "one above the other"),
        (chain("FULL JOIN", 99), "could only be followed by more than 16000 operators"),
        (chain("LEFT JOIN", 99), "could only be followed by more than 16000 operators"),
    ],
    ids=("doubled", "stacked", "chained", "many", "subtracted", "full joins", "left joins"),
)
def test_what_is_too_large_is_refused_and_refreshed_full(query: str, message: str) -> None:
    found = reading(query)
    assert found.tree is None
    assert [refusal.construct for refusal in found.refusals] == ["size of the query"]
    assert message in found.refusals[0].message
    assert found.refusals[0].hint or "nested" in message or "set operations" in message
    assert found.refusals[0].place is not None
    assert {name.table for name in found.sources} == {"t"}


@pytest.mark.parametrize(
    "query",
    [f"SELECT {'(' * 5_000}a{')' * 5_000} AS x FROM t", f"SELECT a FROM {'(SELECT a FROM ' * 2_000}t{')' * 2_000}"],
    ids=("brackets", "queries"),
)
def test_what_is_too_deep_cannot_be_read(query: str) -> None:
    for look in (reading, references):
        with pytest.raises(Unsupported, match="nested too deep") as caught:
            look(query)
        assert caught.value.code == "QUERY_TOO_DEEP"
        assert caught.value.place is not None
        assert caught.value.hint


def test_a_table_written_into_the_query_is_refused_where_it_is_too_long() -> None:
    rows = ",\n".join(f"({i})" for i in range(40_000))
    with pytest.raises(Unsupported, match="more than 20000 rows") as caught:
        reading(f"SELECT x FROM VALUES\n{rows} AS v(x)")
    assert caught.value.code == "QUERY_TOO_LARGE"
    assert caught.value.place is not None
    assert caught.value.place.line == 20_002
    assert reading(f"SELECT x FROM VALUES {', '.join(f'({i})' for i in range(5_000))} AS v(x)").tree is not None


def test_common_table_expressions_that_double_each_other_are_refused_before_spark_puts_them_in_place() -> None:
    doubled = ctes(20, "SELECT x.a FROM {0} AS x\nJOIN {0} AS y ON x.a = y.a")
    with pytest.raises(Unsupported, match="more than 10000 times") as caught:
        references(doubled)
    assert caught.value.code == "QUERY_TOO_LARGE"
    assert caught.value.place is not None
    assert len(references(ctes(10, "SELECT x.a FROM {0} AS x JOIN {0} AS y ON x.a = y.a"))) == 2
