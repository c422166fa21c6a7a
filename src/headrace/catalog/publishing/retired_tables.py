"""Tables no longer shown, or never published, until maintenance has removed their files.

They are rows of `iceberg_tables` under a catalog name of their own, which no Iceberg catalog is configured with, and
are written in the transaction that takes a table away, so that none is forgotten.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.publishing.pointer_changes import PointerChanges
from headrace.catalog.publishing.pointers import PointerRow
from headrace.catalog.records import Retired, folder_of
from headrace.lakes.lake_server import Key
from headrace.names import LAKE, STAGING

RETIRED = "retired"

_MADE_HERE = re.compile(r"/([^/]+-[0-9a-f]{10}|_headrace/[^/]+_[0-9a-f]{10}_(companion|log))$")
"""Matches folders that Headrace made, by the suffixes that it gives them; those of its users' tables have none."""

_C = t.iceberg_tables.c


def retirement(now: dt.datetime, key: Key, shown: PointerRow) -> tuple[Key, PointerRow]:
    """Return the row that records a table retired now, with its key, which sorts by time.

    Args:
        now: The time.
        key: The table's key.
        shown: Its last row in `lake`, or in `staging` where it was never published.
    """
    name = f"{key[0]}.{key[1]}#{uuid.uuid4().hex[:8]}"
    at = now.astimezone(dt.UTC).isoformat(timespec="seconds")
    return (at, name), PointerRow(shown.metadata_location, None, shown.iceberg_type)


def retired(connection: Connection, before: dt.datetime) -> tuple[Retired, ...]:
    """Return the tables retired before a time, oldest first, but for those in use again."""
    query = (
        sa.select(_C.table_namespace, _C.table_name, _C.metadata_location)
        .where(_C.catalog_name == RETIRED)
        .order_by(_C.table_namespace, _C.table_name)
    )
    found = (Retired(name, location, dt.datetime.fromisoformat(at)) for at, name, location in connection.execute(query))
    due = tuple(r for r in found if r.at <= before)
    used = _folders(connection, (LAKE, STAGING)) if due else set[str]()
    return tuple(r for r in due if r.folder not in used)


def _folders(connection: Connection, catalogs: Sequence[str]) -> set[str]:
    """Return the folders of all tables in some catalogs."""
    shown = sa.select(_C.metadata_location).where(_C.catalog_name.in_(catalogs))
    return {folder_of(location) for location in connection.execute(shown).scalars()}


def retire_unpublished(connection: Connection, left: Mapping[Key, PointerRow], now: dt.datetime) -> None:
    """Retire tables that were staged and never published.

    Those to whose files another pointer leads stay.

    Args:
        connection: The transaction, in which nothing leads to them under their own name any more.
        left: Their last rows in `staging`.
        now: The time.
    """
    if not left:
        return
    used = _folders(connection, (LAKE, STAGING, RETIRED))
    published = connection.execute(sa.select(t.published.c.metadata_location)).scalars()
    used |= set(map(folder_of, published))  # what others have dropped can be brought back
    changes = PointerChanges()
    for key, row in left.items():
        folder = folder_of(row.metadata_location)
        if folder not in used and _MADE_HERE.search(folder):
            place, record = retirement(now, key, row)
            changes.put(RETIRED, place, record, replacing=None)
    changes.apply(connection)


def take_back(connection: Connection, locations: Iterable[str]) -> None:
    """Forget that tables were retired: they are shown again.

    Args:
        connection: The transaction.
        locations: Their metadata files.
    """
    shown = _C.metadata_location.in_(sorted(locations))
    connection.execute(sa.delete(t.iceberg_tables).where(_C.catalog_name == RETIRED, shown))


def take_back_folders(connection: Connection, folders: Collection[str]) -> None:
    """Forget that tables in some folders were retired: others were made there, and are shown."""
    if folders:
        retired = connection.execute(sa.select(_C.metadata_location).where(_C.catalog_name == RETIRED)).scalars()
        take_back(connection, [location for location in retired if folder_of(location) in folders])


def forget(connection: Connection, gone: Retired) -> None:
    """Forget a retired table whose files are gone."""
    connection.execute(sa.delete(t.iceberg_tables).where(_C.catalog_name == RETIRED, _C.table_name == gone.name))
