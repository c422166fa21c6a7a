"""Tells which transactions keep an installation waiting, and since when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context

import psycopg

from headrace import units
from headrace.errors import HeadraceError
from headrace.sources.postgres.connection import Connection, busy, connected

Told = Callable[[str], None]

FIRST_SECONDS, EVERY_SECONDS = 1.0, 5.0
"""After so long it is told for the first time, and then again."""

_DESCRIBED = """
SELECT DISTINCT CASE WHEN p.pid = 0 THEN 'a prepared transaction (pg_prepared_xacts)'
        ELSE 'process ' || p.pid || coalesce(' (' || nullif(concat_ws(', ',
            nullif(a.application_name, ''), 'role ' || a.usename, 'from ' || host(a.client_addr)), '') || ')', '') END,
    extract(epoch FROM clock_timestamp() - a.xact_start)::float8
FROM ({}) AS p (pid) LEFT JOIN pg_stat_activity a ON a.pid = p.pid
"""
_BLOCKING = _DESCRIBED.format("SELECT unnest(pg_blocking_pids(%s))")
_WRITING = _DESCRIBED.format(
    "SELECT coalesce(pid, 0) FROM pg_locks WHERE relation = %s AND granted AND pid IS DISTINCT FROM pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND mode NOT IN ('AccessShareLock', 'RowShareLock')"
)


def blocking(connection: Connection, pid: int) -> str:
    """Describe the transactions that a process of the server waits for; empty without any."""
    return _described(connection, _BLOCKING, pid)


def writing(connection: Connection, oid: int) -> str:
    """Describe the open transactions that have written to a table; empty without any."""
    return _described(connection, _WRITING, oid)


def _described(connection: Connection, query: str, value: int) -> str:
    rows = connection.execute(query, (value,)).fetchall()
    return ", and ".join(
        str(who) if since is None else f"{who}, whose transaction began {units.span(float(str(since)))} ago"
        for who, since in rows
    )


@contextmanager
def telling_whom(url: str, pid: int, told: Told) -> Iterator[None]:
    """Tell whom a process of the server waits for, while it does.

    Args:
        url: The connection string.
        pid: The process.
        told: Told in words.

    Raises:
        EnvironmentFault: `SOURCE_BUSY`, with whom it waited for.
    """
    ended, last = threading.Event(), list[str]()

    def watch() -> None:
        wait = FIRST_SECONDS
        with suppress(HeadraceError, psycopg.Error):  # the process has its own connection, and its own errors
            while not ended.wait(wait):
                with connected(url) as connection:
                    if who := blocking(connection, pid):
                        last[:] = [who]
                        told(f"wait for {who}")
                wait = EVERY_SECONDS

    thread = threading.Thread(target=copy_context().run, args=(watch,), name="headrace-waiting", daemon=True)
    thread.start()
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise busy(error, *last) from error
    finally:
        ended.set()
        thread.join()


class Waiting:
    """Tells who writes to a table that triggers wait for, now and then.

    Args:
        oid: The table.
        name: Its name.
        told: Told in words.
    """

    def __init__(self, oid: int, name: str, told: Told) -> None:
        self._oid, self._name, self._told = oid, name, told
        self._next = time.monotonic() + FIRST_SECONDS

    def __call__(self, connection: Connection) -> None:
        """Tell, if it was not told a moment ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_SECONDS
        if who := writing(connection, self._oid):
            self._told(f"wait to install triggers on {self._name}, for {who}")
