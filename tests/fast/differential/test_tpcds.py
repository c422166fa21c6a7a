"""Queries in the manner of TPC-DS: how many are maintained, and that each stays equal through random histories."""

from __future__ import annotations

import datetime
import os
import re
from decimal import Decimal
from random import Random

import pytest
from kit import tpcds
from kit.case import Case, Row, Table, Weighted, Window
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.schema import Column

EXECUTOR = DuckExecutor()
SEEDS, WINDOWS = (range(20), 4) if os.environ.get("HEADRACE_TEST_LONG") else (range(1), 2)
WORDS = sorted({word for query in tpcds.QUERIES.values() for word in re.findall(r"'([^']*)'", query)})

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


@pytest.mark.parametrize("name", tpcds.QUERIES)
def test_a_query_is_maintained_and_stays_equal(name: str) -> None:
    query = tpcds.QUERIES[name].replace(*CASTS.get(name, ("", "")))
    read = [table for table in tpcds.COLUMNS if re.search(rf"\b{table}\b", query)]
    moved = False
    for seed in SEEDS:
        random = Random(f"{name} {seed}")
        tables = tuple(_table(query, table, random) for table in read)
        view = Maintained(EXECUTOR, Case(query, tables))
        assert view.view.refusals == ()
        contents = {table.name: list(table.rows) for table in tables}
        for number in range(20):
            moved |= bool(view.step(_window(query, tables, contents, random)))
            if moved and number + 1 >= WINDOWS:
                break
    assert moved, "a result that never changes proves nothing"


def _table(query: str, name: str, random: Random) -> Table:
    columns = tpcds.COLUMNS[name]
    return Table(name, columns, tuple(_row(query, columns, random) for _ in range(30)))


def _row(query: str, columns: tuple[Column, ...], random: Random) -> Row:
    return tuple(_value(query, column, random) for column in columns)


def _value(query: str, column: Column, random: Random) -> object:
    """Keys meet, and what a query compares with is often there."""
    if random.random() < 0.03:
        return None
    if column.type == "date":
        return datetime.date(2000, 6, 1) + datetime.timedelta(days=random.randrange(4))
    if column.type == "string":
        own = re.findall(r"'([^']*)'", query)
        return random.choice([*own, *own, random.choice(WORDS)])
    if column.type != "int":
        return Decimal(random.randrange(100, 2000)) / 100
    if column.name.endswith("_sk"):
        return random.randrange(1, 7)
    if column.name.endswith("_number"):
        return random.randrange(1, 21)
    compared = re.findall(rf"\b{column.name} = (\d+)", query)
    return int(random.choice([*compared, *compared, str(random.randrange(1, 9))]))


def _window(query: str, tables: tuple[Table, ...], contents: dict[str, list[Row]], random: Random) -> Window:
    window: dict[str, tuple[Weighted, ...]] = {}
    for table in random.sample(tables, random.randrange(1, len(tables) + 1)):
        present = contents[table.name]
        gone = random.sample(present, min(len(present), random.randrange(6)))
        come = [_row(query, table.columns, random) for _ in range(random.randrange(1, 7))]
        contents[table.name] = [row for row in present if row not in gone] + come
        copies = [row for row in present if row in gone]
        window[table.name] = (*((-1, row) for row in copies), *((1, row) for row in come))
    return window
