"""Fixed cost: one changed row, small tables, a warm session; and publishing alone."""

from __future__ import annotations

import argparse
import time

from bench.measure import Figure, listed, median, project, show
from headrace.api.facade import Headrace
from headrace.catalog import Publication, Swap
from headrace.names import LAKE, TableName

WARM_UP = 12
TURNS = 9


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure one-row refreshes without and with a change log, and publishing eight tables."""
    with project(options.master) as hr:
        hr.sql("CREATE NAMESPACE lake.f")
        hr.sql("CREATE TABLE f.t (k BIGINT, g STRING, v DECIMAL(12,2)) USING iceberg")
        hr.sql("INSERT INTO f.t SELECT id, concat('g', id % 10), id * 0.01 FROM range(1000)")
        figures = []
        for name, query in (
            ("filter", "SELECT k, v FROM f.t WHERE v > 5"),
            ("aggregate", "SELECT g, sum(v) AS v, count(*) AS n FROM f.t GROUP BY g"),
        ):
            hr.create_stream_table(f"f.{name}", query, refresh_mode="DIFFERENTIAL")
            times = one_row(hr, f"f.{name}")
            figures.append(show(Figure("fixed", f"{name}, one row", median(times), "s", 0.6, detail=listed(times))))
            hr.create_stream_table(f"f.{name}_reader", f"SELECT count(*) AS n FROM f.{name}")
            times = one_row(hr, f"f.{name}")
            label = f"{name}, one row, with change log"
            figures.append(show(Figure("fixed", label, median(times), "s", 0.9, detail=listed(times))))
        return [*figures, publishing(hr)]


def one_row(hr: Headrace, name: str) -> list[float]:
    """Seconds of refreshes after one inserted row each."""
    times = []
    for turn in range(WARM_UP + TURNS):
        hr.sql(f"INSERT INTO f.t VALUES ({turn}, 'g1', 10.00)")
        seconds = hr.refresh(name).seconds
        if turn >= WARM_UP:
            times.append(seconds)
    return times


def publishing(hr: Headrace) -> Figure:
    """Milliseconds of publishing eight tables at once."""
    catalog = hr._catalog
    names = []
    for i in range(8):
        hr.sql(f"CREATE TABLE staging.f.p{i} (k INT) USING iceberg")
        names.append(TableName(LAKE, ("f",), f"p{i}"))
    catalog.publish(Publication(swaps=tuple(Swap(n, None) for n in names)))
    times = []
    for _ in range(20):
        at = {n: p.metadata_location for n, p in catalog.pointers(LAKE, names).items()}
        start = time.perf_counter()
        catalog.publish(Publication(swaps=tuple(Swap(n, at[n]) for n in names)))
        times.append((time.perf_counter() - start) * 1000)
    return show(Figure("fixed", "publishing 8 tables", median(times), "ms", 20, detail=listed(times)))
