"""Moves a project from one lake to another, in one transaction.

That is, all its pointers, and which lake it is in. The tables themselves are not touched. Before it both lakes have
shown the same metadata, and after it the project goes by the other one; whoever opened the project before is refused
from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from sqlalchemy.engine import Connection

from headrace.catalog.coordination import leases as leasing
from headrace.catalog.database import Database
from headrace.catalog.publishing import pointers, published_pointers, versions
from headrace.catalog.publishing.pointer_changes import PointerChanges
from headrace.catalog.publishing.pointers import PointerRow
from headrace.catalog.records import Lease
from headrace.catalog.remote_lake import home
from headrace.lakes.lake_server import Key
from headrace.names import LAKE, STAGING


def settled(database: Database) -> str | None:
    """Return which server keeps the lake, once a move that is under way has ended."""
    with database.write() as connection:
        versions.stand_in_line(connection)
        return home.read(connection)


def relocate(
    database: Database,
    held: Sequence[Lease],
    seen: Mapping[Key, str],
    shown: Mapping[Key, str],
    check: Callable[[Connection], None],
    *,
    to: str | None,
    look: Callable[[Collection[Key]], Mapping[Key, str]] | None = None,
) -> set[Key]:
    """Have a project go by another lake, if the present one is as seen; see `Catalog.relocate`."""
    with database.write() as connection:
        versions.stand_in_line(connection)
        leasing.check(connection, held)
        check(connection)
        now = pointers.rows(connection, LAKE, None)
        rows = pointers.lock(connection, (LAKE, STAGING), now)
        there = {key: row.metadata_location for key, row in now.items()} if look is None else look(seen)
        if differing := {key for key in there.keys() | seen.keys() if there.get(key) != seen.get(key)}:
            return differing
        ours, changes = published_pointers.read(connection, now), PointerChanges()
        for key, row in now.items():
            if key not in shown:
                changes.delete(LAKE, key)
                continue
            for catalog in (LAKE, STAGING) if key in ours else (LAKE,):
                old = rows.get((catalog, key))
                if old is None or old.metadata_location != shown[key]:
                    new = PointerRow(shown[key], old and old.metadata_location, row.iceberg_type)
                    changes.put(catalog, key, new, replacing=old)
        changes.apply(connection)
        published_pointers.write(connection, ours, {key: shown[key] for key in ours})
        home.write(connection, to)
        return set()
