"""Cuts over a Citus cluster while clients of all nodes commit 100 transactions a second, and sinks into it.

Each transaction writes to two distributed tables, mostly on two workers. HEADRACE_CITUS_BIN names a PostgreSQL with
Citus; without one the suite says what it needs. A landing is measured up to files: what Spark does with them is the
same as for one server.
"""

from __future__ import annotations

import argparse
import os
import random
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from kit.citus_cluster import citus_cluster

from bench import sinks
from bench.measure import Figure, listed, median, project, show
from headrace.names import LAKE, TableName
from headrace.sources.postgres.citus.citus_capture import CitusCapture
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.wal.wal_capture import Captured

RATE, CUTS, ACCOUNTS = 100, 60, 10_000
GOAL = 0.1
TABLES = ("here", "there")


def run(options: argparse.Namespace) -> list[Figure]:
    """Land again and again, each time at a cut of its own."""
    if not os.environ.get("HEADRACE_CITUS_BIN"):
        print("  needs HEADRACE_CITUS_BIN: see scripts/find-citus", flush=True)
        return []
    with ExitStack() as stack:
        cluster = stack.enter_context(citus_cluster())
        with cluster.connect() as db:
            for table in TABLES:
                db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
                db.execute(f"SELECT create_distributed_table('{table}', 'id')")
                db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g")
        names = {TableName(LAKE, ("s",), table): ("public", table) for table in TABLES}
        folder = stack.enter_context(TemporaryDirectory(prefix="hr-bench-spool-"))
        captured = Captured(cluster.url, "headrace_bench", names)
        first = CitusCapture(captured, Spool(folder)).begin()
        known: dict[TableName, Any] = {t.name: t.table for t in first.tables}  # type: ignore[attr-defined]
        held, landed, committed = _landings(cluster, captured, folder, known, first.position)
    case = f"cut over a coordinator and two workers, {committed:.0f} transactions a second"
    slowest = Figure("citus", f"{case}: longest of {len(held)}", max(held), "s", detail=listed(sorted(held)[-5:]))
    return [
        show(Figure("citus", f"{case}: median", median(held), "s", GOAL, detail="locks held")),
        show(slowest),
        show(Figure("citus", "reading up to a cut: median", median(landed), "s", detail="the cut included")),
        *_sinks(options),
    ]


def _sinks(options: argparse.Namespace) -> list[Figure]:
    """Measure sinks into tables of each placement, each in a cluster of its own beside one Spark."""
    from kit.citus_cluster import citus_cluster

    figures = []
    for placement in ("reference", "distributed"):
        with citus_cluster() as cluster, project(options.master) as hr:
            given = {"key": ["id"], "placement": placement}
            target = sinks.Target("keyed", cluster.url, f"{placement}, with a key", given)
            figures += sinks.measured(hr, [target], "citus", max(2, options.rounds // 2))
    return figures


def _landings(
    cluster: Any, captured: Captured, folder: str, known: dict[TableName, Any], position: Any
) -> tuple[list[float], list[float], float]:
    """Return how long locks were held, how long landings took, and how many transactions were committed a second."""
    leave, counts = threading.Event(), [0] * len(cluster.nodes)
    clients = [threading.Thread(target=_client, args=(cluster, number, leave, counts)) for number in range(len(counts))]
    held, landed = [], []
    for client in clients:
        client.start()
    begin = time.perf_counter()
    try:
        for _ in range(CUTS):
            capture = CitusCapture(replace(captured, known=known, position=position), Spool(folder))
            since = time.perf_counter()
            landing = capture.land(position)
            landed.append(time.perf_counter() - since)
            position = landing.position
            capture.clear()
            capture.acknowledge(position)
            if capture.cut_seconds is not None:
                held.append(capture.cut_seconds)
            time.sleep(0.1)
    finally:
        seconds = time.perf_counter() - begin
        leave.set()
        for client in clients:
            client.join()
        CitusCapture(replace(captured, known=known, position=position), Spool(folder)).remove()
    return held, landed, sum(counts) / seconds


def _client(cluster: Any, number: int, leave: threading.Event, counts: list[int]) -> None:
    """Move money at a steady rate; who is late does not wait."""
    chance, step = random.Random(number), len(counts) / RATE
    with cluster.nodes[number].connect() as db:
        due = time.perf_counter()
        while not leave.wait(max(0.0, due - time.perf_counter())):
            due += step
            with db.transaction():
                for table, amount in zip(TABLES, (5, -5), strict=True):
                    key = chance.randint(1, ACCOUNTS)
                    db.execute(f"UPDATE {table} SET amount = amount + %s WHERE id = %s", (amount, key))
            counts[number] += 1
