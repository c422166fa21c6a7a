"""The `lake` pointer of each stored table as Headrace last published it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.many_rows import delete_rows, insert_rows
from headrace.catalog.publishing.pointers import key_of, one_of
from headrace.lakes.lake_server import Key
from headrace.names import TableName

_C = t.published.c


def read(connection: Connection, keys: Iterable[Key]) -> dict[Key, str]:
    """Return the pointers that were published; tables never published are left out."""
    wanted = set(keys)
    rows = connection.execute(sa.select(t.published).where(one_of(wanted, _C.table_namespace, _C.table_name)))
    return {(n, table): location for n, table, location in rows if (n, table) in wanted}


def every(connection: Connection) -> set[Key]:
    """Return all tables that were published."""
    return {(namespace, table) for namespace, table in connection.execute(sa.select(_C.table_namespace, _C.table_name))}


def write(connection: Connection, before: Mapping[Key, str], after: Mapping[Key, str]) -> None:
    """Write what changed between two states."""
    _delete(connection, [k for k, location in before.items() if after.get(k) != location])
    rows = [
        {"table_namespace": k[0], "table_name": k[1], "metadata_location": location}
        for k, location in after.items()
        if before.get(k) != location
    ]
    insert_rows(connection, t.published, rows)


def forget(connection: Connection, names: Iterable[TableName]) -> None:
    """Forget tables that are Headrace's no more."""
    _delete(connection, [key_of(name) for name in names])


def _delete(connection: Connection, keys: Iterable[Key]) -> None:
    delete_rows(connection, t.published, [{"table_namespace": n, "table_name": table} for n, table in keys])
