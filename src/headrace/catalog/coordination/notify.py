"""Wakes schedulers by PostgreSQL's LISTEN and NOTIFY when definitions or pauses change.

A notification is only a nudge: who is nudged looks, and who misses one (its connection broke) looks soon anyway, as
everybody does on SQLite, which has nothing of the kind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection

from headrace.catalog.database import patience

CHANNEL = "headrace_changed"

LISTEN_SECONDS = 1.0
"""An end is noticed after that time at most."""

RECONNECT_SECONDS = 2.0
"""Time until a lost connection is made again; schedulers look by themselves meanwhile."""


def wake(connection: Connection) -> None:
    """Nudge who listens, if and when the transaction commits."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text(f"NOTIFY {CHANNEL}"))


@contextmanager
def listening(url: URL, woken: Callable[[], None]) -> Iterator[None]:
    """Listen in a thread of its own while the block lasts.

    Args:
        url: A PostgreSQL database.
        woken: Called in that thread when something changed, or may have while nobody listened.
    """
    import psycopg  # not above: commands that look at a SQLite catalog shall not pay for it

    ended = threading.Event()
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)

    def keep_listening() -> None:
        while not ended.is_set():
            with suppress(psycopg.Error):  # an outage is told by who works with the catalog
                _listen(address, patience(url), woken, ended)
            ended.wait(RECONNECT_SECONDS)

    thread = threading.Thread(target=keep_listening, name="headrace-listen", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()  # the thread sees it within a second; nobody has to wait for that


def _listen(address: str, options: Mapping[str, int], woken: Callable[[], None], ended: threading.Event) -> None:
    import psycopg
    from psycopg.conninfo import make_conninfo

    with psycopg.connect(make_conninfo(address, **options), autocommit=True) as connection:
        connection.execute(f"LISTEN {CHANNEL}")
        woken()
        while not ended.is_set():
            if any([True for _ in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1)]):
                woken()
