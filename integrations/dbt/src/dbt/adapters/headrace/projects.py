"""Open projects of this process: each is opened once, with one Spark for all threads."""

from __future__ import annotations

import atexit
import threading
from pathlib import Path

from dbt.adapters.events.logging import AdapterLogger

import headrace
from headrace.api.facade import Headrace
from headrace.events import Event, Notice, SparkStarting

logger = AdapterLogger("Headrace")

_open: dict[Path, Headrace] = {}
_lock = threading.Lock()


def open_project(root: Path) -> Headrace:
    """Return the open project of a folder; opens it, and starts Spark, the first time.

    It stays open for the next run of the same process, and is closed when the process ends.

    Raises:
        HeadraceError: There is no project, or Spark cannot be started.
    """
    with _lock:
        found = _open.get(root)
        if found is None:
            found = headrace.open(root)
            found.events.subscribe(_tell)
            try:
                found.spark  # noqa: B018  Java that is missing is an error of the connection, not of the first model
            except BaseException:
                found.close()
                raise
            _open[root] = found
        return found


def close_projects() -> None:
    """Close what this process has open."""
    with _lock:
        while _open:
            _open.popitem()[1].close()


def _tell(event: Event) -> None:
    if isinstance(event, SparkStarting):
        logger.info("Starting Spark")
    elif isinstance(event, Notice):
        logger.info(event.message)


atexit.register(close_projects)
