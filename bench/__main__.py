"""Measures what BENCHMARKS.md reports: `python -m bench [suite …]` (see `--help`).

Every figure is a ratio or a time taken side by side in one run on one machine; each case prints as it is measured, and
everything is written to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path

from bench import (
    citus,
    commands,
    compilation,
    connect,
    deployments,
    diamonds,
    dispatch,
    fixed,
    groups,
    groups_on_spark,
    growth,
    idle,
    many_tables,
    matrix,
    medallion,
    pipelines,
    postgres,
    postgres_lag,
    postgres_writes,
    promotions,
    queries,
    shards,
    sinks,
    tpch,
    young,
)
from bench.measure import Figure, machine

SUITES: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "tpch": tpch.run,
    "queries": queries.run,
    "young": young.run,
    "growth": growth.run,
    "matrix": matrix.run,
    "fixed": fixed.run,
    "idle": idle.run,
    "commands": commands.run,
    "many-tables": many_tables.run,
    "compile": compilation.run,
    "dispatch": dispatch.run,
    "groups": groups.run,
    "groups-on-spark": groups_on_spark.run,
    "diamonds": diamonds.run,
    "pipelines": pipelines.run,
    "promotions": promotions.run,
    "deployments": deployments.run,
    "medallion": medallion.run,
    "postgres": postgres.run,
    "postgres-writes": postgres_writes.run,
    "postgres-lag": postgres_lag.run,
    "shards": shards.run,
    "sinks": sinks.run,
    "citus": citus.run,
    "connect": connect.run,
}


RESULTS = Path(__file__).with_name("results")
WHEN_NAMED = frozenset({"growth", "matrix", "many-tables", "citus", "connect"})
"""Suites that take too long, or need what no registry has, and do not run when none is named."""


def main() -> None:
    """Run the chosen suites."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "suites",
        nargs="*",
        choices=[[], *SUITES],
        help=f"which; by default all but {', '.join(name for name in SUITES if name in WHEN_NAMED)}",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor (1)")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each case; the median is reported (5)")
    parser.add_argument("--warm-up", type=int, default=8, help="turns of a TPC-H case before it is measured (8)")
    parser.add_argument(
        "--cases", type=int, default=None, help="only the first so many cases of TPC-H, matrix and PostgreSQL (all)"
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="sizes of the matrix (1000000 10000000)"
    )
    parser.add_argument(
        "--shares", type=float, nargs="+", default=[0.001, 0.01], help="how much changes for queries (0.001 0.01)"
    )
    parser.add_argument(
        "--scales", type=float, nargs="+", default=[1, 3, 10], help="TPC-H scale factors of growth (1 3 10)"
    )
    parser.add_argument("--tables", type=int, default=10_000, help="stream tables of many-tables (10000)")
    parser.add_argument("--schedulers", type=int, default=10, help="schedulers of many-tables (10)")
    parser.add_argument("--lines", type=int, default=6000, help="line items that change in growth (6000)")
    parser.add_argument(
        "--mode",
        choices=["DIFFERENTIAL", "AUTO"],
        default="AUTO",
        help="refresh mode of TPC-H's 22 queries (AUTO)",
    )
    parser.add_argument("--without-full", action="store_true", help="measure queries against plain Spark only")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for what was measured (bench/results)")
    parser.add_argument("--master", default="local[*]", help="Spark master (local[*])")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    taken_on = machine()
    figures: list[Figure] = []
    for name in options.suites or (name for name in SUITES if name not in WHEN_NAMED):
        print(f"\n== {name}", flush=True)
        figures += SUITES[name](options)
    record = {"machine": taken_on, "python": platform.python_version(), "figures": [f.as_dict() for f in figures]}
    (options.results / "latest.json").write_text(json.dumps(record, indent=2) + "\n")
    missed = [f for f in figures if f.met is False]
    for figure in missed:
        print(f"missed: {figure}", flush=True)


if __name__ == "__main__":
    main()
