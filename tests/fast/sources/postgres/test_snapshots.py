"""Snapshots in parts, side by side, of a table under load."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower
from kit.sharded import ShardFollower

from headrace.errors import EnvironmentFault, HeadraceError
from headrace.names import LAKE, TableName
from headrace.sources.postgres.citus import shard_copy
from headrace.sources.postgres.citus.cluster_catalog import Placement, Shard
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import server as server_of
from headrace.sources.postgres.server import tables
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.snapshot import snapshots
from headrace.sources.postgres.snapshot.snapshots import CONNECTIONS, PART_COUNT, PART_PAGES, pieces
from headrace.sources.postgres.spool.spool import Reader, Spool

ROWS = 4_000


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE small (id int PRIMARY KEY)")
        connection.execute("INSERT INTO t SELECT g, repeat('v', 200) FROM generate_series(1, %s) g", (ROWS,))
        connection.execute("INSERT INTO small VALUES (1); ANALYZE t")
        yield connection


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a table of a hundred pages is copied in parts."""
    monkeypatch.setattr(snapshots, "PART_PAGES", 10)


def truth(db: psycopg.Connection, query: str) -> Counter[tuple[object, ...]]:
    return Counter(db.execute(query).fetchall())


@pytest.mark.usefixtures("cut")
def test_parts_make_the_whole_under_load(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    follower, done = Follower(url, tmp_path / "spool", "t", "small", "none"), threading.Event()
    db.execute("CREATE TABLE none (id int PRIMARY KEY)")

    def change() -> None:
        with psycopg.connect(url, autocommit=True) as other:
            number = 0
            while not done.is_set():
                number += 1
                other.execute("UPDATE t SET v = 'x' WHERE id = %s", (number,))  # moves the row to another page
                other.execute("INSERT INTO t VALUES (%s, 'new')", (ROWS + number,))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        follower.begin()
    finally:
        done.set()
        thread.join()
    assert len(list(follower.folder.rglob("*.parquet"))) > CONNECTIONS
    follower.land()
    for table in ("t", "small", "none"):
        assert follower.rows(table) == truth(db, f"SELECT * FROM {table}")
    follower.capture().remove()


@pytest.mark.usefixtures("cut")
def test_parts_of_a_part_of_a_table(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    follower = Follower(url, tmp_path / "spool", "t", parts={"t": Part(("id",), "id > 1000 OR id = 5")})
    follower.begin()
    assert follower.rows("t") == truth(db, "SELECT id FROM t WHERE id > 1000 OR id = 5")
    follower.capture().remove()


@pytest.mark.usefixtures("cut")
def test_a_part_that_fails_ends_them_all(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    follower, seen = Follower(url, tmp_path / "spool", "t"), list[int]()

    def failing(table: RemoteTable, read: Reader) -> Iterator[object]:
        seen.append(1)
        if len(seen) >= 3:
            raise EnvironmentFault("SPOOL_NOT_WRITABLE", "The disk is full.")
        yield from original(table, read)

    original = snapshots.csv_batches
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(snapshots, "csv_batches", failing)
        with pytest.raises(HeadraceError, match="SPOOL_NOT_WRITABLE"):
            follower.begin()
    follower.capture().remove()
    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'headrace' AND datname = current_database()"
    until = time.monotonic() + 30  # a server process ends a moment after its connection
    while db.execute(left).fetchone() != (0,):
        assert time.monotonic() < until
        time.sleep(0.05)


class Endless:
    """Reads a COPY on and on, and interrupts the main thread once several connections do."""

    def __init__(self, connections: int) -> None:
        main = threading.main_thread().ident or 0
        self.all_read = threading.Barrier(connections, lambda: signal.pthread_kill(main, signal.SIGINT))
        self.left = threading.Event()

    def __call__(self, table: RemoteTable, read: Reader) -> Iterator[object]:
        self.all_read.wait(60)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            read()
            time.sleep(0.01)
        self.left.set()
        yield from ()


@pytest.mark.parametrize("way", ["wal", "trigger"])
def test_an_interrupt_ends_copying_of_all_shards(
    server: LogicalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    urls = {"eu": server.fresh(), "us": server.fresh()}
    for url in urls.values():
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    source, endless = ShardFollower(urls, tmp_path, ["t"], {"capture": way}), Endless(2)
    monkeypatch.setattr(snapshots, "csv_batches", endless)
    capture = source.capture()
    with pytest.raises(KeyboardInterrupt):
        capture.begin()
    assert not endless.left.is_set()
    capture.remove()


def test_an_interrupt_ends_copying_of_a_cluster(
    url: str, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes are the same server here: a COPY reads its table whatever the node is."""
    endless = Endless(2)
    monkeypatch.setattr(shard_copy, "csv_batches", endless)
    with psycopg.connect(url) as holder:
        [(snapshot,)] = holder.execute("SELECT pg_export_snapshot()").fetchall()
        [found] = tables(db, server_of(db).version, names=[("public", "t")])
        placement = Placement("distributed", "id", tuple(Shard(n, n, n, "public.t") for n in (1, 2)))
        nodes = {1: url, 2: url}
        with pytest.raises(KeyboardInterrupt):
            shard_copy.copied(
                nodes,
                dict.fromkeys(nodes, snapshot),
                {TableName(LAKE, ("s",), "t"): found.table},
                {found.table.oid: placement},
                Spool(str(tmp_path / "spool")),
                lambda _: None,
                lambda _: nullcontext(),
            )
    assert not endless.left.is_set()


def test_a_snapshot_that_went_with_its_connection_is_tried_again(url: str, db: psycopg.Connection) -> None:
    with db.transaction():
        (snapshot,) = db.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
    with pytest.raises(EnvironmentFault, match="SOURCE_LOST") as caught, snapshots.reading(url, snapshot):
        raise AssertionError("nobody has it any more")
    assert caught.value.retryable


def test_progress_is_told(url: str, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "TELL_SECONDS", 0.0)
    follower, told = Follower(url, tmp_path / "spool", "t"), list[str]()
    capture = follower.capture()
    capture._told = told.append
    capture.begin()
    assert told[-1] == f"copy: {ROWS:,} rows of about {ROWS:,}"
    capture.remove()


def test_how_tables_are_cut() -> None:
    def table(oid: int) -> RemoteTable:
        return RemoteTable(oid, "public", f"t{oid}", "d", ("id",), ())

    names = {TableName(LAKE, ("s",), f"t{oid}"): table(oid) for oid in (1, 2, 3, 4)}
    found = pieces(names, {1: PART_PAGES * 2, 2: PART_PAGES, 3: PART_PAGES * 1000})
    ranges = {oid: [(p.first, p.end) for p in found if p.table.oid == oid] for oid in (1, 2, 3, 4)}
    assert ranges[1] == [(0, PART_PAGES), (PART_PAGES, None)]
    assert ranges[2] == ranges[4] == [(None, None)]
    assert len(ranges[3]) == PART_COUNT
    assert all(end == first for (_, end), (first, _) in zip(ranges[3], ranges[3][1:], strict=False))
