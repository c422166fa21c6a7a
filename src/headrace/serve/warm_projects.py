"""Keeps a project open: one Spark, and open projects that commands borrow.

A command has an open project for itself, with a Spark session of its own, so that what one sets (`USE`, `SET`,
temporary views) is no other's business, as if each were a process. One that ends as it began is kept for the next
command, with its compiled views and statistics.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace.api.facade import Headrace
from headrace.config import Settings
from headrace.events import Events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_IDLE = 2
"""Open projects that are kept without a command: one is used again and again, two where two people work."""


class SharedSpark:
    """The server's Spark, started at first use; every open project has a session of its own.

    Args:
        settings: The project's.
        running: Returns a session that somebody else in this process has started and ends; None: it is started here.
    """

    def __init__(self, settings: Settings, running: Callable[[], SparkSession] | None = None) -> None:
        self._settings = settings
        self._running = running
        self._root: SparkSession | None = None
        self._lock = threading.RLock()

    @property
    def started(self) -> bool:
        """Return whether it has been started."""
        return self._root is not None

    def root(self, events: Events) -> SparkSession:
        """Return the first session; starts it, also where its JVM is gone."""
        from headrace.spark.end_session import end
        from headrace.spark.session import is_alive, open_session

        with self._lock:
            if self._running is not None:
                self._root = self._running()
            elif self._root is not None and not is_alive(self._root):
                lost, self._root = self._root, None
                if not self._settings.spark_remote:
                    end(lost)
            if self._root is None:
                self._root = open_session(self._settings, events)
            return self._root

    def new_session(self, events: Events) -> SparkSession:
        """Return a new session that shares nothing with others but the application."""
        from headrace.spark.session import sibling_session

        return sibling_session(self.root(events), self._settings)

    def is_of(self, session: SparkSession) -> bool:
        """Return whether a session belongs to the Spark that runs now."""
        from headrace.spark.session import is_alive

        return self._root is not None and is_alive(session)

    def stop(self) -> None:
        """Stop it, if it was started here."""
        from headrace.spark.end_session import stop

        with self._lock:
            if self._root is not None and self._running is None:
                stop(self._root, remote=self._settings.spark_remote is not None)
            self._root = None


class WarmProject(Headrace):
    """An open project that stays open when a command closes it.

    Args:
        settings: The project's.
        spark: Gives it a session at first use.
    """

    def __init__(self, settings: Settings, spark: SharedSpark) -> None:
        self._state: str | None = None

        def start(events: Events) -> SparkSession:
            session = spark.new_session(events)
            self._state = self._state_of(session)
            return session

        super().__init__(settings, create=False, start_spark=start)

    def close(self) -> None:
        """Keep it open."""

    def end(self) -> None:
        """Close it."""
        with suppress(Exception):  # its Spark may be gone
            super().close()

    def is_unchanged(self, spark: SharedSpark) -> bool:
        """Return whether the next command finds it as a new one would be."""
        if not self._lazy.started:
            return True
        try:
            session = self.spark
            return spark.is_of(session) and self._state_of(session) == self._state
        except Exception:  # of a JVM that is gone
            return False

    def _state_of(self, session: SparkSession) -> str:
        from headrace.spark.session import state_of

        return state_of(session, self._lazy.function_names())


class WarmProjects:
    """Open projects for commands.

    Args:
        settings: The project's.
        spark: What they share.
    """

    def __init__(self, settings: Settings, spark: SharedSpark) -> None:
        self.settings = settings
        self.spark = spark
        self._idle: list[WarmProject] = []
        self._lock = threading.Lock()

    def borrow(self) -> tuple[Headrace, Callable[[], None]]:
        """Return an open project for one command, and what gives it back."""
        with self._lock:
            project = self._idle.pop() if self._idle else None
        if project is not None and not project.is_unchanged(self.spark):
            project.end()
            project = None
        taken = project or WarmProject(self.settings, self.spark)
        return taken, lambda: self._give_back(taken)

    def close(self) -> None:
        """Close those that no command has."""
        with self._lock:
            idle, self._idle = self._idle, []
        for project in idle:
            project.end()

    def _give_back(self, project: WarmProject) -> None:
        if project.is_unchanged(self.spark):
            with self._lock:
                if len(self._idle) < MOST_IDLE:
                    self._idle.append(project)
                    return
        project.end()
