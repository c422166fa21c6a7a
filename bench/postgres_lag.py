"""How late the lake is: from a commit on PostgreSQL to the published aggregate that shows it, while a shop goes on.

The scheduler runs as `headrace run` does, with `ON CHANGE`. Every transaction inserts a sale and updates the stock; the
number of sales that the lake shows, read by PyIceberg as by any other reader, tells which transactions have arrived.
"""

from __future__ import annotations

import argparse
import random
import statistics
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from bench.measure import Figure, project, show
from bench.servers import WAYS, server
from headrace.api.facade import Headrace

RATE = 100
WARM_UP, MEASURED, PATIENCE = 75.0, 30.0, 20.0
GOAL = 2.0
LOOK_SECONDS = 0.02
QUERY = "SELECT region, count(*) AS sales, sum(amount) AS revenue FROM {}.sales GROUP BY region"
TABLES = """
CREATE TABLE stock (id int PRIMARY KEY, left_over bigint NOT NULL);
INSERT INTO stock SELECT g, 0 FROM generate_series(1, 1000) g;
CREATE TABLE sales (id bigint PRIMARY KEY, region int NOT NULL, product int NOT NULL, amount numeric(12,2) NOT NULL);
"""

SUMS = (
    "count(*), CAST(sum(left_over) AS bigint), CAST(sum(left_over * id) AS bigint) FROM {}stock",
    "count(*), CAST(sum(id) AS bigint), sum(amount) FROM {}sales",
)
"""Asked of the database and of its mirrors."""


@dataclass(slots=True)
class Arrivals:
    """When transactions were committed, and how long they took to arrive.

    Args:
        committed: Moments of the commits, in order.
        lags: Seconds, of those that have arrived.
        states: How many states of the lake were seen.
    """

    committed: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    states: int = 0

    def seen(self, count: int, at: float) -> None:
        """The lake shows so many transactions."""
        self.states += 1
        self.lags += [at - moment for moment in self.committed[len(self.lags) : count]]


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure both ways, one after the other."""
    figures = []
    with project(options.master) as hr:
        hr.sql("CREATE NAMESPACE IF NOT EXISTS lake.lag")
        for way in WAYS[: options.cases]:
            with server() as url:
                figures.append(lag(hr, url, way))
    return figures


def lag(hr: Headrace, url: str, way: str) -> Figure:
    """Median lag of the transactions of some seconds, of a session that has run for a while."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(TABLES)
    hr.sources.create(way, url, ["stock", "sales"], capture=way)
    hr.create_stream_table(f"lag.{way}", QUERY.format(way), schedule="ON CHANGE", refresh_mode="DIFFERENTIAL")
    arrivals, ended, stopping = Arrivals(), threading.Event(), threading.Event()
    threads = [
        threading.Thread(target=hr.run, kwargs={"stopping": stopping}),
        threading.Thread(target=sell, args=(url, arrivals, ended)),
    ]
    for thread in threads:
        thread.start()
    try:
        watch(hr, way, arrivals, ended)
    finally:
        ended.set()
        stopping.set()
        for thread in threads:
            thread.join()
    check(hr, url, way)
    hr.drop_stream_table(f"lag.{way}")
    hr.sources.drop(way)
    measured = arrivals.lags[int(WARM_UP * RATE) : int((WARM_UP + MEASURED) * RATE)]
    late, most = statistics.quantiles(measured, n=20)[-1], max(measured)
    detail = f"p95 {late:.2f} s, max {most:.2f} s; {len(measured):,} transactions, {arrivals.states} states"
    label = f"{way}: commit to published aggregate at {RATE} transactions/s"
    return show(Figure("postgres-lag", label, statistics.median(measured), "s", GOAL, detail=detail))


def check(hr: Headrace, url: str, way: str) -> None:
    """What is fast must be right: the mirrors hold what the database does."""
    hr.sources.land(way)
    for sums in SUMS:
        with psycopg.connect(url) as db:
            there = db.execute(f"SELECT {sums.format('')}").fetchone()
        here = hr.sql(f"SELECT {sums.format(f'lake.{way}.')}").first()
        if here is None or there is None or tuple(here) != there:
            raise SystemExit(f"mirrors are wrong: {here} instead of {there}")


def sell(url: str, arrivals: Arrivals, ended: threading.Event) -> None:
    """Commit transactions at a steady rate."""
    chance, begin = random.Random(7), time.monotonic()
    with psycopg.connect(url, autocommit=True) as db:
        for number in range(int((WARM_UP + MEASURED) * RATE)):
            if ended.wait(max(0.0, begin + number / RATE - time.monotonic())):
                return
            product = chance.randint(1, 1000)
            with db.transaction():
                sale = (number, number % 8, product, chance.randint(1, 9999) / 100)
                db.execute("INSERT INTO sales VALUES (%s, %s, %s, %s)", sale)
                db.execute("UPDATE stock SET left_over = left_over - 1 WHERE id = %s", (product,))
            arrivals.committed.append(time.monotonic())


def watch(hr: Headrace, way: str, arrivals: Arrivals, ended: threading.Event) -> None:
    """Look at the lake until it shows all transactions."""
    catalog = load_catalog("lake", type="sql", uri=hr.settings.catalog_url, warehouse=hr.settings.warehouse)
    assert isinstance(catalog, SqlCatalog)
    wanted, shown = int((WARM_UP + MEASURED) * RATE), ""
    give_up = time.monotonic() + WARM_UP + MEASURED + PATIENCE
    while len(arrivals.lags) < wanted and time.monotonic() < give_up and not ended.is_set():
        time.sleep(LOOK_SECONDS)
        with suppress(NoSuchTableError):
            table = catalog.load_table(("lag", way))
            if table.metadata_location != shown:
                shown = table.metadata_location
                count = sum(table.scan(selected_fields=("sales",)).to_arrow()["sales"].to_pylist())
                arrivals.seen(count, time.monotonic())
