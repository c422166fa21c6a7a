"""Prints what becomes of each query of TPC-DS or Nexmark: `python -m bench.suites tpcds` (`make test-queries`).

Tables and queries of TPC-DS come from DuckDB's extension `tpcds`, which is on PyPI for another DuckDB than that of the
tests: `scripts/setup-beside tpcds` makes an environment for it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.measure import project
from bench.suites import nexmark_queries, nexmark_tables, on_duckdb, tpcds_tables, tpcds_texts
from bench.suites.followed import Followed, table
from bench.suites.on_spark import OPTIONS, OnSpark
from bench.suites.suite import Suite

ROOT = Path(__file__).parents[2]
TPCDS_PYTHON = ROOT / ".venv-tpcds" / "bin" / "python"


def main() -> int:
    """Play a suite; 1 if a result was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.suites", description=__doc__)
    parser.add_argument("suite", choices=("tpcds", "nexmark"))
    parser.add_argument("--rounds", type=int, default=10, help="rounds of changes (10)")
    parser.add_argument("--engine", choices=("spark", "duckdb"), default="spark", help="what runs them (spark)")
    parser.add_argument("--mode", choices=("DIFFERENTIAL", "AUTO"), default="DIFFERENTIAL", help="of refreshes")
    parser.add_argument("--queries", help="some of them, separated by commas")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache", help="where tables are kept")
    parser.add_argument("--results", type=Path, help="file that has the table after each round")
    parser.add_argument("--master", default="local[2]", help="Spark's master")
    options = parser.parse_args()
    suite = _generated(options.suite, options.folder.resolve(), options.rounds)
    if options.queries:
        suite = suite.only(options.queries.split(","))

    def tell(line: str, found: Mapping[str, Followed]) -> None:
        print(line, flush=True)
        if options.results is not None:
            options.results.write_text(table(found) + "\n")

    if options.engine == "duckdb":
        found = on_duckdb.play(suite, options.rounds, tell)
    else:
        with project(options.master, **OPTIONS) as hr:
            found = OnSpark(hr, suite, options.mode, tell).play(options.rounds)
    print(table(found))
    return int(any(each.wrong for each in found.values()))


def _generated(name: str, folder: Path, rounds: int) -> Suite:
    """Return a suite; generate its tables where there are none with so many rounds."""
    tables = folder / f"{name}-{rounds}"
    python, module, keys = {
        "tpcds": (str(TPCDS_PYTHON), tpcds_tables, tpcds_tables.KEYS),
        "nexmark": (sys.executable, nexmark_tables, nexmark_tables.KEYS),
    }[name]
    if not (tables / "done").exists():
        subprocess.run([python, "-m", module.__name__, str(tables), str(rounds)], check=True, cwd=ROOT)
        (tables / "done").touch()
    queries = tpcds_texts.texts(tables) if name == "tpcds" else nexmark_queries.QUERIES
    return Suite(name, tables, keys, queries)


if __name__ == "__main__":
    sys.exit(main())
