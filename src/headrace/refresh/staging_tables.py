"""Stored tables in catalog `staging`, where they are written before they are published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile

from headrace.catalog import Catalog
from headrace.errors import EnvironmentFault, InternalError
from headrace.lake.metadata import Snapshot, TableMeta
from headrace.names import LAKE, STAGING, TableName
from headrace.refresh.cut.cut import metadata


def staged(catalog: Catalog, table: TableName) -> TableMeta:
    """Return a stored table as it is in `staging`.

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
    """Return the metadata of a table about to be written; refuse foreign commits.

    The Java of a process that was killed, or lost its lease, may commit once more after its work was put back; that it
    does so later is told by `only_ours`, as Iceberg appends to whatever there is when it commits.

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
    """Refuse a table to which another writer committed while our statements ran.

    Args:
        table: The table.
        before: What it was.
        after: What it is now.
        statements: How many there were.

    Raises:
        EnvironmentFault: `STAGING_CHANGED` (retryable).
    """
    if sum(1 for _ in _since(before, after)) > statements:
        raise _touched(table)


@contextmanager
def somebody_elses(
    table: TableName, before: TableMeta, now: Callable[[], TableMeta], statements: int
) -> Iterator[None]:
    """Blame wrong row counts on another writer's commit where there was one.

    Args:
        table: The table.
        before: What it was.
        now: Tells what it is.
        statements: How many there are.

    Raises:
        EnvironmentFault: `STAGING_CHANGED` (retryable) instead of an internal error, where somebody else has committed.
    """
    try:
        yield
    except InternalError:
        only_ours(table, before, now(), statements)
        raise


def only_rewritten(catalog: Catalog, table: TableName, before: TableMeta, *, trimmed: bool) -> TableMeta:
    """Return a table's metadata after maintenance; refuse changes of rows.

    Maintenance may only remove rows of a log that no reader needs any more.

    Args:
        catalog: The catalog.
        table: The table.
        before: What it was.
        trimmed: Whether it is a change log.

    Raises:
        EnvironmentFault: `STAGING_CHANGED` (retryable).
    """
    after = staged(catalog, table)
    since = list(_since(before, after))
    if any(s.operation == "append" for s in since) or sum(s.operation != "replace" for s in since) > trimmed:
        raise _touched(table)
    return after


def _since(before: TableMeta, after: TableMeta) -> Iterator[Snapshot]:
    current = after.ancestors(after.current_snapshot_id)
    return takewhile(lambda snapshot: snapshot.id != before.current_snapshot_id, current)


def _touched(table: TableName) -> EnvironmentFault:
    return EnvironmentFault(
        "STAGING_CHANGED",
        f"{table.within(LAKE)} was written by somebody else at the same time; nothing was published.",
        detail="A process that was killed, or lost its lease, may have been about to commit.",
        hint="Refresh again.",
        retryable=True,
    )
