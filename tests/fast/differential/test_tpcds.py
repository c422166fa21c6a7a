"""Queries in the manner of TPC-DS: how many are maintained, and that each stays equal through random histories."""

from __future__ import annotations

import re
from random import Random

import pytest
from kit import tpcds, tpcds_rows
from kit.case import Case, Row, Table, Weighted, Window
from kit.duck import DuckExecutor
from kit.long_tests import LONG, one_in
from kit.maintained import Maintained, table_name

from headrace.algebra.schema import Column
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler

EXECUTOR = DuckExecutor()
SEEDS, WINDOWS = (range(20), 4) if LONG else (range(1), 2)

# averages of decimals and quotients are doubles in DuckDB
CASTS = {
    "q1": ("avg(total) * 1.2", "CAST(avg(total) * 1.2 AS DECIMAL(18,4))"),
    "q6": ("avg(j.i_current_price)", "CAST(avg(j.i_current_price) AS DECIMAL(18,4))"),
    "q12": (
        "sum(ws_ext_sales_price) * 100 / sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class)",
        "sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class)",
    ),
    "q92": ("1.3 * avg(ws_ext_discount_amt)", "CAST(1.3 * avg(ws_ext_discount_amt) AS DECIMAL(18,4))"),
}


def test_how_many_are_maintained() -> None:
    """None of those that are maintained may be lost unnoticed."""
    refused = {name for name, query in tpcds.QUERIES.items() if _compiled(query).refusals}
    assert refused == tpcds.REFUSED
    assert len(tpcds.QUERIES) - len(refused) >= 47


def _compiled(query: str) -> CompiledView:
    for table, columns in tpcds.COLUMNS.items():
        EXECUTOR.define(table, columns, ())

    def describe(sql: str) -> tuple[Column, ...]:
        for table in tpcds.COLUMNS:
            sql = sql.replace(table_name(table).sql, table)
        return EXECUTOR.describe(sql)

    return ViewCompiler(
        resolve=lambda parts: table_name(parts[-1]),
        schema=lambda name: tpcds.COLUMNS[name.table],
        describe=describe,
        refine=True,
        in_order=True,
    ).compile(query)


# the other half is played by test_source_subsets
@pytest.mark.parametrize("name", one_in(2, sorted(tpcds.QUERIES.keys() - tpcds.UNMOVED), 1))
def test_a_query_is_maintained_and_stays_equal(name: str) -> None:
    query = tpcds.QUERIES[name].replace(*CASTS.get(name, ("", "")))
    read = [table for table in tpcds.COLUMNS if re.search(rf"\b{table}\b", query)]
    moved = False
    for seed in SEEDS:
        random = Random(f"{name} {seed}")
        tables = tuple(tpcds_rows.table(table, query, random) for table in read)
        view = Maintained(EXECUTOR, Case(query, tables))
        assert view.view.refusals == ()
        contents = {table.name: list(table.rows) for table in tables}
        for number in range(20):
            moved |= bool(view.step(_window(query, tables, contents, random)))
            if moved and number + 1 >= WINDOWS:
                break
    assert moved, "a result that never changes proves nothing"


def _window(query: str, tables: tuple[Table, ...], contents: dict[str, list[Row]], random: Random) -> Window:
    window: dict[str, tuple[Weighted, ...]] = {}
    for table in random.sample(tables, random.randrange(1, len(tables) + 1)):
        present = contents[table.name]
        gone = random.sample(present, min(len(present), random.randrange(6)))
        come = [tpcds_rows.row(query, table.columns, random) for _ in range(random.randrange(1, 7))]
        contents[table.name] = [row for row in present if row not in gone] + come
        copies = [row for row in present if row in gone]
        window[table.name] = (*((-1, row) for row in copies), *((1, row) for row in come))
    return window
