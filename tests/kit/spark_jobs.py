"""What Spark runs at the moment: its jobs, and its tasks, which go on after a cancellation until they notice it."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any, NamedTuple

from headrace.api.facade import Headrace

UI = "HEADRACE_TEST_CONNECT_UI"
"""Variable that names the UI of the Connect server, where tests speak to one."""


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


def _asked(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        found: list[dict[str, Any]] = json.load(answer)
        return found
