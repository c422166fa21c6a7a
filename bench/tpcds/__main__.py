"""TPC-DS as a suite: `python -m bench.tpcds` prints what becomes of its 99 queries (`make test-tpcds`).

Tables and queries come from DuckDB's extension `tpcds`, which is on PyPI for another DuckDB than that of the tests:
`scripts/setup-tpcds` makes an environment for it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from bench.measure import project
from bench.tpcds import generate, on_duckdb
from bench.tpcds.suite import Suite, table
from bench.tpcds.texts import texts

PYTHON = Path(__file__).parents[2] / ".venv-tpcds" / "bin" / "python"
"""The interpreter that has the extension."""


def main() -> int:
    """Play the suite; 1 if a result was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.tpcds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="rounds of changes (10)")
    parser.add_argument("--engine", choices=("spark", "duckdb"), default="spark", help="what runs them (spark)")
    parser.add_argument("--queries", help="some of them, separated by commas")
    parser.add_argument("--folder", type=Path, default=Path(".cache/tpcds"), help="where tables are kept")
    parser.add_argument("--master", default="local[2]", help="Spark's master")
    options = parser.parse_args()
    folder = _generated(options.folder.resolve(), options.rounds)
    queries = texts(folder)
    if options.queries:
        queries = {name: queries[name] for name in options.queries.split(",")}
    if options.engine == "duckdb":
        found = on_duckdb.play(folder, queries, options.rounds, _tell)
    else:
        with project(options.master) as hr:
            found = Suite(hr, folder, queries, _tell).play(options.rounds)
    print(table(found))
    return int(any(each.wrong for each in found.values()))


def _tell(line: str) -> None:
    print(line, flush=True)


def _generated(folder: Path, rounds: int) -> Path:
    """Return the folder of the tables; generate them where there are none of so many rounds."""
    tables = folder / f"tables-{rounds}"
    if not (tables / "done").exists():
        subprocess.run([PYTHON, generate.__file__, tables, str(rounds)], check=True)
        (tables / "done").touch()
    return tables


if __name__ == "__main__":
    sys.exit(main())
