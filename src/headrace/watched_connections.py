"""Connections to PostgreSQL that are given up when the server says nothing and does nothing.

A host that has vanished is noticed by libpq (`PATIENCE`). Where a process hangs (a stopped container, a disk that does
not answer), its kernel goes on to acknowledge, and whoever waits would wait for ever. Silence alone proves nothing: a
server may decode its log, or scan a table, for an hour before it has a word to say. So it is asked, over another
connection, what the process does. One that works is seen to now read, now write, now compute; one that hangs is not.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.rows import TupleRow

QUIET_SECONDS = 60.0
"""Silence after which a server is asked, and after each answer again."""

ANSWER_SECONDS = 10.0
"""A server that takes longer to answer that hangs as a whole."""

IDLE_SECONDS = 900.0
"""A process that says nothing, and is seen to wait for the same thing, for so long is given up, though its server
answers."""

COMPUTING_SECONDS = 12 * 3600.0
"""The same of one that is seen to wait for nothing: it may compute for hours, and hardly ever hangs there."""

SLICE_SECONDS = 0.2
"""Length of one wait: an interrupt of a thread other than the main one is noticed between two."""

LOOKS, PAUSE_SECONDS = 20, 0.02
"""Looks at a process for one answer, and seconds between two of them."""

_DOING = """
SELECT wait_event_type, wait_event, CASE WHEN wait_event_type = 'Lock' THEN clock_timestamp() END
FROM pg_catalog.pg_stat_activity WHERE pid = %s
"""
"""A process that waits for a lock is never like before: `lock_timeout` ends that."""


_COMPUTING = frozenset({(None, None, None)})


class ServerSilent(psycopg.OperationalError):
    """A server, or the process that serves a connection, hangs."""


class WatchedConnection(psycopg.Connection[TupleRow]):
    """A connection that does not wait for a server that hangs.

    Attributes:
        another: Opens another connection to the same server; None where nobody is to be asked.
    """

    another: Callable[[WatchedConnection], WatchedConnection] | None = None

    def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """Run a generator of the driver's, as its own method does.

        Raises:
            ServerSilent: The server hangs; the connection is broken then.
        """
        try:
            wanted = next(gen)
        except StopIteration as end:  # what is there already, such as most rows of a COPY, costs next to nothing
            return end.value  # type: ignore[no-any-return]
        return super().wait(self._watched(gen, wanted), *args, **kwargs)

    def _watched(self, gen: PQGen[RV], wanted: int) -> Generator[Any, Any, RV]:
        """Run a generator to its end, and look after the server while that is not ready.

        It waits by itself and yields nothing: not all versions of the driver let a generator know that time goes by.
        """
        yield from ()
        silence = _Silence(self)
        with selectors.PollSelector() as selector:
            selector.register(self.pgconn.socket, wanted)
            while True:
                found = selector.select(SLICE_SECONDS)
                if not found:
                    silence.lasts()
                    continue
                try:
                    wanted = gen.send(found[0][1])
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                except psycopg.OperationalError as error:
                    if silence.verdict:
                        raise ServerSilent(silence.verdict) from error
                    raise
                selector.modify(self.pgconn.socket, wanted)
                silence = _Silence(self)


def opened(parameters: Mapping[str, Any], **more: Any) -> WatchedConnection:
    """Open a connection in autocommit mode; its server is asked over others where it hangs.

    Args:
        parameters: Of the connection, and of the others.
        more: Parameters of the connection alone.
    """
    connection = WatchedConnection.connect(**parameters, **more, autocommit=True)
    connection.another = partial(_another, parameters)
    return connection


def _another(parameters: Mapping[str, Any], connection: WatchedConnection) -> WatchedConnection:
    """Open another connection to the server that a connection is to."""
    there = dict(parameters)
    if connection.info.host:  # of several, the one that was reached
        there.pop("hostaddr", None)
        there.update(host=connection.info.host, port=connection.info.port)
    return WatchedConnection.connect(**there, autocommit=True, prepare_threshold=None)


class _Silence:
    """The silence of a server since it last said something.

    Args:
        connection: The connection that waits for it.

    Attributes:
        verdict: The reason why the server was given up, and the connection broken; empty while it was not.
    """

    def __init__(self, connection: WatchedConnection) -> None:
        self._connection = connection
        self._since = self._asked = self._alive = time.monotonic()
        self._before = frozenset[tuple[object, ...]]()
        self._unanswered = False
        self.verdict = ""

    def lasts(self) -> None:
        """Ask the server what it does, unless that was done a while ago; give it up if it hangs."""
        patience = ANSWER_SECONDS if self._connection.another is None else QUIET_SECONDS
        if self.verdict or time.monotonic() - self._asked < patience:
            return
        doing = self._doing()
        self._asked = now = time.monotonic()
        pid, quiet = self._connection.info.backend_pid, now - self._since
        if doing is None:
            if self._unanswered or self._connection.another is None:  # one answer may be late
                self.verdict = f"For {quiet:.0f} seconds it has said nothing, and it answers nobody else either."
        elif len(doing) != 1 or (self._before and doing != self._before):  # nothing was seen where nobody could look
            self._alive = now
        elif now - self._alive >= (COMPUTING_SECONDS if doing == _COMPUTING else IDLE_SECONDS):
            self.verdict = (
                f"Its process {pid} has said nothing for {quiet:.0f} seconds, and was not seen to do anything for "
                f"{now - self._alive:.0f}."
            )
        self._unanswered, self._before = doing is None, doing or self._before
        if self.verdict:
            shut_down(self._connection)

    def _doing(self) -> frozenset[tuple[object, ...]] | None:
        """Return what the server's process is seen to do; None where the server does not answer."""
        if self._connection.another is None:
            return None
        seen = set[tuple[object, ...]]()
        try:
            with self._connection.another(self._connection) as other:
                for _ in range(LOOKS):
                    seen |= set(other.execute(_DOING, (self._connection.info.backend_pid,)).fetchall())
                    time.sleep(PAUSE_SECONDS)
        except (psycopg.errors.ConnectionTimeout, ServerSilent):
            return None
        except psycopg.Error:  # it has too many connections, or ends just now: it answers
            pass
        return frozenset(seen)


def shut_down(connection: psycopg.Connection[Any]) -> None:
    """Break a connection that a thread may be waiting for, as if the server had gone."""
    with (
        suppress(OSError, psycopg.Error),  # it is broken already
        socket.socket(fileno=os.dup(connection.pgconn.socket)) as shared,
    ):
        shared.shutdown(socket.SHUT_RDWR)
