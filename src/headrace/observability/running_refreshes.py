"""Remembers the refreshes that run in this process, with the stage that each is at."""

from __future__ import annotations

import datetime as dt
import threading
from dataclasses import dataclass
from typing import Any

from headrace.events import (
    Event,
    RefreshFailed,
    RefreshFinished,
    RefreshGivenUp,
    RefreshStarted,
    StageFinished,
    StageProgressed,
    StageStarted,
)

MOST = 200
"""Refreshes remembered at most: one that a lost Spark cut off may never report its end."""


@dataclass(slots=True)
class RunningRefresh:
    """A refresh under way.

    Args:
        table: The stream table, or the source that is landed.
        mode: How it is refreshed.
        since: When it began.
        stage: The one that runs.
        done: How many have ended.
    """

    table: str
    mode: str
    since: dt.datetime
    stage: str | None = None
    done: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "table": self.table,
            "mode": self.mode,
            "since": self.since.isoformat(timespec="milliseconds"),
            "stage": self.stage,
            "done": self.done,
        }


class RunningRefreshes:
    """Listens to events; threads that refresh write, others read."""

    def __init__(self) -> None:
        self._running: dict[str, RunningRefresh] = {}
        self._lock = threading.Lock()

    def note(self, event: Event) -> None:
        """Take an event in."""
        with self._lock:
            match event:
                case RefreshStarted():
                    begun = dt.datetime.now(dt.UTC)
                    self._running.pop(event.table, None)
                    self._running[event.table] = RunningRefresh(event.table, event.mode, begun)
                    if len(self._running) > MOST:
                        del self._running[next(iter(self._running))]
                case StageStarted() if event.table in self._running:
                    self._running[event.table].stage = event.stage
                case StageProgressed() if event.table in self._running:
                    self._running[event.table].stage = event.progress
                case StageFinished() if event.table in self._running:
                    self._running[event.table].done += 1
                case RefreshFinished() | RefreshFailed() | RefreshGivenUp():
                    self._running.pop(event.table, None)

    def all(self) -> list[RunningRefresh]:
        """Return those that run, in the order they began."""
        with self._lock:
            return list(self._running.values())
