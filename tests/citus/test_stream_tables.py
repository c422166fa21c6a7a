"""Stream tables over tables of a cluster, in a real lake: every published state is one of the cluster."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from citus import test_transfers as bank
from citus.conftest import distributed, installed, reference
from kit.background import in_background
from kit.citus_cluster import Cluster
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
        opened.spark.sql("CREATE NAMESPACE lake.s")
        yield opened


def same(hr: Headrace, query: str, db: Db, of: str) -> bool:
    return Counter(tuple(row) for row in hr.sql(query).collect()) == Counter(db.execute(of).fetchall())


def test_sources_of_all_placements_and_what_is_made_of_them(hr: Headrace, db: Db, cluster: Cluster) -> None:
    """Distributed joined with reference and local tables; one source shared by several stream tables; a table added."""
    distributed(db, "orders", "visits", columns="region int, amount bigint")
    reference(db, "regions", columns="name text")
    db.execute("CREATE TABLE budgets (id int PRIMARY KEY, amount bigint)")
    db.execute("INSERT INTO regions SELECT g, 'r' || g FROM generate_series(0, 4) g")
    db.execute("INSERT INTO budgets SELECT g, 100 * g FROM generate_series(0, 4) g")
    db.execute("INSERT INTO orders SELECT g, g % 5, g FROM generate_series(1, 200) g")
    hr.sources.create("shop", cluster.url, ["orders", "regions", "budgets"])
    queries = {
        "joined": "SELECT o.id, r.name, o.amount FROM {}orders o JOIN {}regions r ON o.region = r.id",
        "totals": "SELECT r.name, sum(o.amount) AS total, count(*) AS n FROM {}orders o JOIN {}regions r "
        "ON o.region = r.id GROUP BY r.name",
        "spent": "SELECT b.id, b.amount, sum(o.amount) AS spent FROM {}budgets b JOIN {}orders o ON o.region = b.id "
        "GROUP BY b.id, b.amount",
    }
    for name, query in queries.items():
        hr.create_stream_table(f"s.{name}", query.replace("{}", "shop."), refresh_mode="DIFFERENTIAL")
    for node in cluster.nodes:
        with node.connect() as somebody:
            somebody.execute("UPDATE orders SET amount = amount + 1, region = (region + 1) % 5 WHERE id % 7 = 0")
    db.execute("UPDATE regions SET name = 'new' WHERE id = 2; DELETE FROM budgets WHERE id = 1")
    db.execute("INSERT INTO orders SELECT g, g % 5, g FROM generate_series(201, 220) g")
    hr.refresh()
    for name, query in queries.items():
        assert same(hr, f"SELECT * FROM s.{name}", db, query.replace("{}", "")), name
    db.execute("INSERT INTO visits SELECT g, g % 5, g FROM generate_series(1, 30) g")
    hr.sources.add_tables("shop", ["visits"])
    db.execute("DELETE FROM visits WHERE id > 20; TRUNCATE orders")
    hr.refresh()
    for name, query in queries.items():
        assert same(hr, f"SELECT * FROM s.{name}", db, query.replace("{}", "")), name
    assert same(hr, "SELECT id, region, amount FROM shop.visits", db, "SELECT id, region, amount FROM visits")
    assert all(result.ok for result in hr.verify([f"s.{name}" for name in queries]))
    status = hr.sources.status("shop")
    assert [node["slot_status"] for node in status.nodes] == ["reserved"] * 3
    for name in queries:
        hr.drop_stream_table(f"s.{name}")
    hr.sources.drop("shop")
    for node in cluster.nodes:
        with node.connect() as own:
            assert not installed(own)


def test_no_transfer_between_workers_is_ever_seen_half(hr: Headrace, db: Db, cluster: Cluster) -> None:
    """In mirrors, stream tables and the diamond that they make, while nodes are killed."""
    bank.create(db)
    hr.sources.create("bank", cluster.url, bank.TABLES)
    both = " UNION ALL ".join(f"SELECT amount FROM bank.{table}" for table in bank.TABLES)
    for side, condition in (("rich", "amount >= 100"), ("poor", "amount < 100")):
        query = f"SELECT amount FROM ({both}) AS b WHERE {condition}"
        hr.create_stream_table(f"s.{side}", query, refresh_mode="DIFFERENTIAL")
    met = "SELECT amount FROM s.rich UNION ALL SELECT amount FROM s.poor"
    query = f"SELECT sum(amount) AS total FROM ({met}) AS m"
    hr.create_stream_table("s.total", query, refresh_mode="DIFFERENTIAL")
    look = (
        f"SELECT (SELECT sum(amount) FROM ({both})), (SELECT sum(amount) FROM ({met})), (SELECT total FROM s.total), "
        "(SELECT max(amount) FROM s.rich)"
    )
    transfers, seen, killed = bank.Transfers(cluster, 0.02), [], iter((cluster.workers[0], cluster.workers[1]))

    def refresh(stopping: threading.Event) -> None:
        while not stopping.is_set():
            _refreshed(hr)

    with transfers.going_on(), in_background(refresh):
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and (len(seen) < 12 or len({of[3] for of in seen}) < 4):
            seen.append(tuple(map(int, hr.at().sql(look).first() or ())))
            if len(seen) in (4, 8) and (node := next(killed, None)) is not None:
                node.restart()
    assert {of[:3] for of in seen} == {(bank.TOTAL,) * 3}
    assert len({of[3] for of in seen}) >= 4, "the state moved on"
    deadline = time.monotonic() + 60
    while not _refreshed(hr):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    with cluster.connect() as afresh:
        for table in bank.TABLES:
            assert same(hr, f"SELECT id, amount FROM bank.{table}", afresh, f"SELECT id, amount FROM {table}")
    assert all(result.ok for result in hr.verify(["s.rich", "s.poor", "s.total"]))
    for name in ("total", "rich", "poor"):
        hr.drop_stream_table(f"s.{name}")
    hr.sources.drop("bank")


def _refreshed(hr: Headrace) -> bool:
    """Refresh; a node that is down just now is no failure of the test."""
    try:
        hr.refresh()
    except EnvironmentFault:
        return False
    return True
