"""What cannot be captured is refused plainly, with what helps; the least that a role needs is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from citus.conftest import check, distributed, installed, landed, reference
from kit.citus_cluster import DATABASE, Cluster, citus_cluster
from kit.mirrored import Follower

from headrace.errors import HeadraceError, UserError
from headrace.sources.postgres.health.server_health import check as check_source
from headrace.sources.postgres.health.server_health import health
from headrace.sources.postgres.setup.open_capture import LogCapture

Follow = Callable[..., Follower]
Db = psycopg.Connection[Any]


def refusal(follow: Callable[[], object], code: str = "SOURCE_NOT_READY") -> str:
    """What is said and what to do."""
    with pytest.raises(HeadraceError, match=code) as caught:
        follow()
    return f"{caught.value.message}\n{caught.value.detail}\n{caught.value.hint}"


def test_tables_that_cannot_be_captured(db: Db, follow: Follow, cluster: Cluster) -> None:
    db.execute("CREATE EXTENSION IF NOT EXISTS citus_columnar")
    db.execute("CREATE TABLE old (id int, amount int) USING columnar")
    db.execute("SELECT create_distributed_table('old', 'id')")
    db.execute("CREATE TABLE parts (id int, at int) PARTITION BY RANGE (at)")
    db.execute("SELECT create_distributed_table('parts', 'id')")
    db.execute("CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (9) USING columnar")
    db.execute("CREATE TABLE keyless (id int, amount int)")
    db.execute("SELECT create_distributed_table('keyless', 'id')")
    assert "public.old: is stored as columnar" in refusal(lambda: follow("old"))
    assert "public.parts: is partitioned, with a partition stored as columnar" in refusal(lambda: follow("parts"))
    assert "ALTER TABLE" in refusal(lambda: follow("keyless"))
    wrong = {c.name: c for c in check_source(cluster.url, [("public", "old"), ("public", "keyless")]) if not c.ok}
    assert wrong.keys() == {"public.old", "public.keyless"}
    distributed(db, "orders")
    reference(db, "rates")
    said = [c.finding for c in check_source(cluster.url, [("public", "orders"), ("public", "rates")])]
    assert {"is distributed by id, 4 shards", "is a reference table"} <= set(said)
    by_triggers = check_source(cluster.url, [("public", "keyless")], capture="trigger")
    assert any("with capture = 'wal'" in c.finding for c in by_triggers if not c.ok)
    with cluster.workers[0].connect() as worker:
        worker.execute("CREATE TABLE IF NOT EXISTS alone (id int PRIMARY KEY)")
    url = cluster.workers[0].url()
    said = [c.finding for c in check_source(url, [("public", "keyless")]) if not c.ok]
    assert any("name the coordinator in the connection string" in finding for finding in said)


def test_a_source_of_local_tables_takes_no_distributed_ones(db: Db, follow: Follow) -> None:
    """It is captured from its server alone, as before; a new snapshot of all of it captures the cluster."""
    db.execute("CREATE TABLE plain (id int PRIMARY KEY, amount bigint)")
    distributed(db, "orders")
    follower = follow("plain")
    assert "is a distributed table of Citus" in refusal(lambda: follower.renew("orders"))
    db.execute("INSERT INTO plain VALUES (1, 1); SELECT create_distributed_table('plain', 'id')")
    assert "plain is a distributed table of Citus now" in refusal(follower.land, "CAPTURE_REMOVED")
    follower.begin()
    db.execute("INSERT INTO plain VALUES (2, 2)")
    follower.land()
    check(follower, db, "plain")


def test_a_worker_that_is_down_holds_back_all(db: Db, follow: Follow, cluster: Cluster) -> None:
    """And which one is said; nothing is lost by it."""
    distributed(db, "orders")
    follower, worker = follow("orders"), cluster.workers[1]
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 20) g")
    worker.stop("immediate")
    try:
        assert f"127.0.0.1:{worker.port}" in refusal(follower.land, "SOURCE_UNREACHABLE")
    finally:
        worker.start()
    assert landed(follower) == [("orders", False)]
    check(follower, db, "orders")


def test_a_slot_or_a_publication_of_a_worker_is_lost(db: Db, follow: Follow, cluster: Cluster) -> None:
    distributed(db, "orders")
    follower = follow("orders")
    with cluster.workers[0].connect() as worker:
        worker.execute(f"SET citus.enable_ddl_propagation = off; DROP PUBLICATION {follower.slot}")
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 20) g")
    assert "was dropped" in refusal(follower.land, "CAPTURE_REMOVED")
    follower.begin()
    check(follower, db, "orders")
    with cluster.workers[1].connect() as worker:
        worker.execute("SELECT pg_drop_replication_slot(%s)", (follower.slot,))
    db.execute("DELETE FROM orders WHERE id < 5")
    refusal(follower.land, "SLOT_LOST")
    follower.begin()
    check(follower, db, "orders")


def test_health_is_that_of_all_nodes(db: Db, follow: Follow, cluster: Cluster) -> None:
    distributed(db, "orders")
    follower = follow("orders")
    for key in range(12):
        db.execute("INSERT INTO orders VALUES (%s, 1)", (key,))
    found = health({"url": cluster.url, "slot": follower.slot}, follower.position)
    assert [(n.node.split(":")[-1], n.slot_status) for n in found.nodes] == [
        ("coordinator", "reserved"),
        *((str(w.port), "reserved") for w in cluster.workers),
    ]
    assert found.backlog is not None
    assert found.backlog.transactions == 12
    assert found.lag == sum(n.lag_bytes for n in found.nodes) > 0


@pytest.fixture
def role(db: Db, cluster: Cluster) -> Iterator[str]:
    """A role with what docs/postgresql.md says, and no more."""
    db.execute("CREATE ROLE shop_owner; CREATE ROLE least LOGIN REPLICATION; GRANT shop_owner TO least")
    db.execute(f"GRANT CREATE ON DATABASE {DATABASE} TO least")
    yield "least"
    for node in cluster.nodes:
        with node.connect() as own:
            own.execute("SET citus.enable_ddl_propagation = off; DROP OWNED BY least")
    db.execute("DROP OWNED BY shop_owner CASCADE")
    db.execute("DROP ROLE least")
    db.execute("DROP ROLE shop_owner")


def test_least_privilege(db: Db, cluster: Cluster, role: str, tmp_path: Path) -> None:
    distributed(db, "orders")
    reference(db, "rates")
    for table in ("orders", "rates"):
        db.execute(f"ALTER TABLE {table} OWNER TO shop_owner")
    url = cluster.coordinator.url(user=role)
    follower = Follower(url, tmp_path, "orders", "rates", slot="headrace_least", way=LogCapture)
    said = refusal(follower.begin)
    assert said.count("may not lock pg_dist_transaction") == 3
    assert not installed(db)
    for node in cluster.nodes:
        with node.connect() as own:
            own.execute(f"GRANT UPDATE ON pg_catalog.pg_dist_transaction TO {role}")
    follower.begin()
    db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 20) g; INSERT INTO rates VALUES (1, 1)")
    db.execute("UPDATE orders SET amount = 3 WHERE id < 5")
    assert landed(follower) == [("orders", False), ("rates", False)]
    check(follower, db, "orders", "rates")
    db.execute("TRUNCATE orders")
    assert landed(follower) == [("orders", True)]
    follower.capture().remove()
    assert not installed(db)


def test_clusters_that_are_not_ready(tmp_path: Path) -> None:
    """CDC off on one worker, metadata not synced, a worker disabled: each with the setting and what must restart."""
    with citus_cluster(1) as cluster, cluster.connect() as db:
        late = cluster.add_worker({"citus.enable_change_data_capture": "off"})
        distributed(db, "orders")
        follower = Follower(cluster.url, tmp_path, "orders", slot="headrace_bad", way=LogCapture)
        said = refusal(follower.begin)
        assert f"worker 127.0.0.1:{late.port}: change data capture: citus.enable_change_data_capture is off" in said
        assert "ALTER SYSTEM SET citus.enable_change_data_capture = 'on'; -- then restart this node" in said
        assert not installed(db)
        with late.connect() as worker:
            worker.execute("ALTER SYSTEM SET citus.enable_change_data_capture = 'on'")
        late.restart("fast")
        follower.begin()
        with late.connect() as worker:
            worker.execute("ALTER SYSTEM SET citus.enable_change_data_capture = 'off'")
        late.restart("fast")
        with cluster.connect() as afresh:
            afresh.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 20) g")
        assert "citus.enable_change_data_capture is off" in refusal(follower.land, "CAPTURE_REMOVED")
        db.execute("UPDATE pg_dist_node SET metadatasynced = false WHERE nodeport = %s", (late.port,))
        assert "does not have the cluster's metadata" in refusal(follower.begin)
        db.execute("UPDATE pg_dist_node SET isactive = false WHERE nodeport = %s", (late.port,))
        with pytest.raises(UserError, match=rf"SOURCE_NOT_READY.*127.0.0.1:{late.port}.*disabled"):
            follower.begin()
