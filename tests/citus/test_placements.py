"""Local, reference and distributed tables are followed, each from where its changes are told."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from citus.conftest import check, distributed, installed, landed, reference
from kit.citus_cluster import Cluster
from kit.mirrored import Follower
from kit.pg_bank import side_by_side

from headrace.errors import UserError

Follow = Callable[..., Follower]
Db = psycopg.Connection[Any]


def test_local_table(db: Db, follow: Follow) -> None:
    """A plain one is captured from the coordinator alone, one that Citus manages as of a cluster."""
    db.execute("CREATE TABLE plain (id int PRIMARY KEY, amount bigint)")
    alone = follow("plain")
    assert "lsn" in alone.position
    db.execute("CREATE TABLE managed (id int PRIMARY KEY, amount bigint)")
    db.execute("SELECT citus_add_local_table_to_metadata('managed')")
    both = follow("plain", "managed")
    assert "cut" in both.position
    for table in ("plain", "managed"):
        db.execute(f"INSERT INTO {table} SELECT g, g FROM generate_series(1, 20) g; DELETE FROM {table} WHERE id < 5")
        db.execute(f"UPDATE {table} SET amount = 0, id = id + 100 WHERE id > 15")
    assert landed(both) == [("managed", False), ("plain", False)]
    check(both, db, "plain", "managed")
    db.execute("TRUNCATE plain; INSERT INTO plain VALUES (1, 1)")
    assert landed(both) == [("plain", False)]
    alone.land()
    for follower in (alone, both):
        check(follower, db, "plain")


def test_table_in_a_single_shard(db: Db, follow: Follow) -> None:
    """Its shard is on a worker, as those of schemas that are distributed."""
    db.execute("CREATE TABLE tenant (id int PRIMARY KEY, amount bigint)")
    db.execute("SELECT create_distributed_table('tenant', NULL)")
    db.execute("INSERT INTO tenant SELECT g, g FROM generate_series(1, 20) g")
    follower = follow("tenant")
    db.execute("UPDATE tenant SET amount = 0 WHERE id % 2 = 0")
    assert landed(follower) == [("tenant", False)]
    check(follower, db, "tenant")


def test_reference_table(db: Db, follow: Follow, cluster: Cluster) -> None:
    """Every node has its rows, and one tells of them."""
    reference(db, "rates")
    db.execute("INSERT INTO rates SELECT g, g FROM generate_series(1, 100) g")
    follower = follow("rates")
    check(follower, db, "rates")
    db.execute("UPDATE rates SET amount = 7 WHERE id % 3 = 0; DELETE FROM rates WHERE id > 90")
    with cluster.workers[0].connect() as worker:
        worker.execute("INSERT INTO rates VALUES (1000, 1)")
    assert landed(follower) == [("rates", False)]
    check(follower, db, "rates")


def test_distributed_source(db: Db, follow: Follow, cluster: Cluster) -> None:
    """Whoever wrote, on whichever node; with a key, and without one."""
    distributed(db, "orders", columns="amount bigint, note text")
    db.execute('CREATE SCHEMA IF NOT EXISTS "my shop"')
    db.execute("CREATE TABLE bag (id int, amount bigint); ALTER TABLE bag REPLICA IDENTITY FULL")
    db.execute("SELECT create_distributed_table('bag', 'id')")
    db.execute("INSERT INTO orders SELECT g, g, repeat('x', g) FROM generate_series(1, 500) g")
    db.execute("INSERT INTO bag SELECT g % 10, g % 3 FROM generate_series(1, 200) g")
    follower = follow("orders", "bag")
    check(follower, db, "orders", "bag")
    assert landed(follower) == []
    for node in cluster.nodes:
        with node.connect() as somebody:
            somebody.execute("UPDATE orders SET amount = amount + 1 WHERE id % 5 = 0")
            somebody.execute("DELETE FROM bag WHERE id = 3; INSERT INTO bag VALUES (3, 1), (3, 1), (4, 4)")
            somebody.execute("BEGIN; INSERT INTO orders VALUES (-1, 0, ''); DELETE FROM orders WHERE id = -1; COMMIT")
    assert landed(follower) == [("bag", False), ("orders", False)]
    check(follower, db, "orders", "bag")


def test_values_that_are_kept_outside_of_rows(db: Db, follow: Follow) -> None:
    """An update that leaves a large value alone does not send it."""
    distributed(db, "papers", columns="amount bigint, body text")
    texts = "(SELECT string_agg(md5((g * 1000 + i)::text), '') FROM generate_series(1, 300) i)"
    db.execute(f"INSERT INTO papers SELECT g, g, {texts} FROM generate_series(1, 30) g")
    follower = follow("papers")
    db.execute("UPDATE papers SET amount = 0 WHERE id % 2 = 0")
    follower.land()
    check(follower, db, "papers")


def test_concurrent_dml_on_all_workers(db: Db, follow: Follow, cluster: Cluster) -> None:
    """Clients write to every node at once, while it is landed again and again."""
    distributed(db, "orders")
    reference(db, "rates")
    follower, leave = follow("orders", "rates"), threading.Event()
    counts = [0] * len(cluster.nodes)

    def write(number: int) -> None:
        chance = random.Random(number)
        with cluster.nodes[number].connect() as client:
            while not leave.is_set():
                key = chance.randint(1, 200)
                client.execute(
                    "INSERT INTO orders VALUES (%s, 1) ON CONFLICT (id) DO UPDATE SET amount = orders.amount + 1",
                    (key,),
                )
                if chance.random() < 0.3:
                    client.execute("DELETE FROM orders WHERE id = %s", (chance.randint(1, 200),))
                if chance.random() < 0.1:
                    values = (chance.randint(1, 9), key)
                    client.execute("INSERT INTO rates VALUES (%s, %s) ON CONFLICT (id) DO NOTHING", values)
                counts[number] += 1

    with side_by_side(leave, [lambda n=n: write(n) for n in range(len(cluster.nodes))]):  # type: ignore[misc]
        landings = [follower.land() for _ in range(12)]
    assert sum(bool(of[0].tables) for of in landings) >= 6
    assert min(counts) > 5
    follower.land()
    check(follower, db, "orders", "rates")


def test_drop_and_cleanup(db: Db, follow: Follow, cluster: Cluster) -> None:
    """Dropped tables keep their mirrors; nothing stays on any node, not even of a beginning that failed."""
    distributed(db, "orders", "beside")
    follower = follow("orders", "beside")
    db.execute("INSERT INTO beside VALUES (1, 1)")
    db.execute("DROP TABLE orders")
    follower.land()
    assert [n.table for n in follower.gone] == ["orders"]
    check(follower, db, "beside")
    distributed(db, "orders")
    db.execute("INSERT INTO orders VALUES (5, 5)")
    follower.land()
    follower.renew("orders")
    check(follower, db, "orders", "beside")
    for node in cluster.nodes:
        with node.connect() as connection:
            assert len(installed(connection)) == 2
    begun = follow("beside")
    assert begun.position["nodes"].keys() == {"0", "1", "2"}
    begun.position = {}
    begun.capture().remove()  # as after a beginning that was not published
    for node in cluster.nodes:
        with node.connect() as connection:
            assert len(installed(connection)) == 2


def test_schema_change(db: Db, follow: Follow) -> None:
    """Altered tables are copied again at one cut with the others."""
    distributed(db, "orders")
    reference(db, "rates")
    follower = follow("orders", "rates")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 50) g")
    db.execute("ALTER TABLE orders ADD COLUMN note text DEFAULT 'none'")
    db.execute("UPDATE orders SET note = 'x' WHERE id < 10; INSERT INTO rates VALUES (1, 1)")
    assert landed(follower) == [("orders", True), ("rates", False)]
    check(follower, db, "orders", "rates")
    db.execute("ALTER TABLE rates RENAME COLUMN amount TO rate")
    db.execute("ALTER TABLE orders ALTER COLUMN amount TYPE numeric(20, 2)")
    db.execute("INSERT INTO orders VALUES (99, 1, 'y'); UPDATE rates SET rate = 3")
    follower.land()
    check(follower, db, "orders", "rates")
    db.execute("ALTER TABLE orders RENAME TO sales")
    db.execute("INSERT INTO sales VALUES (100, 2, 'z')")
    assert any("is called public.sales now" in n for landing in follower.land() for n in landing.notices)
    assert (100, 2, "z") in follower.rows("orders")
    db.execute("ALTER TABLE sales RENAME TO orders")
    follower.land()
    check(follower, db, "orders")


def test_truncate_is_in_order_with_other_nodes(db: Db, follow: Follow, cluster: Cluster) -> None:
    """The nodes do not say what came before it and what after; the table is copied at a cut."""
    distributed(db, "orders", "beside")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 100) g")
    follower = follow("orders", "beside")
    for node in cluster.nodes:
        with node.connect() as somebody:
            somebody.execute("INSERT INTO orders VALUES (500, 1); TRUNCATE orders; INSERT INTO orders VALUES (7, 7)")
        db.execute("INSERT INTO beside SELECT max(id) + 1 FROM (SELECT id FROM beside UNION ALL SELECT 0) b")
        assert landed(follower) == [("beside", False), ("orders", True)]
        check(follower, db, "orders", "beside")


def test_dropped_column(db: Db, follow: Follow) -> None:
    """Reading a change of such a table would damage the server; the remedy that is told works."""
    distributed(db, "orders", "beside")
    reference(db, "rates")
    follower = follow("orders", "rates")
    db.execute("ALTER TABLE orders ADD COLUMN note text DEFAULT 'none'")
    for table in ("orders", "beside", "rates"):  # also one that is not captured
        db.execute(f"ALTER TABLE {table} ADD COLUMN more int")
        db.execute(f"ALTER TABLE {table} DROP COLUMN more")
        db.execute(f"INSERT INTO {table} (id) SELECT g FROM generate_series(1, 30) g")
        with pytest.raises(UserError, match=rf"CAPTURE_REMOVED.*public.{table} .* had a column dropped") as stopped:
            follower.land()
        with pytest.raises(UserError, match="SOURCE_NOT_READY") as caught:
            follower.begin()
        assert f"public.{table}: had a column dropped" in (caught.value.detail or "")
        remedy = (caught.value.hint or "").splitlines()[1]
        assert remedy in stopped.value.message
        for statement in remedy.split("; "):
            db.execute(statement)
        follower.begin()
        check(follower, db, "orders", "rates")
    db.execute("UPDATE orders SET amount = 5; UPDATE rates SET amount = 3")
    assert landed(follower) == [("orders", False), ("rates", False)]
    check(follower, db, "orders", "rates")
