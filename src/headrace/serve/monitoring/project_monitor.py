"""Looks at a project for whoever watches it: seldom enough, and never through Spark."""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
import time
from collections.abc import Mapping

import headrace
from headrace.api.facade import Headrace
from headrace.catalog import resource_of
from headrace.config import Settings
from headrace.errors import HeadraceError
from headrace.events import Event, SchedulerLoad
from headrace.graph.dag import Dag
from headrace.observability.metrics.exposition import text_of
from headrace.observability.metrics.project_state import ProjectState
from headrace.observability.metrics.refresh_totals import RefreshTotals
from headrace.observability.running_refreshes import RunningRefreshes
from headrace.serve.monitoring.source_looks import SourceLooks

KEPT_SECONDS = 1.0
"""Seconds for which one look serves everybody who asks, at least."""

SPARING, MOST_SECONDS = 4, 15.0
"""Factor of a look's own seconds for which it serves, and the most seconds that it serves.

Large projects are looked at less often.
"""


class ProjectMonitor:
    """A project as seen from outside.

    Args:
        settings: Where everything is.

    Attributes:
        refreshes: Those that run in this process, as far as it hears of them.
    """

    def __init__(self, settings: Settings) -> None:
        self.refreshes = RunningRefreshes()
        self._settings = settings
        self._project: Headrace | None = None
        self._totals = RefreshTotals()
        self._looks = SourceLooks()
        self._load: SchedulerLoad | None = None
        self._state: ProjectState | None = None
        self._until = 0.0
        self._lock = threading.Lock()

    def note(self, event: Event) -> None:
        """Take in what happens in this process."""
        self.refreshes.note(event)
        if isinstance(event, SchedulerLoad):
            self._load = event

    def begin(self) -> None:
        """Count from now on."""
        self.state()

    def close(self) -> None:
        """End what was begun."""
        self._looks.close()
        with self._lock:
            if self._project is not None:
                self._project.close()
            self._project = None

    def state(self) -> ProjectState:
        """Return where the project stands, from a look that may be a moment old."""
        with self._lock:
            if self._state is None or time.monotonic() >= self._until:
                begun = time.monotonic()
                self._state = self._look()
                took = time.monotonic() - begun
                self._until = time.monotonic() + min(max(KEPT_SECONDS, SPARING * took), MOST_SECONDS)
            return dataclasses.replace(self._state, load=self._load)

    def graph(self, state: ProjectState) -> Dag[str]:
        """Return who reads whom, by name; nothing where the catalog does not answer."""
        if state.error is not None:
            return Dag({})
        try:
            with self._lock:
                found = self._opened().graph()
        except HeadraceError:
            return Dag({})
        return Dag({str(name): [str(read) for read in found.producers(name)] for name in found.names})

    def metrics(self) -> bytes:
        """Return Prometheus' text."""
        return text_of(self.state(), self._totals)

    def _look(self) -> ProjectState:
        now = dt.datetime.now(dt.UTC)
        try:
            project = self._opened()
            catalog = project._catalog
            begun = time.perf_counter()
            catalog.pulse()
            latency = time.perf_counter() - begun
            self._totals.read(catalog)
            tables = project.status()
            with catalog.reading() as reader:
                held = reader.held_resources()
                names = {resource_of(table.name): str(table.name) for table in reader.stream_tables()}
            sources = project.sources.list()
            return ProjectState(
                at=now,
                version=headrace.__version__,
                latency=latency,
                schedulers={s.owner: s.draining for s in catalog.schedulers()},
                tables=tables,
                running=tuple(sorted(name for resource, name in names.items() if resource in held)),
                sources=sources,
                figures=self._figures(project, [source.name for source in sources]),
                sinks=project.sinks.list(),
            )
        except HeadraceError as error:
            return ProjectState(at=now, version=headrace.__version__, error=error)

    def _figures(self, project: Headrace, names: list[str]) -> Mapping[str, Mapping[str, object] | None]:
        return self._looks.figures(project.sources.status, names)

    def _opened(self) -> Headrace:
        if self._project is None:
            self._project = Headrace(self._settings, create=False)
        return self._project
