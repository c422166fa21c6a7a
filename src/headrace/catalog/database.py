"""Connections and transactions, with the differences between SQLite and PostgreSQL."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import URL, Connection, Engine

from headrace.catalog import definition_changes
from headrace.catalog.faults import damaged, fault
from headrace.connection_strings import SECRETS
from headrace.errors import UserError
from headrace.extras import require

BUSY_TIMEOUT = dt.timedelta(seconds=30)
"""Time that a statement waits for another writer before CATALOG_LOCKED."""

_WRITES = "headrace_writes"
_PASSING = "headrace_passing"


def parse_url(url: str) -> URL:
    """Read a catalog URL and name the driver Headrace uses for it.

    Raises:
        UserError: `CONFIG_INVALID` for another database than SQLite in a file or PostgreSQL.
    """
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError:
        raise _unusable(url) from None
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed.set(drivername="sqlite")
    raise _unusable(url)


_CREDENTIALS = re.compile(r"(?<=://).*(?=@)")
_PARAMETERS = re.compile(rf"(?<=[?&])({'|'.join(SECRETS)})=[^&]*", re.IGNORECASE)


def _masked(url: str) -> str:
    """Return a URL with its secret parameters hidden; its password is SQLAlchemy's business."""
    return _PARAMETERS.sub(r"\1=***", url)


def _unusable(url: str) -> UserError:
    return UserError(
        "CONFIG_INVALID",
        f"'{_masked(_CREDENTIALS.sub('***', url))}' is not a catalog URL.",
        hint="Use sqlite:///<file>, or postgresql://<user>@<host>/<database>.",
    )


class Database:
    """An engine with two kinds of transactions: readers see one state, writers wait in line.

    Args:
        url: From `parse_url`.
        busy_timeout: How long to wait for another writer.
    """

    def __init__(self, url: URL, *, busy_timeout: dt.timedelta = BUSY_TIMEOUT) -> None:
        self.url = url
        self.shown = _masked(url.render_as_string(hide_password=True))
        self.engine = _sqlite_engine(url, busy_timeout) if self.is_sqlite else _postgres_engine(url, busy_timeout)
        definition_changes.watch(self.engine)
        read_level: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reading = self.engine.execution_options(**read_level)
        self._writing = self.engine.execution_options(**{_WRITES: True})
        self._passing = self.engine.execution_options(**{_WRITES: True, _PASSING: True})
        # SQLite lets those sleep that find it locked, longer and longer; threads of one process can wait for each other
        self._turn: AbstractContextManager[Any] = threading.Lock() if self.is_sqlite else nullcontext()

    @property
    def is_sqlite(self) -> bool:
        """Return whether this is SQLite; else it is PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def file(self) -> Path:
        """Return the SQLite file."""
        return Path(str(self.url.database).removeprefix("file:"))

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn database errors inside the block into Headrace's."""
        try:
            yield
        except exc.SQLAlchemyError as error:
            raise fault(error, self.shown) from error
        except JSONDecodeError as error:
            raise damaged(self.shown, str(error)) from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction in which every query sees the same state."""
        with self.faults(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def write(self, *, passing: bool = False) -> Iterator[Connection]:
        """Open a transaction, committed when the block ends well, else rolled back.

        Args:
            passing: What is written may be lost when the whole machine fails, such as leases of processes that fail
                with it. SQLite need not wait for the disk then, of which others would wait for their turn. PostgreSQL,
                which can fail by itself, writes it as it does everything.
        """
        with self.faults(), self._turn, (self._passing if passing else self._writing).begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that the block commits itself.

        So a failed commit can be distinguished from a failed statement.
        """
        with self._turn, self._writing.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _sqlite_engine(url: URL, busy_timeout: dt.timedelta) -> Engine:
    engine = sa.create_engine(url, connect_args={"timeout": busy_timeout.total_seconds()})

    @event.listens_for(engine, "connect")
    def _prepare(raw: Any, _record: object) -> None:
        raw.isolation_level = None  # the driver must not begin transactions behind our back: `_begin` does
        _write_ahead(raw, busy_timeout)
        raw.execute("PRAGMA foreign_keys = ON").close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer takes its place in line at once: upgrading a read transaction later could only fail as busy.
        options = connection.get_execution_options()
        writes = options.get(_WRITES)
        if writes:  # whoever used this connection before may have wanted the other
            connection.exec_driver_sql(f"PRAGMA synchronous = {'NORMAL' if options.get(_PASSING) else 'FULL'}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _write_ahead(raw: sqlite3.Connection, busy_timeout: dt.timedelta) -> None:
    """Switch SQLite's journal to a write-ahead log, a setting that the file keeps.

    SQLite reads the file's mode before it locks the file to change it, and a reader that wants to write never waits for
    its turn: of two that open a new file at once, one is told at once that it is busy, however long it would wait.
    Source: <https://sqlite.org/c3ref/busy_handler.html>, on deadlocks.
    """
    end = time.monotonic() + busy_timeout.total_seconds()
    while True:
        try:
            return raw.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(0.01)


_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""libpq's options, by which a server that has vanished is noticed within a minute; by itself it takes hours."""


def patience(url: URL) -> dict[str, int]:
    """Return timeouts for a connection, but for those that the URL sets itself."""
    return {name: value for name, value in _PATIENCE.items() if name not in url.query}


def _postgres_engine(url: URL, busy_timeout: dt.timedelta) -> Engine:
    require("psycopg", "A catalog in PostgreSQL", "postgres")
    engine = sa.create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True, connect_args=patience(url))
    milliseconds = int(busy_timeout.total_seconds() * 1000)

    @event.listens_for(engine, "connect")
    def _prepare(raw: Any, _record: object) -> None:
        raw.execute(f"SET lock_timeout = {milliseconds}")
        raw.commit()

    return engine
