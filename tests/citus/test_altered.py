"""Distributed tables that are altered, made anew or partitioned between two landings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from citus.conftest import check, distributed, landed, reference
from kit.citus_cluster import Cluster
from kit.mirrored import Follower

from headrace.errors import UserError

Follow = Callable[..., Follower]
Db = psycopg.Connection[Any]


def test_added_column(db: Db, follow: Follow, cluster: Cluster) -> None:
    """Nothing is copied again, whatever was written before and after, on whichever node."""
    distributed(db, "orders", "beside")
    reference(db, "rates")
    for table in ("orders", "beside", "rates"):
        db.execute(f"INSERT INTO {table} SELECT g, g FROM generate_series(1, 60) g")
    follower = follow("orders", "beside", "rates")
    for node in cluster.nodes:
        with node.connect() as somebody:
            somebody.execute(
                f"UPDATE orders SET amount = -1 WHERE id % 7 = {node.port % 7}; DELETE FROM rates WHERE id = 1"
            )
    for table in ("orders", "beside", "rates"):
        db.execute(f"ALTER TABLE {table} ADD COLUMN more text")
    for node in cluster.nodes:
        with node.connect() as somebody:
            somebody.execute("UPDATE orders SET more = 'x' WHERE id < 20; DELETE FROM orders WHERE id = 30")
    db.execute("UPDATE rates SET more = 'y' WHERE id > 50")
    assert landed(follower) == [("beside", False), ("orders", False), ("rates", False)]
    check(follower, db, "orders", "beside", "rates")
    db.execute("UPDATE beside SET more = 'z' WHERE id < 5; INSERT INTO orders VALUES (99, 9, 'new')")
    assert landed(follower) == [("beside", False), ("orders", False)]
    check(follower, db, "orders", "beside", "rates")
    db.execute("ALTER TABLE orders ADD COLUMN a int; INSERT INTO orders VALUES (100, 1, 'a', 1)")
    db.execute("ALTER TABLE orders ADD COLUMN b int DEFAULT 7; INSERT INTO orders VALUES (101, 1, 'a', 1, 2)")
    assert landed(follower) == [("orders", True)]
    check(follower, db, "orders")


def test_table_made_anew_between_two_landings(db: Db, follow: Follow) -> None:
    """With a column less, or another key: it is copied, and the others are followed."""
    distributed(db, "orders", "beside", columns="amount bigint, note text")
    db.execute("INSERT INTO orders SELECT g, g, 'n' FROM generate_series(1, 40) g")
    follower = follow("orders", "beside")
    db.execute("ALTER TABLE orders DROP COLUMN note")
    db.execute("SELECT undistribute_table('orders'); SELECT create_distributed_table('orders', 'id')")
    db.execute("UPDATE orders SET amount = 0 WHERE id < 9; INSERT INTO beside VALUES (1, 1, 'b')")
    assert landed(follower) == [("beside", False), ("orders", True)]
    check(follower, db, "orders", "beside")
    db.execute("DROP TABLE orders; CREATE TABLE orders (id int, at int, PRIMARY KEY (id, at))")
    db.execute("SELECT create_distributed_table('orders', 'id'); INSERT INTO orders VALUES (1, 1), (1, 2)")
    assert landed(follower) == [("orders", True)]
    db.execute("DELETE FROM orders WHERE at = 1")
    assert landed(follower) == [("orders", False)]
    check(follower, db, "orders")


def test_table_emptied_while_another_one_is_altered(db: Db, follow: Follow) -> None:
    distributed(db, "orders", "beside")
    db.execute("INSERT INTO beside SELECT g, g FROM generate_series(1, 40) g")
    follower = follow("orders", "beside")
    db.execute("TRUNCATE beside; INSERT INTO beside VALUES (1, 2)")
    db.execute("ALTER TABLE orders ADD COLUMN b int DEFAULT 7; INSERT INTO orders VALUES (1, 1, 2)")
    assert landed(follower) == [("beside", True), ("orders", True)]
    check(follower, db, "orders", "beside")


def test_table_altered_and_put_back(db: Db, follow: Follow) -> None:
    distributed(db, "orders", "beside")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 40) g")
    follower = follow("orders", "beside")
    db.execute("ALTER TABLE orders REPLICA IDENTITY FULL; UPDATE orders SET amount = -1 WHERE id < 30")
    db.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT; INSERT INTO beside VALUES (1, 1)")
    assert landed(follower) == [("beside", False), ("orders", True)]
    check(follower, db, "orders", "beside")


def test_partitioned_table(db: Db, follow: Follow, cluster: Cluster) -> None:
    """One mirror has the rows of all partitions, as they come and go."""
    db.execute("CREATE TABLE events (id int, day int, amount bigint, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)")
    db.execute("SELECT create_distributed_table('events', 'id')")
    for first in (0, 10):
        db.execute(f"CREATE TABLE events_{first} PARTITION OF events FOR VALUES FROM ({first}) TO ({first + 10})")
    db.execute("INSERT INTO events SELECT g, g % 20, g FROM generate_series(1, 100) g")
    follower = follow("events")
    check(follower, db, "events")
    for node in cluster.nodes:
        with node.connect() as somebody:
            somebody.execute("UPDATE events SET amount = amount + 1 WHERE day = 3; DELETE FROM events WHERE id = 7")
            somebody.execute("UPDATE events SET day = 15 WHERE id = 21 AND day = 1")
    assert landed(follower) == [("events", False)]
    check(follower, db, "events")
    db.execute("CREATE TABLE events_20 PARTITION OF events FOR VALUES FROM (20) TO (30)")
    db.execute("INSERT INTO events VALUES (500, 25, 1)")
    follower.land()
    check(follower, db, "events")
    db.execute("UPDATE events SET amount = 0 WHERE day > 12")
    assert landed(follower) == [("events", False)]
    check(follower, db, "events")
    db.execute("DROP TABLE events_0")
    follower.land()
    check(follower, db, "events")
    db.execute("TRUNCATE events_10; INSERT INTO events VALUES (1, 11, 1)")
    follower.land()
    check(follower, db, "events")


def test_partition_that_becomes_columnar(db: Db, follow: Follow) -> None:
    """The log has no rows of such a partition, so that nothing may be landed any more."""
    db.execute("CREATE EXTENSION IF NOT EXISTS citus_columnar")
    create = "CREATE TABLE {} (id int, day int, {}) PARTITION BY RANGE (day)"
    db.execute(create.format("events", "PRIMARY KEY (id, day)"))
    db.execute("SELECT create_distributed_table('events', 'id')")
    for first in (0, 10):
        db.execute(f"CREATE TABLE events_{first} PARTITION OF events FOR VALUES FROM ({first}) TO ({first + 10})")
    db.execute("INSERT INTO events SELECT g, g % 20 FROM generate_series(1, 100) g")
    follower = follow("events")
    db.execute("SELECT alter_table_set_access_method('events_0', 'columnar')")
    db.execute("INSERT INTO events VALUES (500, 5)")
    with pytest.raises(UserError, match=r"CAPTURE_REMOVED.*a partition stored as columnar"):
        follower.land()
    db.execute(create.format("bag", "amount int") + "; ALTER TABLE bag REPLICA IDENTITY FULL")
    db.execute("SELECT create_distributed_table('bag', 'id')")
    with pytest.raises(UserError, match="SOURCE_NOT_READY") as refused:
        follow("bag")
    assert "captured by its primary key" in (refused.value.detail or "")
