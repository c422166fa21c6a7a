"""Tells a project's own database from a copy of it.

A copy would work on the same files, slots and sinks.
A server's system identifier and a database's number there outlast restarts, renaming, physical replicas that are
promoted and recovery to a point in time. They are others in what `pg_dump` or `CREATE DATABASE … TEMPLATE` copied, and
behind `pg_upgrade`. For SQLite see `own_file`.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from headrace.catalog import own_file
from headrace.catalog import schema as t
from headrace.catalog.database import Database
from headrace.errors import UserError

_FIND = sa.text(
    "SELECT c.system_identifier, d.oid FROM pg_control_system() c, pg_database d WHERE d.datname = current_database()"
)

_SILENT = ("42", "0A")
"""Classes of SQLSTATE by which a server says that it has no such function, or that this role may not call it."""

_OWN = "headrace_own_database"

_FILL = t.insert_or_skip(t.own_database, "id", "identity")


class OwnDatabase:
    """The database of a project, held against the one that it was made or last confirmed in.

    Args:
        database: The catalog's.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def check(self, connection: Connection) -> None:
        """Refuse to work on what belongs to another database; asks once for each connection.

        Raises:
            UserError: `CATALOG_COPIED`.
        """
        if connection.info.get(_OWN):
            return
        if (error := compare(connection)) is not None:
            raise error
        connection.info[_OWN] = True

    def settle(self, connection: Connection) -> None:
        """Do as `check`; where none is known as the project's own, it is this one from now on.

        Raises:
            UserError: `CATALOG_COPIED`.
        """
        if not connection.info.get(_OWN):
            fill(connection)
            self.check(connection)

    def refuse(self) -> None:
        """Do as `check` does, in a transaction of its own."""
        with self._database.read() as connection:
            self.check(connection)

    def copied(self) -> UserError | None:
        """Return the error for a database that is not the project's own."""
        with self._database.read() as connection:
            return compare(connection)

    def confirm(self, *, dry_run: bool = False) -> tuple[str | None, str | None]:
        """Have this database be the project's own from now on.

        Args:
            dry_run: Change nothing.

        Returns:
            The former one and this one; None where that is not known.
        """
        with self._database.write() as connection:
            former = read(connection)
            found = find(connection, former)
            if found not in (None, former) and not dry_run:
                _keep(connection, str(found))
            return former, found


def fill(connection: Connection) -> None:
    """Write down which database this is, where none is known or a file was moved."""
    former = read(connection)
    if former is None:
        if (found := find(connection, None)) is not None:
            connection.execute(_FILL, {"id": 1, "identity": found})
    elif _is_file(connection) and compare(connection) is None and (found := find(connection, former)) != former:
        _keep(connection, str(found))


def compare(connection: Connection) -> UserError | None:
    """Return the error for a database that is not the project's own.

    None for its own, and where that cannot be known.
    """
    if (former := read(connection)) is None:
        return None
    if _is_file(connection):
        original = own_file.copied_from(connection, former)
        return None if original is None else _copied_file(original)
    found = find(connection, former)
    return None if found in (None, former) else _copied(former, str(found))


def _is_file(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def _keep(connection: Connection, found: str) -> None:
    connection.execute(sa.delete(t.own_database))
    connection.execute(sa.insert(t.own_database).values(id=1, identity=found))


def read(connection: Connection) -> str | None:
    """Return the database that is known as the project's own."""
    return connection.execute(sa.select(t.own_database.c.identity)).scalar()


def find(connection: Connection, former: str | None) -> str | None:
    """Return which database this is; None where the server does not tell this role.

    Args:
        connection: The database's.
        former: The one that is known as the project's own.
    """
    if _is_file(connection):
        return own_file.find(connection, former)
    try:
        with connection.begin_nested():
            server, database = connection.execute(_FIND).one()
    except exc.DBAPIError as error:
        if str(getattr(error.orig, "sqlstate", None)).startswith(_SILENT):
            return None
        raise
    return f"{server}/{database}"


def shown(identity: str) -> str:
    """Return a database as messages name it."""
    if ":" in identity:
        return own_file.shown(identity)
    server, _, database = identity.partition("/")
    return f"database {database} of server {server}"


_BOTH = (
    "If both were worked with, they would write to and delete the same files, read the same slots, and write to the "
    "same sinks. Nothing was changed."
)

_INSTEAD = (
    "Looking works. For tests make a project of its own with `headrace init`, and in it the stream tables, whose "
    "statements `headrace show-create` prints."
)


def _copied(former: str, found: str) -> UserError:
    return UserError(
        "CATALOG_COPIED",
        "The catalog is not in the database that this project was made or last confirmed in: it is a copy, a restored "
        "dump, or on a server that pg_upgrade made.",
        detail=f"It was {shown(former)}; this is {shown(found)}. {_BOTH}",
        hint=f"{_INSTEAD} Where this database takes the place of the other, which nobody uses any more, confirm it "
        "once: `headrace move-catalog --here`.",
    )


def _copied_file(original: str) -> UserError:
    return UserError(
        "CATALOG_COPIED",
        f"The catalog's file is a copy of {original}, which is still there.",
        detail=_BOTH,
        hint=f"{_INSTEAD} Where nobody uses the other file any more, move it away, or confirm this one once: `headrace "
        "move-catalog --here`.",
    )
