"""A process that refreshes all stream tables, or overwrites all of plain Spark's, once for each line of its input.

`python -m bench.session FOLDER refresh|overwrite MODE QUERY…`. It answers with a line of JSON each time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import headrace
from bench.measure import processor_seconds
from bench.tpch22 import charged, overwrite, table
from headrace.api.facade import Headrace
from headrace.results.refresh_results import RefreshResult

ROOT = Path(__file__).parents[1]
Answer = dict[str, dict[str, Any]]
"""By query: its seconds, also of processor time, its Spark jobs, and how it was refreshed."""


class Session:
    """Such a process, seen from the one that started it.

    Args:
        folder: The project.
        verb: `refresh` or `overwrite`.
        mode: Which stream tables.
        names: Which queries.
        master: Spark's master.
    """

    def __init__(self, folder: Path, verb: str, mode: str, names: tuple[str, ...], master: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.session", str(folder), verb, mode, *names],
            cwd=ROOT,
            env={**os.environ, "HEADRACE_SPARK_MASTER": master},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def turn(self) -> Answer:
        """Have it do its work once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a session of the bench has ended; its error is above")
        answer: Answer = json.loads(line)
        return answer

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._process.communicate()


def main(folder: str, verb: str, mode: str, *names: str) -> None:
    """Work once for each line."""
    with headrace.open(folder) as hr:
        if verb == "overwrite":
            hr.sql("USE lake.tpch")
        hr.sql("SELECT 1").collect()
        for _ in sys.stdin:
            print(json.dumps((refreshed if verb == "refresh" else overwritten)(hr, mode, names)), flush=True)


def refreshed(hr: Headrace, mode: str, names: tuple[str, ...]) -> Answer:
    """Refresh the stream tables."""
    results: dict[str, RefreshResult] = {}
    processor = {}
    for name in names:
        before = processor_seconds()
        results[name] = hr.refresh(table(mode, name))
        processor[name] = processor_seconds() - before
    seconds = charged(results)
    return {
        name: {"seconds": seconds[name], "processor": processor[name], "jobs": each.jobs, "mode": each.mode.value}
        for name, each in results.items()
    }


def overwritten(hr: Headrace, mode: str, names: tuple[str, ...]) -> Answer:
    """Overwrite the tables of plain Spark."""
    context = hr.spark.sparkContext
    answer: Answer = {}
    for name in names:
        context.setJobGroup(name, f"overwrite {name}")
        jobs, processor = len(context.statusTracker().getJobIdsForGroup(name)), processor_seconds()
        seconds = overwrite(hr, name)
        processor = processor_seconds() - processor
        jobs = len(context.statusTracker().getJobIdsForGroup(name)) - jobs
        answer[name] = {"seconds": seconds, "processor": processor, "jobs": jobs, "mode": "overwrite"}
    return answer


if __name__ == "__main__":
    main(*sys.argv[1:])
