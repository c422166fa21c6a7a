"""Recovery: resets `staging` pointers of unpublished refreshes to those of `lake`.

Companions and change logs that nobody owns were being made for a stream table, and are called after it. Somebody is at
it as long as he holds a lease on a stream table that they may be called after.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.coordination import leases as leasing
from headrace.catalog.definitions.stream_tables import read_streams
from headrace.catalog.publishing import pointers, published_pointers
from headrace.catalog.publishing.pointer_changes import PointerChanges
from headrace.catalog.publishing.pointers import PointerRow
from headrace.catalog.publishing.retired_tables import retire_unpublished
from headrace.catalog.publishing.staging_namespaces import remove_empty
from headrace.catalog.records import Lease, folder_of, resource_of
from headrace.lakes.lake_server import Key
from headrace.names import LAKE, STAGING, SYSTEM_NAMESPACE, TableName


def reset_staging(
    connection: Connection, names: Iterable[TableName] | None, held: Sequence[Lease], now: dt.datetime
) -> tuple[TableName, ...]:
    """Put `staging` pointers back to their `lake` pointers; see `Catalog.reset_staging`."""
    wanted = pointers.dirty(connection, names)
    if not wanted:
        if names is None:
            remove_empty(connection, None, held, now)
        return ()
    busy = _busy(connection, wanted, held, now)
    free = tuple(n for n in wanted if n not in busy)
    keys = [*map(pointers.key_of, free)]
    rows, ours = pointers.lock(connection, (LAKE, STAGING), keys), published_pointers.read(connection, keys)
    changes, left = PointerChanges(), dict[Key, PointerRow]()
    for key in keys:
        staging, lake = rows.get((STAGING, key)), rows.get((LAKE, key))
        if staging is not None and (lake is None or _folder(lake) != _folder(staging)):
            left[key] = staging  # a table of its own, which nothing will lead to
        if lake is not None and key in ours:
            changes.put(STAGING, key, lake, replacing=staging)
        elif staging is not None:  # never published: what the lake has there is somebody else's
            changes.delete(STAGING, key)
    changes.apply(connection)
    retire_unpublished(connection, left, now)
    remove_empty(connection, None if names is None else {name.namespace_text for name in free}, held, now)
    return free


def _folder(row: PointerRow) -> str:
    return folder_of(row.metadata_location)


def _busy(
    connection: Connection, names: Sequence[TableName], held: Sequence[Lease], now: dt.datetime
) -> set[TableName]:
    """Return those of some stored tables that somebody else may be writing.

    Nobody can begin to until the transaction ends.
    """
    resources = {name: {resource_of(name)} for name in names}
    owned = set[TableName]()
    for stream in read_streams(connection):
        for stored in stream.stored:
            if stored in resources:
                owned.add(stored)
                resources[stored].add(resource_of(stream.name))
    if unowned := [n for n in names if n not in owned and n.namespace == (SYSTEM_NAMESPACE,)]:
        for resource in connection.execute(sa.select(t.lease.c.resource).where(t.lease.c.owner.is_not(None))).scalars():
            stem = "_".join(resource.split(".")[1:])
            for name in unowned:
                if name.table.startswith(f"{stem}_"):
                    resources[name].add(resource)
    ours = {(x.resource, x.token) for x in held}
    locked = leasing.lock(connection, set().union(*resources.values()), now)
    taken = {x.resource for x in locked if leasing.is_live(x, now) and (x.resource, x.token) not in ours}
    return {name for name, needed in resources.items() if needed & taken}
