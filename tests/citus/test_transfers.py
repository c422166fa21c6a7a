"""Money moves between accounts on all nodes: the sum is the same at every cut, whoever is killed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from citus.conftest import check, distributed, reference
from kit.citus_cluster import Cluster
from kit.mirrored import Follower
from kit.pg_bank import side_by_side

from headrace.errors import EnvironmentFault
from headrace.names import LAKE, TableName

Db = psycopg.Connection[Any]
TABLES, ACCOUNTS = ("here", "there"), 60
TOTAL = len(TABLES) * ACCOUNTS * 100


def create(db: Db) -> None:
    """Two distributed tables, and a reference table that every transfer changes, too."""
    distributed(db, *TABLES)
    reference(db, "moves")
    for table in TABLES:
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g")
    db.execute("INSERT INTO moves SELECT g, 0 FROM generate_series(1, 3) g")


class Transfers:
    """Clients of every node, each moving money in transactions over several nodes.

    Args:
        cluster: The cluster.
        pause: Seconds that each client waits between two transactions.
    """

    def __init__(self, cluster: Cluster, pause: float = 0.01) -> None:
        self._cluster, self._pause = cluster, pause
        self.leave, self.counts = threading.Event(), [0] * len(cluster.nodes)

    def client(self, number: int) -> None:
        """Move money until told to leave; a node that was killed is connected to again."""
        chance = random.Random(number)
        while not self.leave.is_set():
            with suppress(psycopg.Error), self._cluster.nodes[number].connect() as db:
                while not self.leave.wait(self._pause):
                    self._transfer(db, chance, everywhere=number == 0 and chance.random() < 0.1)
                    self.counts[number] += 1

    @staticmethod
    def _transfer(db: Db, chance: random.Random, *, everywhere: bool) -> None:
        amount = chance.randint(1, 50)
        with db.transaction():
            if everywhere:  # by one client: two of them would lock rows in different orders
                db.execute("UPDATE here SET amount = amount + 1 WHERE id % 2 = 0")
                db.execute("UPDATE there SET amount = amount - 1 WHERE id % 2 = 1")
                return
            for table, change in zip(TABLES, chance.sample((amount, -amount), 2), strict=True):
                key = chance.randint(1, ACCOUNTS)
                db.execute(f"UPDATE {table} SET amount = amount + %s WHERE id = %s", (change, key))

    def going_on(self) -> Any:
        return side_by_side(self.leave, [lambda n=n: self.client(n) for n in range(len(self.counts))])  # type: ignore[misc]


def total(follower: Follower) -> int:
    return sum(follower.mirrors.total(TableName(LAKE, ("s",), table), "amount") for table in TABLES)


def test_transfers_between_workers_are_never_seen_half(
    db: Db, cluster: Cluster, follow: Callable[..., Follower]
) -> None:
    create(db)
    transfers = Transfers(cluster)
    held, sums, landings = [], [], 0
    with transfers.going_on():
        while min(transfers.counts) < 3:
            time.sleep(0.05)
        follower = follow(*TABLES, "moves")
        sums.append(total(follower))
        for number in range(24):
            capture = follower.capture()
            landing = capture.land(follower.position)
            follower._take(landing)
            capture.clear()
            capture.acknowledge(follower.position)
            landings += bool(landing.tables)
            sums.append(total(follower))
            if (seconds := capture._cluster.cut_seconds) is not None:  # type: ignore[union-attr]
                held.append(seconds)
            if number == 12:
                follower.renew("there")
                sums.append(total(follower))
    follower.land()
    check(follower, db, *TABLES, "moves")
    assert set(sums) == {TOTAL}
    assert landings >= 20
    assert min(transfers.counts) > 10
    print("cuts", len(held), "median", sorted(held)[len(held) // 2], "most", max(held), "transfers", transfers.counts)
    assert sorted(held)[len(held) // 2] < 0.1, held


def test_nodes_that_are_killed(db: Db, cluster: Cluster, follow: Callable[..., Follower]) -> None:
    """In the middle of transfers: a part that was prepared is committed later, and no cut comes between."""
    create(db)
    follower, transfers, sums = follow(*TABLES, "moves"), Transfers(cluster), []
    with cluster.connect() as settings:
        settings.execute("ALTER SYSTEM SET citus.recover_2pc_interval = '1s'")
        settings.execute("SELECT pg_reload_conf()")
    with transfers.going_on():
        for round_ in range(8):
            node = cluster.nodes[(1, 2, 1, 0, 2, 1, 0, 2)[round_]]
            for _ in range(3):
                with suppress(EnvironmentFault):
                    follower.land()
                sums.append(total(follower))
            node.restart()
    deadline = time.monotonic() + 60
    while True:
        try:
            follower.land()
            break
        except EnvironmentFault:
            assert time.monotonic() < deadline
            time.sleep(0.5)
    with cluster.connect() as afresh:
        check(follower, afresh, *TABLES, "moves")
    assert set(sums) | {total(follower)} == {TOTAL}
    assert min(transfers.counts) > 10
