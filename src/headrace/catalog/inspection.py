"""Inspects a catalog database for the doctor; reads only, never creates or migrates."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog.database import Database, parse_url
from headrace.catalog.opening import read_revision
from headrace.catalog.schema import REVISIONS


@contextmanager
def _looking(database: Database) -> Iterator[Connection]:
    try:
        with database.read() as connection:
            yield connection
    finally:
        database.close()


def revision_of(url: str) -> tuple[str, str | None]:
    """Return the database as it may be shown, and its catalog's revision.

    None when it holds no catalog.

    Raises:
        UserError: `CONFIG_INVALID`.
        EnvironmentFault: `CATALOG_LOCKED`, `CATALOG_UNREACHABLE`, `CATALOG_CORRUPT`.
    """
    database = Database(parse_url(url))
    if database.is_sqlite and not Path(str(database.url.database)).is_file():
        return database.shown, None
    with _looking(database) as connection:
        return database.shown, read_revision(connection)


def is_current(url: str) -> bool:
    """Return whether a catalog is there that this version opens without migrating it.

    Raises:
        UserError: `CONFIG_INVALID`.
        EnvironmentFault: `CATALOG_LOCKED`, `CATALOG_UNREACHABLE`, `CATALOG_CORRUPT`.
    """
    return revision_of(url)[1] == REVISIONS[-1]


def clock_difference(url: str) -> float:
    """Return by how many seconds this clock is ahead of a PostgreSQL server's.

    It is exact to half a round trip.

    Raises:
        EnvironmentFault: `CATALOG_UNREACHABLE`.
    """
    with _looking(Database(parse_url(url))) as connection:
        connection.execute(sa.text("SELECT 1"))  # the connection is made before the clock is read
        before = time.time()
        theirs: dt.datetime = connection.execute(sa.text("SELECT clock_timestamp()")).scalar_one()
        return (before + time.time()) / 2 - theirs.timestamp()
