"""Has Spark infer types during reading, only where a clause's meaning depends on them."""

from __future__ import annotations

from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.names import CLOCK
from headrace.sql.clock import SOME_TIME
from headrace.sql.lower import lower
from headrace.sql.reader.context import Context


def types_in(context: Context, relation: Relation) -> tuple[Column, ...] | None:
    """Return the columns of a relation.

    None where nobody can be asked, or the query is refused already.

    Args:
        context: Knows whom to ask.
        relation: What has been read so far.
    """
    if context.describe is None or context.findings.any:
        return None
    return context.describe(lower(relation, by_name))


def by_name(leaf: Scan | Stored) -> str:
    """Write a leaf of a query as the source it reads."""
    assert isinstance(leaf, Scan), "a query reads sources only"
    if leaf.source == CLOCK:
        return SOME_TIME
    return leaf.source.sql
