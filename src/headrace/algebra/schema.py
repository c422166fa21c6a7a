"""Columns and their types."""

from __future__ import annotations

from dataclasses import dataclass


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
