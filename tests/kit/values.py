"""Random schemas and rows.

Values come from small pools, so that keys meet, rows repeat and groups vanish; doubles are exactly representable, so
that the order of an addition does not show.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

from hypothesis import strategies as st

from headrace.algebra.schema import Column
from kit.case import Row, Table

POOLS: dict[str, list[object]] = {
    "int": [0, 1, 2, 3, -1],
    "bigint": [0, 1, 2, 5_000_000_000],
    "decimal(8,2)": [Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("99.99"), Decimal("0.01")],
    "string": ["", "a", "b", "B", "it's"],
    "boolean": [True, False],
    "date": [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1), datetime.date(1969, 12, 31)],
    "double": [0.0, 0.5, -1.25, 4.0],
}
"""Values of each type; NULL is added to all."""

MOMENTS: dict[str, list[object]] = {
    "timestamp_ntz": [
        f"2024-{day} {hour}:30:00" for day in ("03-29", "03-30", "03-31", "04-02") for hour in ("04", "19")
    ]
}
"""Times around those at which moving filters look; tables of random types have none."""

TABLES = ("r", "s", "u")


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, ...]:
    """One to three tables of two to four columns, without keys, with NULLs and repeated rows."""
    names = TABLES[: draw(st.integers(1, 3))]
    return tuple(draw(_table(name)) for name in names)


@st.composite
def _table(draw: st.DrawFn, name: str) -> Table:
    # an integer first, so that there is always something to join and to add up
    types = ["int", *draw(st.lists(st.sampled_from(list(POOLS)), min_size=1, max_size=3))]
    columns = tuple(Column(f"{'abcd'[i]}", type_) for i, type_ in enumerate(types))
    return Table(name, columns, tuple(draw(st.lists(rows(columns), max_size=5))))


def rows(columns: tuple[Column, ...]) -> st.SearchStrategy[Row]:
    """Rows of a table."""
    return st.tuples(*(values(column.type) for column in columns))


def values(type_: str) -> st.SearchStrategy[object]:
    """Values of a type."""
    return st.sampled_from([*(POOLS | MOMENTS)[type_], None])
