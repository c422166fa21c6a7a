"""Sources whose snapshots are pinned, so that pins go when nobody reads a source any more."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.relations import parse_name, stored_name
from headrace.names import TableName


def read(connection: Connection) -> dict[TableName, str]:
    """Return the marks of pins, by source."""
    rows = connection.execute(sa.select(t.pinned.c.name, t.pinned.c.mark).order_by(t.pinned.c.name))
    return {parse_name(name): mark for name, mark in rows}


def mark(connection: Connection, source: TableName) -> str:
    """Note that a source is pinned; return its mark, the one that others have if there are any."""
    found = read(connection)
    own = found.get(source) or next(iter(found.values()), None) or uuid.uuid4().hex[:8]
    adding = t.insert_or_skip(t.pinned, "name", "mark")
    connection.execute(adding, {"name": stored_name(source), "mark": own})
    kept = sa.select(t.pinned.c.mark).where(t.pinned.c.name == stored_name(source))
    return str(connection.execute(kept).scalar_one())  # another process may have been faster


def forget(connection: Connection, source: TableName) -> None:
    """Forget that a source was pinned."""
    connection.execute(sa.delete(t.pinned).where(t.pinned.c.name == stored_name(source)))
