"""Shards that move, are split, and nodes that come and go: nothing is lost, and no move is a change."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from citus.conftest import check, distributed, landed, reference
from kit.citus_cluster import Cluster, citus_cluster
from kit.mirrored import Follower
from kit.pg_bank import side_by_side

from headrace.errors import EnvironmentFault
from headrace.sources.postgres.setup.open_capture import LogCapture

Follow = Callable[..., Follower]
Db = psycopg.Connection[Any]


def shards(db: Db, table: str) -> dict[int, int]:
    """The group of every shard."""
    listed = "SELECT shardid, groupid FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) WHERE logicalrelid = %s"
    return dict(db.execute(f"{listed}::regclass ORDER BY shardid", (table,)).fetchall())


def move(db: Db, shard: int, group: int, to: int, mode: str = "force_logical") -> None:
    nodes = {g: (host, port) for g, host, port in db.execute("SELECT groupid, nodename, nodeport FROM pg_dist_node")}
    values = (shard, *nodes[group], *nodes[to], mode)
    db.execute("SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, %s)", values)


@pytest.mark.parametrize("mode", ["force_logical", "block_writes"])
def test_a_moved_shard_is_no_change(db: Db, follow: Follow, mode: str) -> None:
    distributed(db, "orders")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 200) g")
    follower = follow("orders")
    (shard, group), *_ = shards(db, "orders").items()
    move(db, shard, group, 3 - group, mode)
    assert landed(follower) == []
    db.execute("UPDATE orders SET amount = amount + 1 WHERE id <= 100")
    assert landed(follower) == [("orders", False)]
    check(follower, db, "orders")
    db.execute("UPDATE orders SET amount = amount + 1 WHERE id <= 50")
    move(db, shard, 3 - group, group, mode)
    db.execute("DELETE FROM orders WHERE id BETWEEN 60 AND 90")  # other keys than before the move: no order matters
    assert landed(follower) == [("orders", False)]
    check(follower, db, "orders")


def test_keys_that_are_changed_before_and_after_a_move(db: Db, follow: Follow) -> None:
    """Two nodes tell of one key, and neither says who was last: the table is copied, and only what differs lands."""
    distributed(db, "orders")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 200) g")
    follower = follow("orders")
    (shard, group), *_ = shards(db, "orders").items()
    db.execute("UPDATE orders SET amount = -1")
    move(db, shard, group, 3 - group)
    db.execute("UPDATE orders SET amount = -2; DELETE FROM orders WHERE id % 4 = 0")
    assert landed(follower) == [("orders", True)]
    check(follower, db, "orders")
    db.execute("UPDATE orders SET amount = -3")
    move(db, shard, 3 - group, group)
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(201, 300) g")
    move(db, shard, group, 3 - group)  # back where it was: what happened elsewhere meanwhile is not lost
    assert landed(follower) == [("orders", True)]
    check(follower, db, "orders")


def test_rows_without_a_key_that_are_changed_before_and_after_a_move(db: Db, follow: Follow) -> None:
    db.execute("CREATE TABLE bag (id int, amount bigint)")
    db.execute("SELECT create_distributed_table('bag', 'id'); ALTER TABLE bag REPLICA IDENTITY FULL")
    follower = follow("bag")
    db.execute("INSERT INTO bag SELECT g, g FROM generate_series(1, 200) g")
    for shard, group in shards(db, "bag").items():  # whichever node is landed first
        move(db, shard, group, 3 - group)
    db.execute("DELETE FROM bag WHERE id % 2 = 0")
    assert landed(follower) == [("bag", True)]
    check(follower, db, "bag")


def test_split_shard(db: Db, follow: Follow) -> None:
    distributed(db, "orders", "beside")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 300) g")
    follower = follow("orders", "beside")
    (shard, _), *_ = shards(db, "orders").items()
    low, high = db.execute(
        "SELECT shardminvalue::int, shardmaxvalue::int FROM pg_dist_shard WHERE shardid = %s", (shard,)
    ).fetchone() or (0, 0)
    db.execute("UPDATE orders SET amount = 5 WHERE id < 100; INSERT INTO beside VALUES (1, 1)")
    db.execute(
        "SELECT citus_split_shard_by_split_points(%s, ARRAY[%s]::text[], ARRAY[1, 2], 'block_writes')",
        (shard, str((low + high) // 2)),
    )
    db.execute("UPDATE orders SET amount = 6 WHERE id > 250; DELETE FROM beside")
    assert ("orders", True) in landed(follower)
    check(follower, db, "orders", "beside")
    db.execute("UPDATE orders SET amount = 8 WHERE id % 2 = 0")
    assert landed(follower) == [("orders", False)]
    check(follower, db, "orders")


def test_moves_under_load(db: Db, follow: Follow, cluster: Cluster) -> None:
    """Shards go to and fro while clients write and landings follow."""
    distributed(db, "orders")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 100) g")
    follower, leave = follow("orders"), threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with cluster.nodes[seed].connect() as client:
            while not leave.wait(0.005):
                client.execute("UPDATE orders SET amount = amount + 1 WHERE id = %s", (chance.randint(1, 100),))

    def rearrange() -> None:
        with cluster.connect() as mover:
            for _ in range(4):
                for shard, group in list(shards(mover, "orders").items())[:2]:
                    move(mover, shard, group, 3 - group)

    mover = threading.Thread(target=rearrange)
    with side_by_side(leave, [lambda s=s: write(s) for s in range(3)]):  # type: ignore[misc]
        mover.start()
        while mover.is_alive():
            with suppress(EnvironmentFault):  # a table was copied again while its shards moved on: the next one lands
                follower.land()
        mover.join()
    follower.land()
    check(follower, db, "orders")


def test_a_worker_is_added_and_another_one_removed() -> None:
    """Its rows come from its own slot; what was done while nobody landed is not lost."""
    import tempfile
    from pathlib import Path

    with citus_cluster() as cluster, cluster.connect() as db, tempfile.TemporaryDirectory() as folder:
        distributed(db, "orders")
        reference(db, "rates")  # which stays as it is on every node while the other one is copied
        db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 300) g")
        follower = Follower(cluster.url, Path(folder), "orders", "rates", slot="headrace_nodes", way=LogCapture)
        follower.begin()
        leaving, joining = cluster.workers[0], cluster.add_worker()
        follower.land()
        assert len(follower.position["nodes"]) == 4
        db.execute("SELECT rebalance_table_shards('orders', shard_transfer_mode := 'force_logical')")
        db.execute("UPDATE orders SET amount = 0 WHERE id % 3 = 0")
        follower.land()
        check(follower, db, "orders")
        db.execute("UPDATE orders SET amount = amount + 1")
        assert landed(follower) == [("orders", False)]
        check(follower, db, "orders")
        db.execute("DELETE FROM orders WHERE id < 20")
        db.execute("SELECT citus_drain_node('127.0.0.1', %s, 'force_logical')", (leaving.port,))
        late = cluster.add_worker()  # shards move there before it has a slot
        for shard, group in list(shards(db, "orders").items())[:2]:
            move(db, shard, group, max(g for (g,) in db.execute("SELECT groupid FROM pg_dist_node").fetchall()))
        db.execute("UPDATE orders SET amount = amount + 10")
        cluster.remove_worker(leaving)
        assert landed(follower) == [("orders", True)]
        check(follower, db, "orders")
        db.execute("UPDATE orders SET amount = amount + 100")
        joining.restart()
        late.restart()
        assert landed(follower) == [("orders", False)]
        check(follower, db, "orders")
        follower.capture().remove()
