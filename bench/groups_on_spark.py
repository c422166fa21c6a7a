"""Groups of a dense pipeline on Spark: what `groups` simulates, with real small tables and the scheduler's own slots.

The tables are one pipeline of `groups`, over sources of a few rows. Every source is changed, and one pass of a
scheduler brings all tables up to date. The bound is the longest way through the graph, or all work divided by the
slots, whichever is larger, by the seconds that each refresh took in that very pass: so it says what is lost by waiting
for groups, and not how many refreshes a machine can do at once.
"""

from __future__ import annotations

import argparse
import random
import time
from datetime import datetime, timedelta

from bench.groups import GOAL, SLOTS, Pipeline, pipeline
from bench.measure import Figure, listed, median, project, show
from headrace.api.facade import Headrace
from headrace.graph.critical import remaining
from headrace.results.refresh_results import HistoryRow

ROWS = 100
SEED = 0


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure passes over all tables of one pipeline; the first one, which loads them, is not counted."""
    one = pipeline(SEED, uneven=False)
    with project(options.master) as hr:
        _create(hr, one)
        _passed(hr, one)
        ratios, details = [], list[str]()
        for _ in range(options.rounds):
            _change(hr, one)
            ratio, detail = _passed(hr, one)
            ratios.append(ratio)
            details.append(detail)
            print(f"  {ratio:.2f} x: {detail}", flush=True)
    case = f"{len(one.seconds)} small tables in random layers on Spark, {SLOTS} slots"
    detail = f"{listed(ratios)}; {details[-1]}; largest group {one.largest} tables"
    return [show(Figure("groups-on-spark", case, median(ratios), "x", GOAL, detail=detail))]


def _create(hr: Headrace, one: Pipeline) -> None:
    hr.spark.sql("CREATE NAMESPACE lake.g")
    for source in _sources(one):
        hr.spark.sql(f"CREATE TABLE lake.{_table(source)} USING iceberg AS SELECT id, id % 7 AS v FROM range({ROWS})")
    for name in one.dag.order(one.seconds):
        read = " UNION ALL ".join(f"SELECT id, v FROM {_table(p)}" for p in one.dag.producers(name))
        query = f"SELECT id, sum(v) AS v FROM ({read}) GROUP BY id"
        hr.create_stream_table(_table(name), query, schedule="1 second", initialize=False)


def _change(hr: Headrace, one: Pipeline) -> None:
    for source in _sources(one):
        hr.spark.sql(f"INSERT INTO lake.{_table(source)} SELECT {random.randrange(ROWS)}, 1")


def _passed(hr: Headrace, one: Pipeline) -> tuple[float, str]:
    """Run one pass; return how long it took against the bound, and both in words."""
    time.sleep(1.1)  # all are due again
    begun = datetime.now().astimezone()
    hr.run(once=True, max_concurrent=SLOTS)
    rows = {row.name: row for row in hr.history(limit=2 * len(one.seconds)) if row.started_at >= begun and row.ok}
    seconds = {name: rows[_table(name)].seconds for name in one.seconds}
    took = (max(map(_end, rows.values())) - min(row.started_at for row in rows.values())).total_seconds()
    way, work = max(remaining(one.dag, seconds).values()), sum(seconds.values()) / SLOTS
    return took / max(way, work), f"{took:.0f} s; longest way {way:.0f} s, work {work:.0f} s"


def _end(row: HistoryRow) -> datetime:
    return row.started_at + timedelta(seconds=row.seconds)


def _sources(one: Pipeline) -> list[str]:
    return [name for name in one.dag.names if name not in one.seconds]


def _table(name: str) -> str:
    return f"g.t{name.replace('.', '_')}"
