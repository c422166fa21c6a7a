"""Open projects of this process: each is opened once, with one Spark for all threads."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.headrace.answers import Answer, answer_of

import headrace
from headrace.api.facade import Headrace
from headrace.events import Event, Notice, SparkStarting
from headrace.names import quote
from headrace.spark.errors import translated

logger = AdapterLogger("Headrace")


class Project(Protocol):
    """A project, as far as the adapter calls it; all else it says in SQL."""

    def run(self, sql: str) -> Answer:
        """Run statements; return the result of the last one.

        Raises:
            HeadraceError: A statement is wrong.
        """

    def verify(self, names: Sequence[str] | None) -> list[dict[str, Any]]:
        """Compare stream tables with their queries."""

    @contextmanager
    def local_rows(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Iterator[str]:
        """Give what FROM takes for rows of texts."""

    def release(self) -> None:
        """Forget what a node of this thread has left behind."""

    def cancel(self) -> None:
        """Cancel what runs."""

    def close(self) -> None:
        """End it."""


class OpenProject:
    """A project that is open in this process.

    Args:
        hr: The project.
    """

    def __init__(self, hr: Headrace) -> None:
        self.hr = hr

    def run(self, sql: str) -> Answer:
        """Run statements."""
        return answer_of(self.hr.sql(sql))

    def verify(self, names: Sequence[str] | None) -> list[dict[str, Any]]:
        """Compare stream tables with their queries."""
        return [one.as_dict() for one in self.hr.verify(None if names is None else list(names))]

    @contextmanager
    def local_rows(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Iterator[str]:
        """Make a temporary view of rows, however many."""
        view = quote(f"__dbt_rows_{threading.get_ident()}")
        schema = ", ".join(f"{quote(column)} STRING" for column in columns)
        with translated():
            frame = self.hr.spark.createDataFrame([tuple(row) for row in rows], schema)
            frame.createOrReplaceTempView(view[1:-1])
        try:
            yield view
        finally:
            self.hr.spark.catalog.dropTempView(view[1:-1])

    def release(self) -> None:
        """Do nothing: temporary views have names of their own, and end with the session."""

    def cancel(self) -> None:
        """Cancel the Spark jobs of this process."""
        self.hr.cancel_jobs()

    def close(self) -> None:
        """Close it, with its Spark."""
        self.hr.close()


_open: dict[tuple[Path, bool], Project] = {}
_lock = threading.Lock()


def open_project(root: Path, *, serve: bool = False) -> Project:
    """Return the open project of a folder; opens it, and starts Spark, the first time.

    It stays open for the next run of the same process, and is closed when the process ends.

    Args:
        root: The folder.
        serve: Have the project's server run statements, where there is one or one can be started.

    Raises:
        HeadraceError: There is no project, or Spark cannot be started.
    """
    with _lock:
        found = _open.get((root, serve))
        if found is None:
            found = _open[root, serve] = (_served(root) if serve else None) or _opened(root)
        return found


def close_projects() -> None:
    """Close what this process has open."""
    with _lock:
        while _open:
            _open.popitem()[1].close()


def _opened(root: Path) -> OpenProject:
    hr = headrace.open(root)
    hr.events.subscribe(_tell)
    try:
        hr.spark  # noqa: B018  Java that is missing is an error of the connection, not of the first model
    except BaseException:
        hr.close()
        raise
    return OpenProject(hr)


def _served(root: Path) -> Project | None:
    from dbt.adapters.headrace.served import connect

    return connect(root, logger.info)


def _tell(event: Event) -> None:
    if isinstance(event, SparkStarting):
        logger.info("Starting Spark")
    elif isinstance(event, Notice):
        logger.info(event.message)


atexit.register(close_projects)
