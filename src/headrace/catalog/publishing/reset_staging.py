"""Recovery: resets `staging` pointers of unpublished refreshes to those of `lake`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from sqlalchemy.engine import Connection

from headrace.catalog.coordination import leases as leasing
from headrace.catalog.definitions.stream_tables import read_streams
from headrace.catalog.publishing import pointers
from headrace.catalog.publishing.pointer_changes import PointerChanges
from headrace.catalog.records import Lease, resource_of
from headrace.names import LAKE, STAGING, TableName


def reset_staging(
    connection: Connection, names: Iterable[TableName] | None, held: Sequence[Lease], now: dt.datetime
) -> tuple[TableName, ...]:
    """Put `staging` pointers back to their `lake` pointers; see `Catalog.reset_staging`."""
    wanted = pointers.dirty(connection, names)
    if not wanted:
        return ()
    busy = _busy(connection, wanted, held, now)
    free = tuple(n for n in wanted if n not in busy)
    rows = pointers.lock(connection, (LAKE, STAGING), map(pointers.key_of, free))
    changes = PointerChanges()
    for key in map(pointers.key_of, free):
        staging, lake = rows.get((STAGING, key)), rows.get((LAKE, key))
        if staging is not None and lake is None:
            changes.delete(STAGING, key)
        elif lake is not None:
            changes.put(STAGING, key, lake, replacing=staging)
    changes.apply(connection)
    return free


def _busy(
    connection: Connection, names: Sequence[TableName], held: Sequence[Lease], now: dt.datetime
) -> set[TableName]:
    """Return those of some stored tables that somebody else may be writing.

    Nobody can begin to until the transaction ends.
    """
    resources = {name: {resource_of(name)} for name in names}
    for stream in read_streams(connection):
        for stored in stream.stored:
            if stored in resources:
                resources[stored].add(resource_of(stream.name))
    ours = {(x.resource, x.token) for x in held}
    locked = leasing.lock(connection, set().union(*resources.values()), now)
    taken = {x.resource for x in locked if leasing.is_live(x, now) and (x.resource, x.token) not in ours}
    return {name for name, needed in resources.items() if needed & taken}
