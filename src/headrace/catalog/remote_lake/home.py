"""Holds a project to the lake that its tables are in, for reading and for publishing."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.database import Database
from headrace.errors import UserError
from headrace.names import LAKE


class LakeHome:
    """The lake that this process works with, held against the project's own.

    Args:
        database: The catalog's.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bound = False
        self._identity: str | None = None

    def bind(self, identity: str | None) -> None:
        """Hold the project to the lake that it began in; see `Catalog.bind_lake`."""
        with self._database.read() as connection:
            known = refuse_other(connection, identity)
        if known != identity:
            with self._database.write() as connection:
                if refuse_other(connection, identity) is None:
                    write(connection, identity)
        self._bound, self._identity = True, identity

    def check(self, connection: Connection) -> None:
        """Refuse to go on where the project has been moved since this process opened it.

        Raises:
            UserError: `LAKE_CHANGED`.
        """
        if self._bound and (known := read(connection)) != self._identity:
            raise UserError(
                "LAKE_CHANGED",
                f"The tables of this project have been moved to {shown(known)} since this process opened it.",
                detail="Nothing was published.",
                hint="Start the process again; [lake] in its headrace.toml must say where the tables are.",
            )


def refuse_other(connection: Connection, identity: str | None) -> str | None:
    """Refuse another lake than the project's own, and return that.

    None is the database, and what a project without tables is in.

    Raises:
        UserError: `LAKE_CHANGED`.
    """
    known = read(connection)
    own = sa.select(t.iceberg_tables.c.table_name).where(t.iceberg_tables.c.catalog_name == LAKE).limit(1)
    if known == identity or (known is None and connection.execute(own).first() is None):
        return known
    raise _another(known, identity)


def read(connection: Connection) -> str | None:
    """Return the server that keeps the project's lake; None where that is this database."""
    return connection.execute(sa.select(t.lake_home.c.identity)).scalar()


def write(connection: Connection, identity: str | None) -> None:
    """Write down which server keeps the project's lake."""
    connection.execute(sa.delete(t.lake_home))
    if identity is not None:
        connection.execute(sa.insert(t.lake_home).values(identity=identity))


def shown(identity: str | None) -> str:
    """Return a lake as messages name it."""
    return "the catalog's own database" if identity is None else f"the REST catalog {identity}"


def _another(known: str | None, wanted: str | None) -> UserError:
    return UserError(
        "LAKE_CHANGED",
        f"The tables of this project are in {shown(known)}, and headrace.toml says {shown(wanted)}.",
        hint=_remedy(known, wanted),
    )


def _remedy(known: str | None, wanted: str | None) -> str:
    if known is None:
        return (
            "`headrace move-catalog` registers the tables there, without writing data anew. To stay where they are, "
            "take [lake] out of headrace.toml again."
        )
    back = "Put [lake] in headrace.toml back to what it was."
    if wanted is None:
        return f"{back} To leave that catalog run `headrace move-catalog --back` then, and take [lake] out afterwards."
    return f"{back} To move on, run `headrace move-catalog --back` then, and write the other [lake] afterwards."
