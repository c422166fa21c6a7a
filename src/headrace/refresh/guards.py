"""Guards of a refresh: tables that are stopped, incomplete, overtaken or foreign-written."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import Catalog, ForeignWrite
from headrace.errors import EnvironmentFault, UserError
from headrace.names import LAKE, SYSTEM_NAMESPACE, TableName
from headrace.refresh.cut.cut import Head
from headrace.refresh.gather_facts import TableState
from headrace.results.refresh_results import Status

STOPPING = frozenset({"SOURCE_SCHEMA_CHANGED"})
"""Errors that no later refresh can cure by itself; they stop the table."""


def refuse_stopped(state: TableState) -> None:
    """Refuse a table that somebody, or an error, has stopped."""
    table = state.table
    if table.status is Status.STOPPED and table.stopped_code not in STOPPING:
        raise UserError(table.stopped_code or "STOPPED", table.stopped_reason or f"{table.name} is stopped.")


def refuse_apart(state: TableState) -> None:
    """Refuse a member of a cycle that two concurrent definitions closed."""
    if not state.table.details.get("cyclic"):
        raise EnvironmentFault(
            "DEFINITION_CHANGED",
            f"{state.table.name} has become part of a cycle and has to be defined again; nothing was changed.",
            hint="Refresh again.",
            retryable=True,
        )


def refuse_missing(state: TableState) -> None:
    """Refuse a table of whose stored tables one is gone."""
    missing = [t for t in state.table.stored if t not in state.locations]
    if missing:
        raise EnvironmentFault(
            "STORED_TABLE_DROPPED",
            f"{missing[0]} was dropped behind Headrace's back.",
            hint=f"REPAIR STREAM TABLE {state.table.name} (`headrace repair {state.table.name}`) brings it back; "
            f"DROP STREAM TABLE {state.table.name} removes the rest.",
        )


def refuse_overtaken(state: TableState, observed: Mapping[TableName, Head]) -> None:
    """Refuse a cut older than what is published: somebody who saw the sources later was faster."""
    later = [s for s, head in observed.items() if state.frontier.get(s, -1) > head.version.version]
    if later:
        raise EnvironmentFault(
            "CUT_OVERTAKEN",
            f"{state.table.name} reflects a newer {later[0]} than this refresh has seen; nothing was changed.",
            hint="Refresh again.",
            retryable=True,
        )


def published_pointers(catalog: Catalog, state: TableState, *, full: bool) -> dict[TableName, str | None]:
    """Return the `lake` pointers of stored tables; refuse tables that somebody else wrote to.

    Args:
        catalog: The catalog.
        state: The stream table.
        full: Whether it is recomputed, so that what somebody else wrote is replaced.

    Raises:
        EnvironmentFault: `FOREIGN_WRITER`.
    """
    stored = state.table.stored
    read = [state.logs[source] for source in state.table.sources if source in state.logs]
    if not full and (foreign := catalog.foreign_writes([*stored, *read])):
        raise foreign_writer(foreign[0], state.table.name)
    pointers = catalog.pointers(LAKE, stored)
    return {t: pointers[t].metadata_location if t in pointers else None for t in stored}


def foreign_writer(write: ForeignWrite, table: TableName) -> EnvironmentFault:
    """Return the error for a stored table that somebody else changed.

    Args:
        write: What was changed.
        table: The stream table that it belongs to, or that reads it.
    """
    own = write.name if write.name.namespace != (SYSTEM_NAMESPACE,) else table
    message = f"{write.name} {write.what} since Headrace published it; nothing was overwritten."
    hint = f"REPAIR STREAM TABLE {own} (`headrace repair {own}`) brings back what was published."
    if write.found is None:
        return EnvironmentFault("STORED_TABLE_DROPPED", message, hint=hint)
    return EnvironmentFault("FOREIGN_WRITER", message, hint=f"{hint} Keep the other program's rows before, if needed.")
