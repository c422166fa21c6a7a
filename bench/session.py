"""A process that refreshes all stream tables, or overwrites all of plain Spark's, once for each line of its input.

`python -m bench.session FOLDER refresh|overwrite MODE QUERY…`. It answers with a line of JSON each time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import headrace
from bench.asked_process import AskedProcess
from bench.measure import processor_seconds
from bench.tpch22 import charged, overwrite, table
from headrace.api.facade import Headrace
from headrace.results.refresh_results import RefreshResult

Answer = dict[str, dict[str, Any]]
"""By query: its seconds, also of processor time, its Spark jobs, and how it was refreshed."""


class Session(AskedProcess):
    """Such a process, seen from the one that started it.

    Args:
        folder: The project.
        verb: `refresh` or `overwrite`.
        mode: Which stream tables.
        names: Which queries.
        master: Spark's master.
    """

    def __init__(self, folder: Path, verb: str, mode: str, names: tuple[str, ...], master: str) -> None:
        command = [sys.executable, "-m", "bench.session", str(folder), verb, mode, *names]
        super().__init__(command, {"HEADRACE_SPARK_MASTER": master})

    def turn(self) -> Answer:
        """Have it do its work once."""
        answer: Answer = self.ask()
        return answer


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
