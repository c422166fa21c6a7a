"""Servers that hold a connection and say nothing: processes that are stopped, and such as are only busy."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower, truth
from kit.waiting import until

from headrace.errors import EnvironmentFault
from headrace.sinks.postgres.target_connection import connected as to_a_sink
from headrace.sources.postgres.connection import Connection, connected
from headrace.sources.postgres.wal import slots
from headrace.sources.postgres.wal.pgoutput_columns import Bytes
from headrace.watched_connections import ServerSilent


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("QUIET", 0.3), ("ANSWER", 2.0), ("IDLE", 1.5), ("COMPUTING", 1.5)):
        monkeypatch.setattr(f"headrace.watched_connections.{name}_SECONDS", seconds)


@contextmanager
def stopped(processes: Sequence[int]) -> Iterator[None]:
    """Processes that hang until the end of the block; what would hang with them is ended by then."""
    rescue = threading.Timer(60, _signal, (processes, signal.SIGCONT))
    rescue.start()
    try:
        _signal(processes, signal.SIGSTOP)
        yield
    finally:
        rescue.cancel()
        _signal(processes, signal.SIGCONT)


def when_stopped(connection: Connection, hanging: list[int]) -> str:
    """Stop the process of a connection; gives a statement for it."""
    hanging.append(connection.info.backend_pid)
    _signal(hanging, signal.SIGSTOP)
    return "SELECT 1"


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        os.kill(process, number)


@pytest.mark.parametrize(
    ("opened", "code"), [(connected, "SOURCE_LOST"), (to_a_sink, "SINK_LOST")], ids=["source", "sink"]
)
def test_a_process_that_hangs_is_given_up(
    url: str, opened: Callable[[str], AbstractContextManager[Connection]], code: str
) -> None:
    hanging: list[int] = []
    with pytest.raises(EnvironmentFault, match=code) as told, opened(url) as connection, stopped(hanging):
        connection.execute(when_stopped(connection, hanging))
    assert isinstance(told.value.__cause__, ServerSilent)
    assert "hangs" in told.value.message
    assert f"process {hanging[0]} " in (told.value.detail or "")
    assert told.value.retryable


def test_a_server_that_hangs_as_a_whole_is_given_up_sooner(
    server: LogicalServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.watched_connections.IDLE_SECONDS", 3600.0)
    postmaster = psutil.Process(int((server.folder / "postmaster.pid").read_text().split()[0]))
    with connected(f"{url}&connect_timeout=2") as connection:
        processes = [process.pid for process in (postmaster, *postmaster.children(recursive=True))]
        with pytest.raises(ServerSilent, match="answers nobody else"), stopped(processes):
            connection.execute("SELECT 1")


def test_a_process_that_is_busy_or_waits_for_a_lock_is_not_given_up(url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE orders (id int)")
    busy = "FOR i IN 1..60 LOOP PERFORM pg_sleep(0.05); PERFORM count(*) FROM generate_series(1, 50000); END LOOP"
    with connected(url) as connection:
        connection.execute(f"DO $$ BEGIN {busy}; END $$")
        with psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE orders")
            threading.Timer(4, holder.rollback).start()
            since = time.monotonic()
            connection.execute("SELECT FROM public.orders")
            assert time.monotonic() - since > 3


def test_a_process_that_computes_is_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is seen to wait for nothing, each time."""
    monkeypatch.setattr("headrace.watched_connections.COMPUTING_SECONDS", 3600.0)
    sums = "SELECT sum(n) INTO total FROM generate_series(1, 1000) AS s(n)"
    until_then = "WHILE clock_timestamp() < now() + interval '3 seconds' LOOP"
    with connected(url) as connection:
        connection.execute(f"DO $$ DECLARE total numeric; BEGIN {until_then} {sums}; END LOOP; END $$")


def test_a_landing_from_a_process_that_hangs_ends_and_the_next_one_goes_on(
    url: str, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    follower = Follower(url, tmp_path / "spool", "orders")
    follower.begin()
    db.execute("INSERT INTO orders SELECT generate_series(1, 1000)")
    peek, hanging = slots.peek, list[int]()

    def stops(connection: Connection, *given: Any, **named: Any) -> Iterator[Bytes]:
        hanging.append(connection.info.backend_pid)
        _signal(hanging, signal.SIGSTOP)
        return peek(connection, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(slots, "peek", stops)
        rescue = threading.Timer(60, _signal, (hanging, signal.SIGCONT))
        rescue.start()
        try:
            with pytest.raises(EnvironmentFault, match="SOURCE_LOST") as told:
                follower.land()
        finally:
            rescue.cancel()
            _signal(hanging, signal.SIGCONT)
    assert f"process {hanging[0]} " in (told.value.detail or "")
    until(lambda: not db.execute("SELECT FROM pg_replication_slots WHERE active").fetchall())
    follower.land()
    assert follower.rows("orders") == truth(db, "orders")
    follower.capture().remove()
