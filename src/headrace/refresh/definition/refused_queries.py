"""Queries that are not maintained: since when, and why."""

from __future__ import annotations

from dataclasses import replace

from headrace.compiler.compiled_view import CompiledView
from headrace.errors import Unsupported
from headrace.names import TableName
from headrace.physical.facts import Facts
from headrace.reasons import FullReason
from headrace.results.refresh_results import RefusalInfo
from headrace.sql.reader.refusals import Refusal


def refusals_of(view: CompiledView) -> tuple[RefusalInfo, ...]:
    """Return the reasons why a query is not maintained; empty where it is."""
    if view.tree is not None:
        return ()
    return tuple(map(_info, view.refusals)) or (_UNREAD,)


def as_compiled(facts: Facts, view: CompiledView) -> Facts:
    """Return facts with the refusals of a query that is no longer maintained.

    That may come of a source that has gained a column, or of another version of Spark.

    Args:
        facts: As gathered.
        view: The query as it is compiled now.

    Raises:
        Unsupported: `NOT_MAINTAINABLE` where there is a companion, which would not follow.
    """
    if facts.companion is not None:
        refuse_unmaintained(facts.name, view)
    refusals = refusals_of(view)
    return replace(facts, details=replace(facts.details, refusals=refusals)) if refusals else facts


def refuse_unmaintained(name: TableName, view: CompiledView) -> None:
    """Refuse a stream table that has to be maintained, and whose query cannot be any more.

    Args:
        name: The stream table.
        view: Its query as it is compiled now.

    Raises:
        Unsupported: `NOT_MAINTAINABLE`.
    """
    for refusal in refusals_of(view):
        raise Unsupported(
            "NOT_MAINTAINABLE",
            f"{name} was maintained when it was defined, and cannot be any more: {refusal.message}",
            hint=f"{refusal.hint or ''} CREATE OR REPLACE STREAM TABLE {name} AS … defines it again.".strip(),
        )


def _info(refusal: Refusal) -> RefusalInfo:
    place = refusal.place
    line, column = (place.line, place.column) if place else (None, None)
    return RefusalInfo(refusal.code, refusal.construct, refusal.message, line, column, refusal.hint)


_UNREAD = RefusalInfo(
    FullReason.OPERATOR_NOT_MAINTAINED, "query", "The query cannot be read as relational algebra.", None, None, None
)
