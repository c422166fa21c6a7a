"""A project at one moment, as far as metrics and readiness tell of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import HeadraceError
from headrace.events import SchedulerLoad
from headrace.results.refresh_results import StreamTableInfo
from headrace.results.sink_results import SinkInfo
from headrace.results.source_results import SourceInfo


@dataclass(frozen=True, slots=True)
class ProjectState:
    """The state of a project, from the catalog and from this process.

    Args:
        at: When.
        version: Of Headrace.
        error: Why the catalog could not be read; then nothing else is known.
        latency: Seconds of one small query.
        schedulers: Owners of the processes that run schedules; with whether they drain.
        tables: The stream tables.
        running: Those that somebody is refreshing.
        sources: Database sources.
        figures: By source, what its server said last; None where it did not answer.
        sinks: The sinks.
        load: How busy the scheduler of this process is; None where it runs none.
    """

    at: dt.datetime
    version: str
    error: HeadraceError | None = None
    latency: float | None = None
    schedulers: Mapping[str, bool] = field(default_factory=dict)
    tables: tuple[StreamTableInfo, ...] = ()
    running: tuple[str, ...] = ()
    sources: tuple[SourceInfo, ...] = ()
    figures: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    sinks: tuple[SinkInfo, ...] = ()
    load: SchedulerLoad | None = None
