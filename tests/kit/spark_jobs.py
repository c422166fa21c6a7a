"""Spark's process, and what runs in it: jobs, and tasks, which go on after a cancellation until they notice it."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any, NamedTuple

from pyspark import SparkContext

from headrace.api.facade import Headrace

UI, PROCESS = "HEADRACE_TEST_CONNECT_UI", "HEADRACE_TEST_CONNECT_PROCESS"
"""Variables that name the UI and the process of the Connect server, where tests speak to one."""


class Running(NamedTuple):
    """How many jobs and tasks run."""

    jobs: int
    tasks: int


def running_now(hr: Headrace) -> Running:
    """Ask Spark what it runs: in this process, or by the REST interface of a server's UI."""
    if (address := os.environ.get(UI)) is not None:
        (application,) = _asked(f"{address}/api/v1/applications")
        at = f"{address}/api/v1/applications/{application['id']}"
        executors = _asked(f"{at}/executors")
        return Running(len(_asked(f"{at}/jobs?status=running")), sum(each["activeTasks"] for each in executors))
    context = hr.spark.sparkContext
    executors = context._jsc.sc().statusTracker().getExecutorInfos()
    return Running(len(context.statusTracker().getActiveJobsIds()), sum(each.numRunningTasks() for each in executors))


def process_of_spark() -> int:
    """Return the number of the process that the driver is in."""
    if (server := os.environ.get(PROCESS)) is not None:
        return int(server)
    number: int = SparkContext._gateway.proc.pid  # type: ignore[union-attr]
    return number


def _asked(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        found: list[dict[str, Any]] = json.load(answer)
        return found
