"""Columns and their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from headrace.algebra.types import cast_sql
from headrace.names import quote

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation.

    Args:
        name: Its name, in the case it was declared with.
        type: Spark DDL type in lower case, such as `decimal(12,2)` or `array<struct<a:int>>`.
        nullable: Whether it may be NULL.
    """

    name: str
    type: str
    nullable: bool = True


def no_rows_sql(columns: Iterable[Column]) -> str:
    """Return a query of no rows of some columns."""
    nothing = (f"{cast_sql('NULL', c.type)} AS {quote(c.name)}" for c in columns)
    return f"SELECT {', '.join(nothing)} WHERE false"


def as_typed(column: Column) -> str:
    """Return a column cast to its type, under its name."""
    return f"{cast_sql(quote(column.name), column.type)} AS {quote(column.name)}"


def finding(named: Iterable[tuple[str, Found]]) -> Callable[[str], Found | None]:
    """Find what belongs to a column by its name: as it is written, else in any case.

    Names of one table may differ by nothing else, and a column may have been renamed by nothing else.

    Args:
        named: Names of columns, each with what belongs to it.
    """
    exact = dict(named)
    folded = {name.lower(): of for name, of in exact.items()}
    return lambda name: exact.get(name, folded.get(name.lower()))
