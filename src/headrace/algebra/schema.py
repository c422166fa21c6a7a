"""Columns and their types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.names import quote


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
    return f"SELECT {', '.join(f'CAST(NULL AS {c.type}) AS {quote(c.name)}' for c in columns)} WHERE false"
