"""Measures what BENCHMARKS.md reports: `python -m bench [suite …]` (see `--help`).

All suites but `matrix` and `citus` run when none is named.

Every figure is a ratio or a time taken side by side in one run on one machine; each case prints as it is measured, and
everything is written to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from bench import (
    citus,
    commands,
    compilation,
    deployments,
    diamonds,
    dispatch,
    fixed,
    groups,
    groups_on_spark,
    idle,
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
)
from bench.measure import Figure, machine

SUITES: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "tpch": tpch.run,
    "queries": queries.run,
    "matrix": matrix.run,
    "fixed": fixed.run,
    "idle": idle.run,
    "commands": commands.run,
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
}


WHEN_NAMED = frozenset({"matrix", "citus"})
"""Suites that take too long, or need what no registry has, and do not run when none is named."""


def main() -> int:
    """Run the chosen suites."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], help="which; all but matrix and citus by default")
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
        "--mode", choices=["DIFFERENTIAL", "AUTO"], default="DIFFERENTIAL", help="what FULL is set beside by queries"
    )
    parser.add_argument("--master", default="local[*]", help="Spark master (local[*])")
    options = parser.parse_args()
    figures: list[Figure] = []
    for name in options.suites or (name for name in SUITES if name not in WHEN_NAMED):
        print(f"\n== {name}", flush=True)
        found = SUITES[name](options)
        figures += found
    results = Path(__file__).with_name("results")
    results.mkdir(exist_ok=True)
    record = {"machine": machine(), "python": platform.python_version(), "figures": [f.as_dict() for f in figures]}
    (results / "latest.json").write_text(json.dumps(record, indent=2) + "\n")
    missed = [f for f in figures if f.met is False]
    for figure in missed:
        print(f"missed: {figure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
