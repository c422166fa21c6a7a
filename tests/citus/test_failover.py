"""A worker's replica takes its place: the source stops and says so, or goes on where that was decided before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from citus.conftest import check, distributed
from kit.citus_cluster import DATABASE, Cluster, Node, _free_port, citus_cluster
from kit.mirrored import Follower

from headrace.errors import UserError
from headrace.sources.postgres.setup.open_capture import LogCapture

Db = psycopg.Connection[Any]


class Replica(Node):
    """A replica of a node, with the failover slots that PostgreSQL keeps in step."""

    def __init__(self, primary: Node, folder: Path) -> None:
        self.folder, self.port = folder, _free_port()
        self._user = primary._user
        folder.mkdir(mode=0o755)
        self._own(folder)
        with primary.connect() as db:
            db.execute("SELECT pg_create_physical_replication_slot('replica', true)")
        self.run("pg_basebackup", "-D", str(self.data), "-d", primary.url("postgres"), "-R", "-c", "fast", "-X", "s")
        settings = {
            "port": str(self.port),
            "primary_slot_name": "replica",
            "primary_conninfo": f"host=127.0.0.1 port={primary.port} user=postgres dbname={DATABASE}",
            "hot_standby_feedback": "on",
            "sync_replication_slots": "on",
        }
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self.start()

    def catch_up(self, primary: Node) -> None:
        with primary.connect() as db:
            ahead = "SELECT pg_current_wal_flush_lsn() > replay_lsn FROM pg_stat_replication WHERE state = 'streaming'"
            while db.execute(ahead).fetchone() != (False,):
                time.sleep(0.05)

    def in_step(self, primary: Node, cluster: Cluster, follower: Follower) -> None:
        """Wait until the slot came along: not before it can do without what the replica saw running."""
        kept = "SELECT count(*) FROM pg_replication_slots WHERE synced AND NOT temporary"
        with self.connect() as here, primary.connect() as there, cluster.connect() as db:
            while here.execute(kept).fetchone() != (1,):
                db.execute("UPDATE orders SET amount = amount + 1")
                there.execute("SELECT pg_log_standby_snapshot(), pg_logical_emit_message(false, 't', '', true)")
                follower.land()
                time.sleep(0.3)
            self.catch_up(primary)

    def take_over(self, primary: Node, cluster: Cluster) -> None:
        """Be promoted, and be the worker for the coordinator."""
        self.catch_up(primary)
        with self.connect() as here:
            primary.stop("immediate")
            assert here.execute("SELECT pg_promote()").fetchone() == (True,)
        with cluster.connect() as db:
            [node] = db.execute("SELECT nodeid FROM pg_dist_node WHERE nodeport = %s", (primary.port,)).fetchone() or ()
            db.execute("SELECT citus_update_node(%s, '127.0.0.1', %s)", (node, self.port))
            while db.execute("SELECT bool_and(metadatasynced) FROM pg_dist_node").fetchone() != (True,):
                time.sleep(0.1)  # until Citus has told the others; it looks for that once a minute


@contextmanager
def replica_of(primary: Node, folder: Path) -> Iterator[Replica]:
    made = Replica(primary, folder)
    try:
        yield made
    finally:
        made.stop("immediate")


@pytest.mark.parametrize("failover", [False, True])
def test_replica_of_a_worker_is_promoted(tmp_path: Path, failover: bool) -> None:
    with citus_cluster() as cluster, cluster.connect() as db:
        distributed(db, "orders")
        db.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 100) g")
        worker = cluster.workers[0]
        with replica_of(worker, worker.folder.parent / "replica") as replica:
            follower = Follower(
                cluster.url, tmp_path / "spool", "orders", slot="headrace_f", way=LogCapture, failover=failover
            )
            follower.begin()
            db.execute("UPDATE orders SET amount = 0 WHERE id < 50")
            follower.land()
            if failover:
                replica.in_step(worker, cluster, follower)
            db.execute("DELETE FROM orders WHERE id % 10 = 0")
            replica.take_over(worker, cluster)
            with cluster.connect() as afresh:
                afresh.execute("INSERT INTO orders SELECT g, 1 FROM generate_series(101, 150) g")
                if failover:
                    told = [text for landing in follower.land() for text in landing.notices]
                    assert any("The source's server has changed" in text for text in told), told
                else:
                    with pytest.raises(UserError, match="SOURCE_CHANGED") as stopped:
                        follower.land()
                    assert "resnapshot" in (stopped.value.hint or "")
                    follower.begin()
                check(follower, afresh, "orders")
                afresh.execute("UPDATE orders SET amount = 5 WHERE id > 90")
                follower.land()
                check(follower, afresh, "orders")
            follower.capture().remove()
