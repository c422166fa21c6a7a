"""Tells a catalog's own SQLite file from a copy of it.

A catalog keeps a number of its own and the path of its file. A file at another path is a copy while the former one is
still there and has the same number; else it was moved, as also a project may be. A copy on another machine, one that
was put where the original was, or one whose original cannot be read, is not noticed.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from contextlib import closing
from urllib.parse import quote

from sqlalchemy.engine import Connection

_UNREADABLE = ("SQLITE_CANTOPEN", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_IOERR")
"""Names of SQLite's errors that say nothing of what a file is."""


def find(connection: Connection, former: str | None) -> str | None:
    """Return which file this is, as the catalog keeps it; None of one in memory.

    Args:
        connection: The catalog's.
        former: What the catalog has kept, if anything.
    """
    if (path := _path(connection)) is None:
        return None
    if former is None or original(path, former) is not None:
        return f"{uuid.uuid4().hex}:{path}"
    number, _, kept = former.partition(":")
    same = os.path.exists(kept) and (os.path.samefile(kept, path) or _number(kept) is None)
    return former if same else f"{number}:{path}"


def copied_from(connection: Connection, former: str) -> str | None:
    """Return the file that this one is a copy of; None where it is none, or nobody can tell.

    Args:
        connection: The catalog's.
        former: What the catalog has kept.
    """
    path = _path(connection)
    return None if path is None else original(path, former)


def original(path: str, former: str) -> str | None:
    """Return the file that a catalog was copied from, if it is there.

    Args:
        path: The catalog's file.
        former: What the catalog has kept.
    """
    number, _, kept = former.partition(":")
    if kept == path or not os.path.isfile(kept) or os.path.samefile(kept, path):
        return None
    return kept if _number(kept) == number else None


def shown(identity: str) -> str:
    """Return a file as messages name it."""
    return f"file {identity.partition(':')[2]}"


def _path(connection: Connection) -> str | None:
    files = connection.exec_driver_sql("PRAGMA database_list").all()
    return next((str(file) for _, name, file in files if name == "main" and file), None)


def _number(path: str) -> str | None:
    """Return the number that the catalog in a file has kept.

    "" where it is no catalog of a project, None if it cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as other:
            kept = other.execute("SELECT identity FROM hr_own_database").fetchone()
    except sqlite3.Error as error:
        return None if getattr(error, "sqlite_errorname", "").startswith(_UNREADABLE) else ""
    return "" if kept is None else str(kept[0]).partition(":")[0]
