"""`headrace source status`: what waits, who reads the slot, and what went wrong last, as a real server tells."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from catalog_kit.clock import START, ManualClock
from click.testing import CliRunner
from kit.house import House
from kit.logical import LogicalServer
from kit.mirrored import Follower
from kit.waiting import until
from prometheus_client.parser import text_string_to_metric_families
from psycopg.pq import ExecStatus

from headrace.cli.main import app
from headrace.errors import EnvironmentFault
from headrace.results.source_results import SourceHealth
from headrace.serve.monitoring.project_monitor import ProjectMonitor
from headrace.sources.postgres.health import backlog
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

WAYS: dict[str, type[PostgresCapture | AutoCapture]] = {"wal": PostgresCapture, "trigger": TriggerCapture}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def house(server: LogicalServer, tmp_path: Path, clock: ManualClock) -> House:
    return House(server, tmp_path, clock)


@pytest.fixture
def db(house: House) -> Iterator[psycopg.Connection]:
    with psycopg.connect(house.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE beside (id int PRIMARY KEY)")
        yield connection


@contextmanager
def followed(house: House, folder: Path, capture: str) -> Iterator[Follower]:
    """A source of the house that was landed once."""
    follower = Follower(house.url, folder / "spool", "orders", "beside", way=WAYS[capture])
    follower.begin()
    house.follow("shop", follower, capture=capture)
    yield follower
    follower.capture().remove()


def status(house: House) -> SourceHealth:
    return house.sources().status("shop")


@pytest.mark.parametrize("capture", WAYS)
def test_what_waits_is_counted(house: House, db: psycopg.Connection, tmp_path: Path, capture: str) -> None:
    with followed(house, tmp_path, capture):
        nothing = status(house)
        assert (nothing.lag_transactions, nothing.lag_seconds) == (0, 0.0)
        db.execute("CREATE TABLE ignored (id int); INSERT INTO ignored VALUES (1)")
        db.execute("BEGIN; INSERT INTO orders VALUES (2); INSERT INTO beside VALUES (2); COMMIT")
        db.execute("TRUNCATE beside")
        with psycopg.connect(house.url) as other:
            other.execute("INSERT INTO orders VALUES (3)")  # not committed, so it does not wait
            found = status(house)
            other.rollback()
        assert (found.lag_transactions, found.lag_transactions_at_least) == (2, False)
        assert found.lag_seconds is not None
        assert 0 < found.lag_seconds < 60
        assert found.lag_seconds_at_most is (capture == "trigger")
        assert (found.waiting_rows, found.lag_bytes) == ((2, None) if capture == "trigger" else (None, found.lag_bytes))
        assert house.slots() == (0 if capture == "trigger" else 1), "a copy of the slot was left"


def test_times_of_commits_are_told_where_the_server_keeps_them(
    house: House, db: psycopg.Connection, server: LogicalServer, tmp_path: Path
) -> None:
    with followed(house, tmp_path, "trigger"):
        db.execute("INSERT INTO orders VALUES (2)")
        bound = status(house).lag_seconds
        with server.connect("postgres") as admin:
            admin.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        server.restart("fast")
        try:
            with psycopg.connect(house.url, autocommit=True) as again:
                again.execute("INSERT INTO orders VALUES (3)")
                assert status(house).lag_seconds_at_most is False
                assert bound is not None
        finally:
            with server.connect("postgres") as admin:
                admin.execute("ALTER SYSTEM RESET track_commit_timestamp")
            server.restart("fast")


@pytest.mark.parametrize(("name", "value", "rows"), [("COUNTED", 1, 30_000), ("PATIENCE", "20ms", 200_000)])
def test_counting_ends_after_a_while(
    house: House,
    db: psycopg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: object,
    rows: int,
) -> None:
    monkeypatch.setattr(backlog, name, value)
    with followed(house, tmp_path, "wal"):
        db.execute("INSERT INTO orders SELECT generate_series(2, %s)", (rows,))
        db.execute("INSERT INTO beside VALUES (2)")
        found = status(house)
        assert (found.lag_transactions, found.lag_transactions_at_least) in [(1, True), (None, False)]
        assert (name, found.lag_transactions) != ("COUNTED", None)
        assert found.lag_bytes
        assert house.slots() == 1


@pytest.mark.parametrize(("name", "value"), [("COUNTED", 100), ("PATIENCE", "1ms")])
def test_counting_change_tables_ends_after_a_while(
    house: House, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    with followed(house, tmp_path, "trigger"):
        for start in range(0, 300_000, 100_000):
            db.execute("INSERT INTO orders SELECT generate_series(%s, %s)", (start + 2, start + 100_001))
        db.execute("INSERT INTO beside VALUES (2)")
        assert status(house).waiting_rows == 100_000 + 1, "of each table so many at most"
        monkeypatch.setattr(backlog, name, value)
        found = status(house)
        if name == "COUNTED" or found.waiting_rows is not None:
            assert (found.waiting_rows, found.lag_transactions_at_least) in [(101, True), (2, True)]
            assert found.lag_transactions == 2
            assert found.lag_seconds
        else:  # it took longer to find one row of each
            assert (found.lag_transactions, found.lag_seconds) == (None, None)


@contextmanager
def reading(house: House, slot: str) -> Iterator[None]:
    """Somebody who reads the slot as a subscription does."""
    other = psycopg.connect(house.url, replication="database", application_name="thief", autocommit=True)
    asked = f"START_REPLICATION SLOT {slot} LOGICAL 0/0 (proto_version '1', publication_names '{slot}')"
    try:
        other.pgconn.send_query(asked.encode())
        result = other.pgconn.get_result()
        assert result is not None
        assert result.status == ExecStatus.COPY_BOTH
        yield
    finally:
        other.close()
        until(lambda: not status(house).slot_active_by)  # the server takes a moment to notice


def test_whoever_else_reads_the_slot_is_named(house: House, db: psycopg.Connection, tmp_path: Path) -> None:
    with followed(house, tmp_path, "wal") as follower:
        assert status(house).slot_active_by is None
        with reading(house, follower.slot):
            by = status(house).slot_active_by or ""
            assert "thief" in by
            assert "role postgres" in by
            db.execute("INSERT INTO orders VALUES (2)")
            assert status(house).lag_transactions == 1
            with pytest.raises(EnvironmentFault, match="SLOT_IN_USE") as caught:
                follower.land()
            assert caught.value.retryable
            assert "PID" in (caught.value.detail or "")


def test_the_last_error_is_told_until_it_is_over(
    house: House, db: psycopg.Connection, tmp_path: Path, clock: ManualClock
) -> None:
    with followed(house, tmp_path, "wal") as follower:
        assert status(house).last_error is None
        with reading(house, follower.slot):
            db.execute("CREATE TABLE ignored (id int); INSERT INTO ignored VALUES (1)")
            for _ in range(3):
                with pytest.raises(EnvironmentFault, match="SLOT_IN_USE"):
                    house.sources().land("shop")
                clock.advance(3600)
        error = status(house).last_error
        assert error is not None
        assert (error.code, error.since, error.at, error.over) == (
            "SLOT_IN_USE",
            START,
            START + dt.timedelta(hours=2),
            None,
        )
        assert error.remedy
        house.sources().land("shop")
        error = status(house).last_error
        assert error is not None
        assert error.over == START + dt.timedelta(hours=3)


def test_what_a_person_and_a_program_see(house: House, db: psycopg.Connection, tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("")
    with followed(house, tmp_path, "wal") as follower:
        db.execute("INSERT INTO orders VALUES (2)")
        db.execute(f"SELECT pg_drop_replication_slot('{follower.slot}')")
        with pytest.raises(Exception, match="SLOT_LOST"):
            house.sources().land("shop")
        text = CliRunner().invoke(app, ["--project", str(tmp_path), "source", "status", "shop"]).output
        for part in ("STOPPED", "missing", "Last error", "[SLOT_LOST]", "What to do:", "source resnapshot"):
            assert part in text
        found = json.loads(
            CliRunner().invoke(app, ["--project", str(tmp_path), "source", "status", "shop", "--json"]).stdout
        )
        assert (found["lag_transactions"], found["slot_status"]) == (None, None)
        assert found["last_error"]["code"] == "SLOT_LOST"


@pytest.mark.parametrize("capture", WAYS)
def test_a_healthy_source_is_shown_whole(house: House, db: psycopg.Connection, tmp_path: Path, capture: str) -> None:
    (tmp_path / "headrace.toml").write_text("")
    with followed(house, tmp_path, capture):
        db.execute("INSERT INTO orders VALUES (2)")
        text = CliRunner().invoke(app, ["--project", str(tmp_path), "source", "status", "shop"]).output
        parts = ("Change tables", "1 rows wait", "at most") if capture == "trigger" else ("Read by", "Kept log")
        for part in (*parts, "Behind", "1 transactions", "On the way"):
            assert part in text


def test_metrics_tell_what_the_server_keeps(house: House, db: psycopg.Connection, tmp_path: Path) -> None:
    with followed(house, tmp_path, "wal"):
        db.execute("INSERT INTO orders VALUES (2)")
        monitor = ProjectMonitor(house.settings)

        def scraped() -> dict[str, float]:
            families = text_string_to_metric_families(monitor.metrics().decode())
            return {s.name: s.value for f in families for s in f.samples if s.labels.get("source") == "shop"}

        until(lambda: "headrace_source_lag_seconds" in scraped())
        found, told = scraped(), status(house)
        assert found["headrace_source_up"] == 1
        assert 0 < found["headrace_source_lag_seconds"] <= (told.lag_seconds or 0)
        assert 0 < found["headrace_source_lag_bytes"] <= told.lag_bytes
        assert found["headrace_source_kept_bytes"] > 0
        monitor.close()
        house.reachable(False)
        blind = ProjectMonitor(house.settings)
        until(lambda: b'headrace_source_up{source="shop"} 0.0' in blind.metrics())
        assert b"headrace_source_lag_seconds{" not in blind.metrics(), "what is not known is left out"
        blind.close()
        house.reachable(True)
