"""From tables of a cluster to stream tables, and back into tables of the same cluster, of every placement."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from citus import test_transfers as bank
from citus.conftest import distributed, reference
from kit.citus_cluster import Cluster
from kit.sink_writer import looking
from kit.sparks import FOR_A_TIER

import headrace
from headrace.api.facade import Headrace
from headrace.config import default_settings
from headrace.errors import EnvironmentFault

Db = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def hr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headrace]:
    settings = default_settings(tmp_path_factory.mktemp("project"))
    options = {"spark.driver.extraJavaOptions": FOR_A_TIER}
    with headrace.open(replace(settings, spark_master="local[2]", spark_options=options)) as opened:
        opened.spark.sql("CREATE NAMESPACE lake.r")
        yield opened


@pytest.fixture
def shop(hr: Headrace, db: Db, cluster: Cluster) -> Iterator[str]:
    """A source over a distributed table and a reference table; gone afterwards, with what was made of it."""
    distributed(db, "orders", columns="region int, amount bigint")
    reference(db, "regions", columns="name text")
    db.execute("INSERT INTO regions SELECT g, 'r' || g FROM generate_series(0, 4) g")
    db.execute("INSERT INTO orders SELECT g, g % 5, g FROM generate_series(1, 200) g")
    hr.sources.create("shop", cluster.url, ["orders", "regions"])
    yield "shop"
    for sink in hr.sinks.list():
        hr.sinks.drop(sink.name)
    for table in hr.status():
        hr.drop_stream_table(table.name, cascade=True, if_exists=True)
    hr.sources.drop("shop")


def round_trip(hr: Headrace, db: Db, cluster: Cluster, query: str, placement: str, placed: str) -> None:
    """Follow changes of all nodes from source to target, which is the query over the cluster's own tables."""
    hr.create_stream_table("r.result", query.replace("{}", "shop."), refresh_mode="DIFFERENTIAL")
    hr.sql(
        f"CREATE SINK out FROM r.result INTO POSTGRES '{cluster.url}' TABLE public.result "
        f"KEY (id) PLACEMENT {placement}"
    )

    def same() -> bool:
        found = Counter(db.execute("SELECT * FROM result").fetchall())
        return found == Counter(db.execute(query.replace("{}", "")).fetchall())

    assert same()
    assert [info.placement for info in hr.sql("SHOW SINKS")] == [placed]
    for node in cluster.nodes:
        with node.connect() as somebody:
            somebody.execute("UPDATE orders SET amount = amount + 1, region = (region + 1) % 5 WHERE id % 7 = 0")
    db.execute("DELETE FROM orders WHERE id < 20")
    db.execute("INSERT INTO orders SELECT g, g % 5, g FROM generate_series(201, 230) g")
    db.execute("UPDATE regions SET name = 'new' WHERE id = 2")
    hr.refresh()
    assert same()
    assert hr.sql("VERIFY SINK out").ok
    assert hr.sinks.status("out").placement == placed


BY_REGION = "SELECT region AS id, sum(amount) AS total, count(*) AS n FROM {}orders GROUP BY region"
JOINED = "SELECT o.id, r.name, o.amount FROM {}orders o JOIN {}regions r ON o.region = r.id"


def test_distributed_source_to_local_result(hr: Headrace, db: Db, cluster: Cluster, shop: str) -> None:
    round_trip(hr, db, cluster, BY_REGION, "LOCAL", "local")


def test_distributed_source_to_reference_result(hr: Headrace, db: Db, cluster: Cluster, shop: str) -> None:
    round_trip(hr, db, cluster, BY_REGION, "REFERENCE", "reference")


def test_distributed_source_to_distributed_result(hr: Headrace, db: Db, cluster: Cluster, shop: str) -> None:
    round_trip(hr, db, cluster, BY_REGION, "DISTRIBUTED BY (id)", "distributed by id")


def test_distributed_joined_with_reference(hr: Headrace, db: Db, cluster: Cluster, shop: str) -> None:
    round_trip(hr, db, cluster, JOINED, "DISTRIBUTED BY (id) COLOCATED WITH orders", "distributed by id")


def test_transfers_through_a_sink_are_never_seen_half(hr: Headrace, db: Db, cluster: Cluster) -> None:
    """Across workers, there and back; while nodes of both sides, which are the same, are killed."""
    with cluster.connect() as settings:
        settings.execute("ALTER SYSTEM SET citus.recover_2pc_interval = '1s'")
        settings.execute("SELECT pg_reload_conf()")
    bank.create(db)
    hr.sources.create("bank", cluster.url, bank.TABLES)
    both = " UNION ALL ".join(f"SELECT '{t}' AS side, id, amount FROM bank.{t}" for t in bank.TABLES)
    hr.create_stream_table("r.accounts", both, refresh_mode="DIFFERENTIAL")
    hr.create_stream_table("r.total", "SELECT sum(amount) AS total FROM r.accounts", refresh_mode="DIFFERENTIAL")
    hr.create_refresh_group("whole", ["r.accounts", "r.total"])
    key = ["side", "id"]
    hr.sinks.create("accounts", "r.accounts", cluster.url, "accounts", key=key, distributed_by="id")
    hr.sinks.create("total", "r.total", cluster.url, "total", placement="reference")

    def look(db: Db) -> object:
        with db.transaction():
            db.execute("LOCK TABLE accounts IN SHARE MODE")
            sums = db.execute("SELECT sum(amount) FROM accounts").fetchone()
            return sums, db.execute("SELECT total FROM total").fetchone()

    transfers, kills, versions = bank.Transfers(cluster, 0.02), 0, set()
    with ExitStack() as stack:
        stack.enter_context(transfers.going_on())
        seen = stack.enter_context(looking(cluster.url, look))
        for number in range(8):
            patiently(hr)
            versions.add(hr.sinks.status("accounts").version)
            if number % 2:
                cluster.nodes[(number // 2 + 1) % 3].restart()
                kills += 1
    patiently(hr)
    assert {int(value) for of in seen for row in of for value in row} == {bank.TOTAL}  # type: ignore[attr-defined]
    assert len(versions) > 4
    assert len(seen) > 8
    print("kills", kills, "looks", len(seen), "versions", len(versions), "transfers", transfers.counts)
    assert hr.sinks.verify("accounts").ok
    assert hr.sinks.verify("total").ok
    for name in ("accounts", "total"):
        hr.sinks.drop(name)
    hr.drop_refresh_group("whole")
    for name in ("total", "accounts"):
        hr.drop_stream_table(f"r.{name}")
    hr.sources.drop("bank")


def patiently(hr: Headrace) -> None:
    """Refresh, and write sinks, however long a node is away; nothing else may go wrong."""
    deadline = time.monotonic() + 180
    while True:
        try:
            hr.refresh()
            return
        except EnvironmentFault:
            assert time.monotonic() < deadline
            time.sleep(0.5)
