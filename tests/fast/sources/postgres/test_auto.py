"""From triggers to the write-ahead log and back, on a real server, while others write all the time."""

from __future__ import annotations

import datetime as dt
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower, truth

from headrace.errors import EnvironmentFault
from headrace.sources.capture import Landing
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.server import server as server_of
from headrace.sources.postgres.triggers import auto_capture, install_triggers
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.triggers.trigger_capture import by_triggers
from headrace.sources.postgres.wal import slots

TOTAL = 10_000
PATIENCE = 120.0


@pytest.fixture
def bank(url: str, db: psycopg.Connection, tmp_path: Path) -> Iterator[Follower]:
    """Accounts in two tables, and what is done to them."""
    for table in ("here", "there"):
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, 50) g")
    db.execute("CREATE TABLE done (at bigserial PRIMARY KEY, who int)")
    follower = Follower(url, tmp_path / "spool", "here", "there", "done", way=AutoCapture)
    follower.begin()
    yield follower
    follower.capture().remove()


@contextmanager
def writers(url: str, count: int = 3) -> Iterator[None]:
    """Sessions that move money in transactions which overlap, some with savepoints, some rolled back."""
    done = threading.Event()

    def write(number: int) -> None:
        chance = random.Random(number)
        with psycopg.connect(url, autocommit=True) as own:
            own.execute("SET lock_timeout = '100ms'")
            while not done.is_set():
                try:
                    with own.transaction(force_rollback=chance.random() < 0.2):
                        amount, taken = chance.randint(1, 9), chance.randint(1, 50)
                        own.execute("UPDATE here SET amount = amount - %s WHERE id = %s", (amount, taken))
                        own.execute("INSERT INTO done (who) VALUES (%s)", (number,))
                        time.sleep(chance.choice((0, 0, 0.02, 0.2)))
                        with own.transaction():
                            given = chance.randint(1, 50)
                            own.execute("UPDATE there SET amount = amount + %s WHERE id = %s", (amount, given))
                except psycopg.errors.OperationalError:  # somebody else had the row
                    own.rollback()  # should that have been told as the answer to COMMIT

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def landed(bank: Follower) -> Landing:
    """Land once; money is never seen half."""
    capture = bank.capture()
    landing = capture.land(bank.position)
    bank._take(landing)
    capture.clear()
    capture.acknowledge(bank.position)
    money = sum(row[1] * n for t in ("here", "there") for row, n in bank.rows(t).items())
    assert money == TOTAL, "a transfer is seen half"
    return landing


def until(bank: Follower, triggers: bool) -> list[str]:
    """Land until the one or the other way is in force; gives what was told."""
    told: list[str] = []
    end = time.monotonic() + PATIENCE
    while by_triggers(bank.position) != triggers:
        assert time.monotonic() < end, "the way does not change"
        told += landed(bank).notices
    return told


def same(bank: Follower, db: psycopg.Connection) -> None:
    bank.land()
    for table in ("here", "there", "done"):
        assert bank.rows(table) == truth(db, table), table


def installed(db: psycopg.Connection) -> Any:
    found = (
        "SELECT (SELECT count(*) > 0 FROM pg_trigger WHERE NOT tgisinternal), "
        "(SELECT count(*) > 0 FROM pg_replication_slots WHERE database = current_database())"
    )
    return db.execute(found).fetchone()


def test_the_way_changes_under_load_and_nothing_is_lost_or_doubled(
    bank: Follower, url: str, db: psycopg.Connection
) -> None:
    assert by_triggers(bank.position)
    with writers(url):
        assert "write-ahead log" in until(bank, triggers=False)[-1]
        for _ in range(5):
            landed(bank)
    same(bank, db)
    assert installed(db) == (False, True)
    with writers(url):
        landed(bank)
        db.execute(f"SELECT pg_drop_replication_slot('{bank.slot}')")
        assert "taken anew" in until(bank, triggers=True)[-1]
        for _ in range(3):
            landed(bank)
        assert by_triggers(bank.position), "it rests"
        bank.position = {**bank.position, "rests": 0}
        until(bank, triggers=False)
        landed(bank)
    same(bank, db)
    assert installed(db) == (False, True)


def test_a_slot_that_cannot_keep_up_is_left_in_time(
    bank: Follower, url: str, db: psycopg.Connection, server: LogicalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_capture, "PATIENCE", 60.0)
    until(bank, triggers=False)
    with server.connect("postgres") as admin:
        admin.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '96MB'")
        admin.execute("SELECT pg_reload_conf()")
    try:
        with writers(url):
            db.execute("CREATE TABLE noise AS SELECT g, repeat('x', 200) FROM generate_series(1, 350000) g")
            assert "cannot keep up" in until(bank, triggers=True)[-1]
            for _ in range(3):
                landed(bank)
        same(bank, db)
        assert installed(db) == (True, False)
    finally:
        with server.connect("postgres") as admin:
            admin.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            admin.execute("SELECT pg_reload_conf()")


def test_a_hand_over_that_is_not_published_is_begun_again(bank: Follower, db: psycopg.Connection) -> None:
    db.execute("UPDATE here SET amount = amount - 1; UPDATE there SET amount = amount + 1")
    assert not by_triggers(bank.capture().land(bank.position).position)  # killed then
    db.execute("INSERT INTO done (who) VALUES (1)")
    until(bank, triggers=False)
    same(bank, db)


def test_whoever_may_not_use_the_log_stays_with_triggers(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    role = f"auto_{url.partition('?')[0].rpartition('/')[2]}"
    db.execute(f"CREATE ROLE {role} LOGIN; CREATE TABLE t (id int); GRANT SELECT, TRIGGER ON t TO {role}")
    db.execute(f"GRANT CREATE ON DATABASE {db.info.dbname} TO {role}")
    follower = Follower(url.replace("postgres@", f"{role}@"), tmp_path / "spool", "t", way=AutoCapture)
    follower.begin()
    for turn in range(2):
        db.execute(f"INSERT INTO t VALUES ({turn})")
        follower.land()
    assert by_triggers(follower.position)
    assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()


def test_tables_are_published_under_the_names_they_have_by_then(
    bank: Follower, url: str, db: psycopg.Connection
) -> None:
    db.execute("ALTER TABLE done RENAME TO former; CREATE TABLE done (at int PRIMARY KEY, who int)")
    db.execute("INSERT INTO former (who) VALUES (1); INSERT INTO done VALUES (7, 7)")
    until(bank, triggers=False)
    db.execute("INSERT INTO former (who) VALUES (2)")
    bank.land()
    assert bank.rows("done") == truth(db, "former")


def test_triggers_come_back_to_tables_under_the_names_they_have_by_then(bank: Follower, db: psycopg.Connection) -> None:
    until(bank, triggers=False)
    db.execute("ALTER TABLE done RENAME TO former; CREATE TABLE done (at int PRIMARY KEY, who int)")
    capture = bank.capture()
    assert isinstance(capture, AutoCapture)
    with connected(bank.url) as connection:
        _, position = capture._triggers.installed_at(server_of(connection))
        assert "public.former" in position["names"].values()
        db.execute("DROP TABLE former")
        with pytest.raises(EnvironmentFault, match="SOURCE_IN_MOTION"):
            capture._triggers.installed_at(server_of(connection))


def test_a_slot_in_danger_is_landed_where_triggers_cannot_be_put(
    bank: Follower, url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(bank, triggers=False)
    db.execute("INSERT INTO done (who) VALUES (1)")
    monkeypatch.setattr(slots.Slot, "endangered", True)
    monkeypatch.setattr(auto_capture, "PATIENCE", 0.5)
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE there IN ROW EXCLUSIVE MODE")
        landed(bank)
        assert not by_triggers(bank.position)
        assert bank.rows("done") == truth(db, "done")


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "not seen"])
def test_a_slot_in_danger_is_landed_where_no_other_slot_is_free(
    bank: Follower, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    until(bank, triggers=False)
    db.execute("INSERT INTO done (who) VALUES (1)")
    monkeypatch.setattr(slots.Slot, "endangered", True)
    if not seen:  # the last one is taken by somebody else just now
        monkeypatch.setattr(auto_capture, "_slots_are_free", lambda _: True)
    all_others = "generate_series(1, current_setting('max_replication_slots')::int - %s)"
    (taken,) = db.execute("SELECT count(*) FROM pg_replication_slots").fetchone() or (0,)
    db.execute(f"SELECT pg_create_physical_replication_slot('taken_' || n) FROM {all_others} n", (taken,))
    try:
        landed(bank)
    finally:
        db.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'physical'")
    assert not by_triggers(bank.position)
    assert bank.rows("done") == truth(db, "done")
    assert installed(db) == (False, True)


def test_whole_old_rows_in_the_log_are_no_other_shape(bank: Follower, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE done REPLICA IDENTITY FULL; INSERT INTO done (who) VALUES (1)")
    until(bank, triggers=False)
    db.execute("DELETE FROM done; INSERT INTO done (who) VALUES (2)")
    bank.land()
    assert bank.rows("done") == truth(db, "done")


def test_a_hand_over_that_failed_rests_also_when_nothing_was_changed(
    bank: Follower, url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.renew("done")
    monkeypatch.setattr(auto_capture, "BRIEFLY", "100ms")
    with psycopg.connect(url) as other:
        other.execute("SELECT pg_current_xact_id()")
        landing = landed(bank)
    assert (landing.keep_position, landing.tables) == (True, ())
    rests = bank.position["rests"]
    assert rests > time.time()
    assert not landed(bank).keep_position
    bank.renew("done")
    assert (by_triggers(bank.position), bank.position["rests"]) == (True, rests)


def test_tables_are_added_to_a_source_whose_slot_is_lost(bank: Follower, db: psycopg.Connection) -> None:
    until(bank, triggers=False)
    db.execute(f"SELECT pg_drop_replication_slot('{bank.slot}')")
    db.execute("CREATE TABLE more (id int); INSERT INTO more VALUES (1); INSERT INTO done (who) VALUES (1)")
    assert "taken anew" in bank.renew("more").notices[-1]
    assert by_triggers(bank.position)
    assert [bank.rows(t) for t in ("more", "done")] == [truth(db, t) for t in ("more", "done")]


def test_the_slot_is_dropped_where_triggers_cannot_be(
    bank: Follower, url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = bank.capture()
    assert not by_triggers(capture.land(bank.position).position)
    assert installed(db) == (True, True)
    monkeypatch.setattr(install_triggers, "PATIENCE_SECONDS", 0.5)
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE there IN ROW EXCLUSIVE MODE")
        with pytest.raises(EnvironmentFault, match="SOURCE_BUSY"):
            capture.remove()
    assert installed(db) == (True, False)


def test_a_slot_that_a_killed_landing_still_holds_keeps_nothing_from_being_landed(
    bank: Follower, url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_capture, "PAUSE", dt.timedelta(0))
    db.execute("CREATE PUBLICATION empty")  # before 18, a session whose publication is missing ends at the first change
    with closing(psycopg.connect(url, replication="database", autocommit=True)) as other:
        other.execute(f"CREATE_REPLICATION_SLOT {bank.slot} LOGICAL pgoutput")
        reading = f"START_REPLICATION SLOT {bank.slot} LOGICAL 0/0 (proto_version '1', publication_names 'empty')"
        other.pgconn.send_query(reading.encode())
        assert other.pgconn.get_result() is not None
        for turn in range(2):
            db.execute("INSERT INTO done (who) VALUES (%s)", (turn,))
            landed(bank)
            assert (by_triggers(bank.position), bank.rows("done")) == (True, truth(db, "done"))
    until(bank, triggers=False)
    same(bank, db)
