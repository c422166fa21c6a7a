"""A case: tables, a query over them, and a history of their contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.algebra.schema import Column

Row = tuple[object, ...]
Weighted = tuple[int, Row]
"""A weight and a row."""

Window = Mapping[str, tuple[Weighted, ...]]
"""What happened to each table between two refreshes, in order; rows may come and go within it."""


@dataclass(frozen=True)
class Table:
    """A source table.

    Args:
        name: Its name within the test namespace.
        columns: Its columns.
        rows: Its rows before the first window.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Case:
    """A query and a history.

    Args:
        query: Spark SQL over the tables' bare names.
        tables: The sources.
        windows: What happens, refresh by refresh.
    """

    query: str
    tables: tuple[Table, ...]
    windows: tuple[Window, ...] = field(default=())

    def script(self) -> str:
        """A Python program that replays the case."""
        tables = ",\n        ".join(_table(table) for table in self.tables)
        windows = ",\n        ".join(repr(dict(window)) for window in self.windows)
        return _SCRIPT.format(query=self.query, tables=tables, windows=windows + ("," if windows else ""))


_SCRIPT = '''\
# run with PYTHONPATH=src:tests
import datetime
from decimal import Decimal
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import replay
from headrace.algebra.schema import Column

replay(DuckExecutor(), Case(
    query="""{query}""",
    tables=(
        {tables},
    ),
    windows=(
        {windows}
    ),
), verbose=True)
'''


def _table(table: Table) -> str:
    columns = ", ".join(f"Column({c.name!r}, {c.type!r})" for c in table.columns)
    return f"Table({table.name!r}, ({columns},), {table.rows!r})"


def bag(rows: list[Row]) -> Counter[Row]:
    """Rows as a multiset; NaN equals itself."""
    return Counter(tuple(map(_equal, row)) for row in rows)


def _equal(value: object) -> object:
    """A value that equals itself, as NaN does not, and that can be counted, as a struct or an array cannot."""
    if isinstance(value, list):
        return tuple(map(_equal, value))
    if isinstance(value, dict):
        return tuple((name, _equal(field)) for name, field in value.items())
    return "NaN" if value != value else value
