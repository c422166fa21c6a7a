"""LATERAL subqueries and their outer rows, as the FROM reader passes them to SELECT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.algebra.relations import Relation
from headrace.algebra.scalar import Scalar
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.scope import Scope, Visible
from headrace.sql.reader.syntax.query_shape import Query, Select

Beside = tuple[Relation, tuple[Visible, ...]]
"""A relation of the rows before a subquery with those of the subquery, and its columns."""


@dataclass(frozen=True, slots=True)
class Lateral:
    """A LATERAL subquery.

    Args:
        query: The subquery.
        alias: What its columns' names begin with here.
        qualifier: Its alias; empty without one.
        left: What stands before it.
        scope: What names mean there.
        names: Hands out column names that are free on both sides.
        read_from: Reads its FROM, with LATERAL VIEWs; the columns get names that are free here.
        padded: Whether a row before it stays when the subquery has no rows for it.
        on: The join's own condition, given the subquery's columns.
        single: Whether it is an error when the subquery has several rows for a row before it.
    """

    query: Query
    alias: str
    qualifier: str
    left: Relation
    scope: Scope
    names: Names
    read_from: Callable[[Select], tuple[Relation, Scope]]
    padded: bool
    on: Callable[[tuple[Visible, ...]], Scalar | None]
    single: bool = False
