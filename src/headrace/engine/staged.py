"""Stored tables in catalog `staging`, where they are written before they are published."""

from __future__ import annotations

from itertools import takewhile

from headrace.catalog import Catalog
from headrace.engine.heads import metadata
from headrace.errors import EnvironmentFault, InternalError
from headrace.lake.metadata import TableMeta
from headrace.names import LAKE, STAGING, TableName


def staged(catalog: Catalog, table: TableName) -> TableMeta:
    """A stored table as it is in `staging`.

    Args:
        catalog: The catalog.
        table: The table, in whichever of the two.

    Raises:
        InternalError: `STORED_TABLE_MISSING`.
    """
    name = table.within(STAGING)
    pointers = catalog.pointers(STAGING, [name])
    if name not in pointers:
        raise InternalError("STORED_TABLE_MISSING", f"Stored table {table} has no row in the staging catalog.")
    return metadata(pointers[name].metadata_location)


def untouched(catalog: Catalog, table: TableName) -> TableMeta:
    """The same, of a table that is about to be written: it is what `lake` shows, or another one that is to replace it.

    The Java of a process that was killed, or lost its lease, may commit once more after its work was put back. As
    commits are not tried again, it cannot do so once something else was committed.

    Args:
        catalog: The catalog.
        table: The table, in whichever of the two.

    Raises:
        EnvironmentFault: `STAGING_CHANGED` (retryable).
        InternalError: `STORED_TABLE_MISSING`.
    """
    now = staged(catalog, table)
    shown = catalog.pointers(LAKE, [table.within(LAKE)]).get(table.within(LAKE))
    if shown is None or shown.metadata_location == now.metadata_location:
        return now
    if metadata(shown.metadata_location).uuid != now.uuid:
        return now
    raise _touched(table)


def only_ours(table: TableName, before: TableMeta, after: TableMeta, statements: int) -> None:
    """Refuse a table to which somebody else has committed while statements wrote to it, each at most once.

    Args:
        table: The table.
        before: What it was.
        after: What it is now.
        statements: How many there were.

    Raises:
        EnvironmentFault: `STAGING_CHANGED` (retryable).
    """
    since = takewhile(
        lambda snapshot: snapshot.id != before.current_snapshot_id, after.ancestors(after.current_snapshot_id)
    )
    if sum(1 for _ in since) > statements:
        raise _touched(table)


def _touched(table: TableName) -> EnvironmentFault:
    return EnvironmentFault(
        "STAGING_CHANGED",
        f"{table.within(LAKE)} was written by somebody else while it was refreshed; nothing was published.",
        detail="A process that was killed, or lost its lease, may have been about to commit.",
        hint="Refresh again.",
        retryable=True,
    )
