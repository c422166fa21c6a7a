"""Readers of three tables, PySpark and PyIceberg, through promotions and rollbacks while sources change."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from kit.long_tests import LONG
from kit.waiting import running, until
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StaticTable

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.names import LAKE, TableName

EXCHANGES = 200 if LONG else 2
TABLES = ("ones", "sums", "both")
LAG = dt.timedelta(minutes=10)
"""So far a green may be behind; its promotion brings it up to the common cut."""
PATIENCE = 120.0
PAUSE = 0.02 if LONG else 0.5
"""Seconds between two looks."""
MOVED_ON = ("GREEN_BEHIND", "NO_COMMON_CUT", "LEASE_HELD")
"""Answers of a promotion while the sources change faster than both generations can follow."""

PIPELINE = """
CREATE TABLE {ns}.orders (id BIGINT, region STRING, amount BIGINT) USING iceberg;
INSERT INTO {ns}.orders VALUES (1, 'EU', 10), (2, 'US', 20);
CREATE STREAM TABLE {ns}.ones SCHEDULE 'ON CHANGE' AS {ones};
CREATE STREAM TABLE {ns}.sums SCHEDULE 'ON CHANGE' AS {sums};
CREATE STREAM TABLE {ns}.both SCHEDULE 'ON CHANGE' AS SELECT generation, sum(total) AS total FROM (
    SELECT generation, total FROM {ns}.ones UNION ALL SELECT generation, total FROM {ns}.sums
) AS b GROUP BY generation
"""
ONES = "SELECT id, amount * {factor} AS total, {factor} AS generation FROM {ns}.orders"
SUMS = "SELECT region, sum(amount * {factor}) AS total, {factor} AS generation FROM {ns}.orders GROUP BY region"

Rows = tuple[Counter[int], ...]
"""By table, the totals of each generation that it has rows of."""


def judged(ones: Counter[int], sums: Counter[int], both: Counter[int]) -> str:
    """Old or new, if each table has one generation, the same, and the third agrees with the other two."""
    if not len(ones) == len(sums) == len(both) == 1 or both != ones + sums or ones != sums:
        return f"mixed: {ones}, {sums}, {both}"
    return {1: "old", 2: "new"}[next(iter(both))]


def totals(rows: list[tuple[int, int]]) -> Counter[int]:
    found = Counter[int]()
    for generation, total in rows:
        found[generation] += total
    return found


class Looks:
    """Counts what somebody sees who looks again and again."""

    def __init__(self, look: Callable[[], str]) -> None:
        self.look, self.seen, self.error = look, Counter[str](), list[BaseException]()

    def run(self, stopping: threading.Event) -> None:
        try:
            while not stopping.wait(PAUSE):
                self.seen[self.look()] += 1
        except BaseException as error:
            self.error.append(error)


def with_pyspark(hr: Headrace, ns: str) -> Callable[[], str]:
    def look() -> str:
        pinned = hr.at()
        query = " UNION ALL ".join(f"SELECT '{t}' AS t, generation, total FROM {ns}.{t}" for t in TABLES)
        rows = pinned.sql(query).collect()
        return judged(*(totals([(r.generation, r.total) for r in rows if r.t == t]) for t in TABLES))

    return look


def with_pyiceberg(hr: Headrace, ns: str) -> Callable[[], str]:
    names = [TableName(LAKE, (ns,), table) for table in TABLES]
    catalog = SqlCatalog("lake", uri=hr.settings.catalog_url, warehouse=hr.settings.warehouse)

    def rows(table: StaticTable) -> Counter[int]:
        read = table.scan(selected_fields=("generation", "total")).to_arrow()
        return totals(list(zip(read["generation"].to_pylist(), map(int, read["total"].to_pylist()), strict=True)))

    def look() -> str:
        try:
            for table in TABLES:  # one after the other: each is there, and whole
                alone = rows(catalog.load_table((ns, table)))  # type: ignore[arg-type]
                if len(alone) != 1:
                    return f"mixed: {table} alone, {alone}"
        except NoSuchTableError as error:
            return f"missing: {error}"
        found = hr._catalog.pointers(LAKE, names)  # all of them in one query
        if len(found) != len(names):
            return f"missing: {set(names) - found.keys()}"
        return judged(*(rows(StaticTable.from_metadata(found[name].metadata_location)) for name in names))

    return look


def patiently(act: Callable[[], object]) -> None:
    """Do what may have to be tried again, as sources move on."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            act()
        except HeadraceError as error:
            if error.code not in MOVED_ON or time.monotonic() > give_up:
                raise
        else:
            return


def test_readers_see_old_or_new_whole_through_promotions_and_rollbacks(hr: Headrace, ns: str) -> None:
    old = {"ones": ONES.format(ns=ns, factor=1), "sums": SUMS.format(ns=ns, factor=1)}
    hr.sql(PIPELINE.format(ns=ns, **old))
    hr.create_green(f"{ns}.ones", ONES.format(ns=ns, factor=2))
    hr.create_green(f"{ns}.sums", SUMS.format(ns=ns, factor=2))
    hr.create_green(f"{ns}.both")
    readers = {"PySpark": Looks(with_pyspark(hr, ns)), "PyIceberg": Looks(with_pyiceberg(hr, ns))}

    def write(stopping: threading.Event) -> None:
        number = 3
        while not stopping.wait(1 if LONG else 3):
            hr.spark.sql(f"INSERT INTO lake.{ns}.orders VALUES ({number}, 'region {number % 5}', {number})")
            number += 1

    with ExitStack() as beside:
        for reader in readers.values():
            beside.enter_context(running(reader.run))
        beside.enter_context(running(lambda stopping: hr.run(stopping=stopping, max_concurrent=2)))
        beside.enter_context(running(write))
        for number in range(EXCHANGES):
            seen = {name: sum(reader.seen.values()) for name, reader in readers.items()}
            promote = partial(hr.promote_all_green, lag_threshold=LAG)
            act = hr.rollback_green if number % 2 else promote
            patiently(partial(act, deployment="green"))
            until(lambda seen=seen: all(sum(r.seen.values()) > seen[n] or r.error for n, r in readers.items()))  # type: ignore[misc]
    for name, reader in readers.items():
        assert not reader.error, (name, reader.error)
        assert set(reader.seen) == {"old", "new"}, (name, reader.seen)
    hr.refresh()
    assert all(v.ok for v in hr.verify([t.name for t in hr.status() if t.name.startswith(ns)]))
    hr.cancel_green(deployment="green")
