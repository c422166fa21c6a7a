"""One private cluster for all tests of this folder: a coordinator and two workers, with CDC on.

They are no part of `make test`: no package registry has Citus. `make test-citus` runs them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.citus_cluster import Cluster, citus_cluster
from kit.mirrored import Follower, truth

from headrace.sources.postgres.setup.open_capture import LogCapture

_numbers = itertools.count(1)


collect_ignore_glob = [] if os.environ.get("HEADRACE_CITUS_BIN") else ["test_*.py"]
"""Nothing of this is part of a run without a cluster; `scripts/find-citus` says what is missing."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with citus_cluster() as started:
        yield started


@pytest.fixture
def db(cluster: Cluster) -> Iterator[psycopg.Connection[Any]]:
    """Somebody who writes on the coordinator; tables of the test are gone afterwards."""
    with cluster.connect() as connection:
        yield connection
    with cluster.connect() as connection:  # that one may think of nodes that were killed
        left = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'"
        for (table,) in connection.execute(left).fetchall():
            connection.execute(f"DROP TABLE IF EXISTS {table} CASCADE")


@pytest.fixture
def follow(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Follower]]:
    """Begin to follow tables; what was installed is removed in the end, on every node."""
    begun: list[Follower] = []

    def begin(*tables: str) -> Follower:
        name = f"headrace_f{next(_numbers)}"
        follower = Follower(cluster.url, tmp_path / name, *tables, slot=name, way=LogCapture)
        begun.append(follower)
        follower.begin()
        return follower

    yield begin
    for follower in begun:
        follower.capture().remove()
    for node in cluster.nodes:
        with node.connect() as connection:
            assert not installed(connection)


def installed(db: psycopg.Connection[Any]) -> list[Any]:
    """What Headrace has on a node."""
    slots = "SELECT slot_name::text FROM pg_replication_slots WHERE slot_name LIKE 'headrace%'"
    publications = "SELECT pubname::text FROM pg_publication WHERE pubname LIKE 'headrace%'"
    return db.execute(f"{slots} UNION ALL {publications}").fetchall()


def distributed(db: psycopg.Connection[Any], *tables: str, columns: str = "amount bigint", to: str = "id") -> None:
    for table in tables:
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
        db.execute(f"SELECT create_distributed_table('{table}', '{to}')")


def reference(db: psycopg.Connection[Any], *tables: str, columns: str = "amount bigint") -> None:
    for table in tables:
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
        db.execute(f"SELECT create_reference_table('{table}')")


def check(follower: Follower, db: psycopg.Connection[Any], *tables: str) -> None:
    """Compare mirrors with tables."""
    for table in tables:
        assert follower.rows(table) == truth(db, table), table


def landed(follower: Follower) -> list[tuple[str, bool]]:
    """Land; the mirrors that were written, and whether their tables were copied again."""
    return sorted({(t.name.table, t.replaced) for landing in follower.land() for t in landing.tables})
