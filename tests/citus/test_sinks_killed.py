"""Writers of sinks into a cluster killed at every stage, and nodes killed under them: nothing twice, nothing lost."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from kit.citus_cluster import Cluster, Node
from kit.sink_killed import VERSIONS, stream
from kit.sink_rows import FakeStream, deliver, new_sink, options
from kit.surviving_spark import with_kit

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault
from headrace.sinks.sink_kind import Json

Db = psycopg.Connection[Any]
WAYS = [("reference", "key"), ("reference", "bag"), ("distributed", "key"), ("distributed", "bag")]


@pytest.fixture(autouse=True, scope="module")
def recovering(cluster: Cluster) -> None:
    """Citus ends at once what a node that was killed has left undone; once a minute is its default."""
    for node in cluster.nodes:
        with node.connect() as db:
            db.execute("ALTER SYSTEM SET citus.recover_2pc_interval = '1s'")
            db.execute("SELECT pg_reload_conf()")


def position(cluster: Cluster, sink: str) -> int | None:
    with cluster.connect() as db:
        if db.execute("SELECT to_regclass('headrace.sink_position')").fetchone() == (None,):
            return None
        row = db.execute("SELECT version FROM headrace.sink_position WHERE sink = %s", (sink,)).fetchone()
        return None if row is None else int(row[0])


def write(url: str, sink: str, key: str, stage: int, placement: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kit.sink_killed", url, sink, key, str(stage), "kill", placement]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=with_kit())


def whole(cluster: Cluster, table: str, columns: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table at a moment at which nobody writes it."""
    with cluster.connect() as db, db.transaction():
        db.execute(f"LOCK TABLE {table} IN SHARE MODE")
        return Counter(db.execute(f"SELECT {columns} FROM {table}").fetchall())


@pytest.mark.parametrize(("placement", "key"), WAYS)
def test_a_writer_that_is_killed(cluster: Cluster, db: Db, placement: str, key: str) -> None:
    expected, kills = stream(), 0
    for stage in range(1, 5 * VERSIONS, 5):
        sink = new_sink()
        db.execute("DROP TABLE IF EXISTS out")
        ended = write(cluster.url, sink, key, stage, placement)
        assert ended.returncode < 0 or ended.stdout.startswith("done"), ended.stderr
        kills += ended.returncode < 0
        if (at := position(cluster, sink)) is not None:
            assert whole(cluster, "out", "id, v") == expected.rows_at(at), f"half of a version after stage {stage}"
        again = write(cluster.url, sink, key, -1, placement)
        assert again.stdout.startswith("done"), again.stderr
        assert position(cluster, sink) == VERSIONS - 1
        assert whole(cluster, "out", "id, v") == expected.rows_at(VERSIONS - 1)
    assert kills >= 4


def patiently(of: Json, source: FakeStream, sink: str, version: int, told: Callable[[str], None]) -> int:
    """Deliver a version, however often a node is away; return how often it was."""
    deadline, failed = time.monotonic() + 180, 0
    while True:
        try:
            deliver(of, source.delivery(sink, version=version), told)
            return failed
        except EnvironmentFault:  # what else it raises would stop a sink
            failed += 1
            assert time.monotonic() < deadline
            time.sleep(0.3)


@pytest.mark.parametrize(("placement", "key"), WAYS)
def test_a_node_that_is_killed_at_a_stage(cluster: Cluster, db: Db, placement: str, key: str) -> None:
    """A worker or the coordinator, at each stage of a version; what was told as committed is there."""
    source, sink = stream(), new_sink()
    of = options(cluster.url, key=["id"] if key == "key" else [], placement=placement)
    patiently(of, source, sink, 0, lambda _: None)
    stages = ("locked", "copied", "applied", "positioned", "committed")
    for version, stage in enumerate(stages, start=1):
        node = cluster.nodes[(version + WAYS.index((placement, key))) % len(cluster.nodes)]
        killed: list[str] = []

        def tell(word: str, stage: str = stage, node: Node = node, killed: list[str] = killed) -> None:
            if word == stage and not killed:
                killed.append(word)
                node.restart()

        patiently(of, source, sink, version, tell)
        assert killed == [stage]
        assert whole(cluster, "out", "id, v") == source.rows_at(version)


ACCOUNTS, TOTAL = 40, 4_000


def bank(versions: int) -> FakeStream:
    """Accounts; each version moves money between some, so that the sum stays."""
    chance, amounts = random.Random(1), dict.fromkeys(range(ACCOUNTS), TOTAL // ACCOUNTS)
    of = FakeStream((Column("id", "int"), Column("amount", "bigint")), [[(row, 1) for row in amounts.items()]])
    for _ in range(versions):
        before = dict(amounts)
        for _ in range(5):
            giver, taker = chance.sample(range(ACCOUNTS), 2)
            amounts[giver] -= (amount := chance.randint(1, 90))
            amounts[taker] += amount
        moved = [n for n in amounts if before[n] != amounts[n]]
        of.log.append([((n, before[n]), -1) for n in moved] + [((n, amounts[n]), 1) for n in moved])
    return of


@contextmanager
def looking(cluster: Cluster, sums: list[tuple[int, ...]], failed: list[BaseException]) -> Iterator[None]:
    """Readers that look on all the time: a reference table as it is, distributed ones under a lock."""
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            try:
                with suppress(psycopg.OperationalError, psycopg.InternalError), cluster.connect() as db:
                    db.execute("SET lock_timeout = '30s'")
                    while not ended.wait(0.02):
                        ((whole_,),) = db.execute("SELECT sum(amount) FROM copies").fetchall()
                        with db.transaction():
                            db.execute("LOCK TABLE accounts, bag IN SHARE MODE")
                            found = db.execute("SELECT sum(amount) FROM accounts").fetchone()
                            other = db.execute("SELECT sum(amount) FROM bag").fetchone()
                        sums.append((int(whole_), *(int(s[0]) for s in (found, other) if s)))
            except BaseException as error:
                failed.append(error)
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_transfers_are_never_seen_half(cluster: Cluster, db: Db) -> None:
    """Across workers, in three tables of one transaction, while nodes are killed at any moment of it."""
    source, chance, failures = bank(60), random.Random(7), 0
    sinks = [
        (options(cluster.url, table, key, placement=placement), new_sink(), table)
        for table, key, placement in (
            ("accounts", ["id"], "distributed"),
            ("bag", [], "distributed"),
            ("copies", ["id"], "reference"),
        )
    ]
    for of, sink, _ in sinks:
        deliver(of, source.delivery(sink, version=0))
    sums: list[tuple[int, ...]] = []
    failed: list[BaseException] = []
    kills = 0
    with looking(cluster, sums, failed):
        for version in range(1, 61):
            killing = None
            if version % 6 == 0:
                node, pause = cluster.nodes[chance.randrange(3)], chance.random() * 0.4
                killing = threading.Timer(pause, node.restart)
                killing.start()
                kills += 1
            failures += together(sinks, source, version)
            if killing is not None:
                killing.join()
    assert not failed, failed
    assert {s for of in sums for s in of} == {TOTAL}
    assert len(sums) > 20
    for _, sink, table in sinks:
        assert position(cluster, sink) == 60
        assert whole(cluster, table, "id, amount") == source.rows_at(60)
    print("kills", kills, "failed writes", failures, "looks", len(sums))


def together(sinks: list[tuple[Json, str, str]], source: FakeStream, version: int) -> int:
    """Write sinks in one transaction, however often a node is away; return how often it was."""
    from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK

    deadline, failed = time.monotonic() + 180, 0
    while True:
        try:
            with POSTGRES_SINK.writing(sinks[0][0], lambda _: None) as target:
                for _, sink, _ in sinks:
                    target.position(sink)
                for of, sink, name in sinks:
                    target.deliver(of, source.delivery(sink, name, version=version))
            return failed
        except EnvironmentFault:
            failed += 1
            assert time.monotonic() < deadline
            time.sleep(0.3)
