"""Turns of tables in the maintenance of schedules, which outlast the process that gave them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.relations import parse_name, stored_name
from headrace.names import TableName

_ALL = ""


def read(connection: Connection) -> Mapping[TableName | None, dt.datetime]:
    """Return when tables' last turns began, and under None when all had had one."""
    rows = connection.execute(sa.select(t.maintained.c.name, t.maintained.c.at))
    return {parse_name(name) if name else None: at for name, at in rows}


def note(connection: Connection, name: TableName, at: dt.datetime) -> None:
    """Note that a table's turn begins."""
    _put(connection, stored_name(name), at)


def end(connection: Connection, at: dt.datetime, since: dt.datetime) -> None:
    """Note that all tables had their turn; forget those that had none: they are gone.

    Args:
        connection: To the catalog.
        at: Now.
        since: When turns began to be given.
    """
    connection.execute(sa.delete(t.maintained).where(t.maintained.c.at < since))
    _put(connection, _ALL, at)


def _put(connection: Connection, name: str, at: dt.datetime) -> None:
    own = t.maintained.c.name == name
    if not connection.execute(sa.update(t.maintained).where(own).values(at=at)).rowcount:
        connection.execute(sa.insert(t.maintained).values(name=name, at=at))
