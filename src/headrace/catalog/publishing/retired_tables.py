"""Stored tables no longer shown, recorded until maintenance has removed their files.

They are rows of `iceberg_tables` under a catalog name of their own, which no Iceberg catalog is configured with, and
are written in the transaction that takes a table away, so that none is forgotten.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.publishing.pointers import PointerRow
from headrace.catalog.records import Retired
from headrace.lakes.lake_server import Key

RETIRED = "retired"

_C = t.iceberg_tables.c


def retirement(now: dt.datetime, key: Key, shown: PointerRow) -> tuple[Key, PointerRow]:
    """Return the row that records a table retired now, with its key, which sorts by time.

    Args:
        now: The time.
        key: The table's key.
        shown: Its last row in `lake`.
    """
    name = f"{key[0]}.{key[1]}#{uuid.uuid4().hex[:8]}"
    at = now.astimezone(dt.UTC).isoformat(timespec="seconds")
    return (at, name), PointerRow(shown.metadata_location, None, shown.iceberg_type)


def retired(connection: Connection, before: dt.datetime) -> tuple[Retired, ...]:
    """Return the tables retired before a time, oldest first."""
    query = (
        sa.select(_C.table_namespace, _C.table_name, _C.metadata_location)
        .where(_C.catalog_name == RETIRED)
        .order_by(_C.table_namespace, _C.table_name)
    )
    found = (Retired(name, location, dt.datetime.fromisoformat(at)) for at, name, location in connection.execute(query))
    return tuple(r for r in found if r.at <= before)


def take_back(connection: Connection, locations: Iterable[str]) -> None:
    """Forget that tables were retired: they are shown again.

    Args:
        connection: The transaction.
        locations: Their metadata files.
    """
    shown = _C.metadata_location.in_(sorted(locations))
    connection.execute(sa.delete(t.iceberg_tables).where(_C.catalog_name == RETIRED, shown))


def forget(connection: Connection, gone: Retired) -> None:
    """Forget a retired table whose files are gone."""
    connection.execute(sa.delete(t.iceberg_tables).where(_C.catalog_name == RETIRED, _C.table_name == gone.name))
