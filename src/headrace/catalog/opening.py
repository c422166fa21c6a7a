"""Opens a catalog: checks that it exists, is Headrace's and of this version; migrates it.

The usual case, a catalog that is up to date, costs two small queries; Alembic is imported only to migrate.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
import threading
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import own_database
from headrace.catalog.database import Database
from headrace.catalog.schema import REVISIONS, VERSION_TABLE
from headrace.errors import EnvironmentFault
from headrace.events import Events, Notice

_MIGRATION_LOCK = 0x68656164
"""PostgreSQL advisory lock that migrations hold, so that two processes do not migrate at once."""

_ONE_MIGRATION = threading.Lock()
"""Alembic keeps its context in module globals, so threads of one process take turns."""


def prepare(database: Database, *, events: Events, create: bool, now: dt.datetime) -> None:
    """Make sure that a database holds an up-to-date catalog; see `Catalog.open`."""
    try:
        if not create:
            _require_file(database)
        with database.read() as connection:
            revision = read_revision(connection)
        if revision != REVISIONS[-1]:
            _check_age(database, revision)
            if revision is None and not create:
                raise _missing(database)
            _upgrade(database, events, now)
    except BaseException:
        database.close()
        raise


def _require_file(database: Database) -> None:
    if database.is_sqlite and not database.file.is_file():
        raise _missing(database)


def _missing(database: Database) -> EnvironmentFault:
    return EnvironmentFault(
        "CATALOG_UNREACHABLE",
        f"There is no catalog at {database.shown}.",
        hint="Check the catalog URL and put back a catalog that was lost; `headrace init` in the project folder makes "
        "an empty one.",
    )


def read_revision(connection: Connection) -> str | None:
    """Return the catalog's revision; None when there is no catalog yet."""
    if connection.dialect.name == "sqlite":
        there = sa.text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name")
    else:
        there = sa.text("SELECT to_regclass(:name)")
    if connection.execute(there, {"name": VERSION_TABLE}).scalar_one_or_none() is None:
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()


def _check_age(database: Database, revision: str | None) -> None:
    if revision is not None and revision not in REVISIONS:
        raise EnvironmentFault(
            "CATALOG_TOO_NEW",
            f"The catalog {database.shown} was written by a newer Headrace.",
            detail=f"It has revision {revision}; this version supports revisions up to {REVISIONS[-1]}.",
            hint="Upgrade Headrace, or put back the backup that the newer version made beside the catalog.",
        )


def _upgrade(database: Database, events: Events, now: dt.datetime) -> None:
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        revision = read_revision(connection)  # another process may have been faster
        if revision == REVISIONS[-1]:
            return
        _check_age(database, revision)
        kept = "" if revision is None else _keep(database, revision, now)
        _run_alembic(connection)
        own_database.fill(connection)
    if revision is not None:
        events.emit(Notice(f"The catalog was migrated from revision {revision} to {REVISIONS[-1]}. {kept}"))


def _run_alembic(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    with _ONE_MIGRATION:
        command.upgrade(config, REVISIONS[-1])


def _keep(database: Database, revision: str, now: dt.datetime) -> str:
    """Back up a SQLite catalog beside itself; returns the sentence that says what was done."""
    if not database.is_sqlite:
        return "It was one transaction, so there is nothing to undo; back up the PostgreSQL database by your own means."
    source = database.file
    target = source.with_name(f"{source.name}.backup-{revision}-{now:%Y%m%dT%H%M%S.%fZ}")
    part = target.with_name(f"{target.name}.part")  # a copy that was cut off must not look like a good one
    try:
        part.touch(mode=source.stat().st_mode & 0o777)
        with contextlib.closing(sqlite3.connect(source)) as old, contextlib.closing(sqlite3.connect(part)) as new:
            old.backup(new)
        part.rename(target)
    except (sqlite3.Error, OSError) as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise EnvironmentFault(
            "CATALOG_BACKUP_FAILED",
            f"The catalog must be migrated, but its backup {target} could not be written; nothing was changed.",
            detail=str(error),
            hint="Make room beside the catalog and allow this user to write there.",
        ) from error
    return f"Its former state is in {target}."
