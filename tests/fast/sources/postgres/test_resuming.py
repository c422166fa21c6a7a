"""A first snapshot goes on where a process was killed in it, and what it has then is one moment of the database."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.long_tests import LONG
from kit.mirrored import Follower, truth
from kit.pg_snapshot_killed import KILLED, PAGES, begin_until

from headrace.errors import UserError
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.snapshot import snapshots
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal import slots
from headrace.sources.postgres.wal.pgoutput_columns import Bytes
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

WAYS = (PostgresCapture, TriggerCapture)
SEEDS = range(20 if LONG else 1)
TABLES = ("t", "u", "bag", "parted")
SCHEMA = """
CREATE TABLE t (id int PRIMARY KEY, n int, body text, filler text);
ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
INSERT INTO t SELECT g, 0, CASE WHEN g % 3 = 0 THEN repeat('b', 3000) END, repeat('f', 200)
    FROM generate_series(1, 900) g;
CREATE TABLE u (kind char(4) NOT NULL, n numeric NOT NULL, v text);
CREATE UNIQUE INDEX u_key ON u (n, kind);
ALTER TABLE u REPLICA IDENTITY USING INDEX u_key;
INSERT INTO u SELECT 'k' || g % 3, g, repeat('u', 100) FROM generate_series(1, 600) g;
CREATE TABLE bag (x int, y text);
ALTER TABLE bag REPLICA IDENTITY FULL;
INSERT INTO bag SELECT g % 9, 'y' FROM generate_series(1, 2000) g;
CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (100) TO (MAXVALUE);
INSERT INTO parted SELECT g, 'p' FROM generate_series(1, 200) g
"""


@pytest.fixture
def db(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    monkeypatch.setattr(snapshots, "PART_PAGES", PAGES)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA)
        yield connection


def change(db: psycopg.Connection, chance: random.Random) -> None:
    """Rows that move to other pages, also with large values that stay; keys that come, go and change places."""
    low = chance.randint(1, 800)
    db.execute("UPDATE t SET n = n + 1, filler = repeat('g', 150) WHERE id BETWEEN %s AND %s", (low, low + 60))
    db.execute("DELETE FROM t WHERE id BETWEEN %s AND %s", (low + 70, low + 90))
    db.execute("VACUUM t")  # makes room on early pages for what was on later ones
    a, b = chance.sample(range(1, 900), 2)
    with db.transaction():
        for old, new in ((a, -1), (b, a), (-1, b)):
            db.execute("UPDATE t SET id = %s WHERE id = %s", (new, old))
    new = [chance.randint(1000, 1100) for _ in range(5)]
    db.execute("INSERT INTO t SELECT g, 7, 'new', '' FROM unnest(%s::int[]) g ON CONFLICT DO NOTHING", (new,))
    db.execute("DELETE FROM t WHERE id = ANY(%s)", (chance.sample(range(1000, 1101), 60),))
    db.execute("UPDATE u SET n = n * 1.0 WHERE n > %s", (chance.randint(1, 600),))  # the same key, written otherwise
    db.execute("UPDATE u SET v = 'v' WHERE n < %s", (chance.randint(1, 600),))
    db.execute("DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE x = %s LIMIT 5)", (chance.randint(0, 8),))
    db.execute("UPDATE parted SET id = id + 1000, v = 'moved' WHERE id = %s", (chance.randint(1, 99),))
    db.execute("UPDATE parted SET v = v || 'x' WHERE id < %s", (chance.randint(1, 300),))


def goes_on(follower: Follower) -> str | None:
    """Begin, or go on; what is told of the parts that are there."""
    told: list[str] = []
    capture = follower.capture()
    capture._told = told.append  # type: ignore[union-attr]
    follower._take(capture.begin())
    capture.clear()
    capture.acknowledge(follower.position)
    return next((text for text in told if "goes on" in text), None)


def same(follower: Follower, db: psycopg.Connection, tables: tuple[str, ...] = TABLES) -> None:
    for table in tables:
        as_kept = "(SELECT kind, n::text, v FROM u) AS u" if table == "u" else table
        assert follower.rows(table) == truth(db, as_kept), table


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_again_and_again(
    url: str, db: psycopg.Connection, tmp_path: Path, seed: int, way: type[PostgresCapture]
) -> None:
    chance = random.Random(seed)
    assert begin_until(chance.randint(10, 18), url, tmp_path, TABLES, way) == KILLED
    for _ in range(2):
        change(db, chance)
        assert begin_until(chance.randint(1, 20), url, tmp_path, TABLES, way) == KILLED
    change(db, chance)
    follower = Follower(url, tmp_path, *TABLES, way=way)
    assert "parts are there" in (goes_on(follower) or "")
    same(follower, db)
    change(db, chance)
    follower.land()
    same(follower, db)
    follower.capture().remove()
    assert not list(tmp_path.rglob("*.parquet"))


def test_what_goes_on_notices_that_its_slot_is_moved(
    url: str, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peek = slots.peek

    def late(connection: Connection, slot: str, *said: Any, **more: Any) -> Iterator[Bytes]:
        db.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", (slot,))
        yield from peek(connection, slot, *said, **more)

    assert begin_until(10, url, tmp_path, ("t", "u"), PostgresCapture) == KILLED
    db.execute("UPDATE t SET n = n + 1 WHERE id < 100")
    monkeypatch.setattr(slots, "peek", late)
    with pytest.raises(UserError, match="Somebody else moved"):
        goes_on(Follower(url, tmp_path, "t", "u"))
    monkeypatch.undo()
    follower = Follower(url, tmp_path, "t", "u")
    assert goes_on(follower) is None
    same(follower, db, ("t", "u"))


@pytest.mark.parametrize("way", WAYS)
def test_everything_was_copied_and_nothing_published(
    url: str, db: psycopg.Connection, tmp_path: Path, way: type[PostgresCapture]
) -> None:
    first = Follower(url, tmp_path, *TABLES, way=way)
    first.capture().begin()
    change(db, random.Random(1))
    follower = Follower(url, tmp_path, *TABLES, way=way)
    assert goes_on(follower)
    same(follower, db)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "altered",
    [
        "ALTER TABLE t ADD COLUMN more int DEFAULT 3",
        "ALTER TABLE t DROP COLUMN filler",
        "TRUNCATE t; INSERT INTO t SELECT g, 1, 'again', '' FROM generate_series(1, 50) g",
        "VACUUM FULL t",
        "ALTER TABLE t ADD COLUMN brief int; UPDATE t SET brief = 1; ALTER TABLE t DROP COLUMN brief",
        "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (id, n)",
    ],
)
def test_a_table_that_is_another_one_by_now_is_copied_from_its_beginning(
    url: str, db: psycopg.Connection, tmp_path: Path, altered: str, way: type[PostgresCapture]
) -> None:
    assert begin_until(10, url, tmp_path, ("t", "u"), way) == KILLED
    for statement in altered.split("; "):
        db.execute(statement)
    db.execute("UPDATE t SET n = n + 1 WHERE id < 100")
    follower = Follower(url, tmp_path, "t", "u", way=way)
    goes_on(follower)
    same(follower, db, ("t", "u"))
    db.execute("UPDATE t SET n = n + 1; DELETE FROM u WHERE n < 10")
    follower.land()
    same(follower, db, ("t", "u"))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_known_since_the_beginning_is_not_used(
    url: str, db: psycopg.Connection, tmp_path: Path, way: type[PostgresCapture]
) -> None:
    assert begin_until(10, url, tmp_path, ("t",), way) == KILLED
    Follower(url, tmp_path, "t", way=way).capture().remove()
    db.execute("UPDATE t SET n = 9")
    follower = Follower(url, tmp_path, "t", way=way)
    assert goes_on(follower) is None
    same(follower, db, ("t",))


@pytest.mark.parametrize("way", WAYS)
def test_what_was_published_is_over(
    url: str, db: psycopg.Connection, tmp_path: Path, way: type[PostgresCapture]
) -> None:
    follower = Follower(url, tmp_path, "t", way=way)
    follower._take(follower.capture().begin())  # its files stay: killed before they were removed
    db.execute("DELETE FROM t WHERE id < 100")
    follower.land()
    assert goes_on(follower) is None  # a new snapshot of a source that has landed something
    same(follower, db, ("t",))
