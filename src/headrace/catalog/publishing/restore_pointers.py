"""Points stored tables at what Headrace published last again, or at nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from sqlalchemy.engine import Connection

from headrace.catalog.coordination import leases as leasing
from headrace.catalog.publishing import pointers, published_pointers
from headrace.catalog.publishing.pointer_changes import PointerChanges, foreign_writer
from headrace.catalog.publishing.pointers import PointerRow, key_of
from headrace.catalog.publishing.retired_tables import RETIRED, retirement, take_back
from headrace.catalog.records import ForeignWrite, Lease
from headrace.names import LAKE, STAGING, TableName


def restore_pointers(connection: Connection, writes: Sequence[ForeignWrite], held: Sequence[Lease]) -> None:
    """Put pointers back to what was published; see `Catalog.restore_pointers`."""
    leasing.check(connection, held)
    keys = {key_of(write.name): write for write in writes}
    ours = published_pointers.read(connection, keys)
    rows = pointers.lock(connection, (LAKE, STAGING), keys)
    changes = PointerChanges()
    for key, write in keys.items():
        shown = rows.get((LAKE, key))
        if ours.get(key) != write.published or (None if shown is None else shown.metadata_location) != write.found:
            raise foreign_writer([write.name], "It was changed once more while it was being repaired.")
        for catalog in (LAKE, STAGING):
            now = rows.get((catalog, key))
            back = PointerRow(write.published, now and now.metadata_location, "TABLE")
            if now is None or now.metadata_location != write.published:
                changes.put(catalog, key, back, replacing=now)
    changes.apply(connection)
    take_back(connection, (write.published for write in writes))


def withdraw_pointers(
    connection: Connection, names: Iterable[TableName], held: Sequence[Lease], now: dt.datetime
) -> None:
    """Point stored tables at nothing; see `Catalog.withdraw_pointers`."""
    leasing.check(connection, held)
    keys = {key_of(name) for name in names}
    ours = published_pointers.read(connection, keys)
    changes = PointerChanges()
    for (catalog, key), row in pointers.lock(connection, (LAKE, STAGING), keys).items():
        changes.delete(catalog, key)
        if catalog == LAKE and ours.get(key) == row.metadata_location:
            place, record = retirement(now, key, row)
            changes.put(RETIRED, place, record, replacing=None)
    changes.apply(connection)
