"""A cycle over many stream tables none of whose sources changed."""

from __future__ import annotations

import argparse
import time

from bench.measure import Figure, listed, median, project, show

TABLES = 500
SOURCES = 20


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure the idle cycle, and that it runs no Spark job."""
    with project(options.master) as hr:
        hr.sql("CREATE NAMESPACE lake.i")
        for i in range(SOURCES):
            hr.sql(f"CREATE TABLE i.t{i} (k INT, v INT) USING iceberg")
        for i in range(TABLES):
            query = f"SELECT k, v + {i} AS v FROM i.t{i % SOURCES}"
            hr.create_stream_table(f"i.s{i}", query, initialize=True)
        hr.refresh()
        tracker = hr.spark.sparkContext.statusTracker()
        before = len(tracker.getJobIdsForGroup(None))
        times = []
        for _ in range(9):
            start = time.perf_counter()
            if hr.refresh():
                raise SystemExit("an idle cycle refreshed something")
            times.append((time.perf_counter() - start) * 1000)
        if len(tracker.getJobIdsForGroup(None)) != before:
            raise SystemExit("an idle cycle ran Spark jobs")
        return [
            show(Figure("idle", f"idle cycle over {TABLES} tables", median(times), "ms", 150, detail=listed(times)))
        ]
