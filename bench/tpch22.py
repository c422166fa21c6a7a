"""The 22 queries of TPC-H as stream tables and as tables that plain Spark overwrites: what several suites share.

Plain Spark is what a user would run instead: `INSERT OVERWRITE` of the same text into an Iceberg table of the project's
format, in a session with the same settings, without a companion or anything else that only Headrace needs. Its tables
are compared with the stream tables at the end, so that its work is neither thrown away nor different.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.tpch import change
from headrace.api.facade import Headrace
from headrace.demo import tpch, tpch22
from headrace.results.refresh_results import RefreshResult

PLAIN = "plain"
"""The namespace of the tables that plain Spark overwrites."""
LINES = 6_000_000
"""Line items at scale 1."""
TOGETHER = ("read change of", "collect")
"""How the titles of stages begin that read for several stream tables."""


def load(hr: Headrace, scale: float) -> None:
    """Generate and load all tables."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="headrace-tpch-") as folder:
        tpch.generate(Path(folder), scale)
        for statement in tpch.load_statements(Path(folder)):
            hr.sql(statement)
    hr.sql("USE lake.tpch")
    print(f"  TPC-H at scale {scale:g} loaded in {time.perf_counter() - start:.0f} s", flush=True)


def table(mode: str, name: str) -> str:
    """A query's stream table in a mode."""
    return f"{mode.lower()}.{name}"


def create(hr: Headrace, names: Iterable[str], modes: Iterable[str]) -> None:
    """Make and fill the stream tables, in each mode, and those of plain Spark.

    The current namespace has to be that of TPC-H's tables.
    """
    start = time.perf_counter()
    for namespace in (PLAIN, *modes):
        hr.sql(f"CREATE NAMESPACE lake.{namespace.lower()}")
    for name in names:
        for mode in modes:
            hr.create_stream_table(table(mode, name), tpch22.text(name), refresh_mode=mode)
        hr.spark.sql(f"CREATE TABLE {plain(name)} USING iceberg AS\n{tpch22.text(name)}")
    print(f"  tables of all queries made in {time.perf_counter() - start:.0f} s", flush=True)


def plain(name: str) -> str:
    """A query's table of plain Spark."""
    return f"lake.{PLAIN}.{name}"


def overwrite(hr: Headrace, name: str) -> float:
    """Overwrite a query's plain table; return the seconds."""
    start = time.perf_counter()
    hr.spark.sql(f"INSERT OVERWRITE {plain(name)}\n{tpch22.text(name)}")
    return time.perf_counter() - start


def change_lines(hr: Headrace, number: int, lines: float, scale: float, *, close: bool) -> None:
    """Change about so many line items and their orders: half of them leave, as many arrive."""
    change(hr, number, lines / (LINES * scale), scale if close else None)


def require_equal(hr: Headrace, mode: str, names: Sequence[str]) -> None:
    """End the bench where a stream table differs from what plain Spark computed after the last change."""
    for name in names:
        ours, theirs = f"SELECT * FROM lake.{table(mode, name)}", f"SELECT * FROM {plain(name)}"
        both = f"({ours} EXCEPT ALL {theirs}) UNION ALL ({theirs} EXCEPT ALL {ours})"
        if differing := hr.spark.sql(both).count():
            raise SystemExit(f"{name}: the stream table and plain Spark's table differ in {differing} rows")


def reading(names: Iterable[str]) -> list[str]:
    """Those queries that read orders or line items, which are what changes."""
    return [name for name in names if re.search(r"\b(orders|lineitem)\b", tpch22.text(name))]


def charged(results: Mapping[str, RefreshResult]) -> dict[str, float]:
    """Seconds of each refresh; what some of them read together is charged to all of these in equal parts.

    Args:
        results: All refreshes of one turn.
    """
    together: dict[str, list[float]] = defaultdict(list)
    for result in results.values():
        for title, seconds in result.stages.items():
            if title.startswith(TOGETHER):
                together[title].append(seconds)
    own_seconds: dict[str, float] = {}
    for name, result in results.items():
        own = [title for title in result.stages if title in together]
        parts = (sum(together[title]) / len(together[title]) - result.stages[title] for title in own)
        own_seconds[name] = result.seconds + sum(parts)
    return own_seconds
