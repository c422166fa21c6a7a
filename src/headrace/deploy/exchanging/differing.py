"""Refuses generations of one definition whose rows differ, by the measure of `verify`."""

from __future__ import annotations

from headrace.definitions.details import from_json
from headrace.deploy.exchanging.halves import Half, Halves
from headrace.errors import UserError
from headrace.names import TableName, quote
from headrace.ports import Session
from headrace.refresh.cut.cut import metadata
from headrace.refresh.gather_facts import TableState
from headrace.refresh.verify.compared_rows import compare
from headrace.sources.lakehouse.changes_sql import rows_sql


def refuse_different(halves: Halves, session: Session) -> None:
    """Refuse generations of one definition whose rows differ.

    Last digits of floats may. What reads a table that is exchanged for another one may differ.

    Args:
        halves: What was written for an exchange.
        session: Gives the runner.

    Raises:
        UserError: `GREEN_DIFFERS`.
    """
    changed: set[TableName] = {half.name for half in halves.arriving}
    for public, _ in halves.pairs:
        old, new = from_json(public.state.table.details), public.details
        reads = {use.name for use in new.sources}
        if (old.text, old.namespace, old.semantics) != (new.text, new.namespace, new.semantics) or reads & changed:
            changed.add(public.name)
        elif public.outcome.inserted + public.outcome.deleted:
            more, fewer = _difference(public, session)
            if more or fewer:
                raise UserError(
                    "GREEN_DIFFERS",
                    f"{public.source.table.name} has the definition of {public.name}, but not its rows: "
                    f"{more:,} more and {fewer:,} fewer; nothing was promoted.",
                    hint=f"`headrace verify {public.name} {public.source.table.name}` tells which of the two is wrong.",
                )


def _difference(public: Half, session: Session) -> tuple[int, int]:
    """Return how many rows a public table lacks of what it is to receive, and has besides."""
    columns = public.details.output
    names = ", ".join(quote(c.name) for c in columns)
    if names != ", ".join(quote(c.name) for c in from_json(public.state.table.details).output):
        return public.outcome.inserted, public.outcome.deleted
    runner = session.runner().under(public.details.semantics)
    found = compare(runner, columns, _rows(public.state), f"SELECT {names} FROM {_rows(public.source)}")
    return found.missing, found.unexpected


def _rows(state: TableState) -> str:
    meta = metadata(state.locations[state.table.name])
    return rows_sql(state.table.name, meta, state.newest.snapshot_id if state.newest else None)
