"""Emits an event for each stream table that falls behind its target lag."""

from __future__ import annotations

import datetime as dt
from collections.abc import Set

from headrace.events import Events, LagExceeded
from headrace.names import TableName
from headrace.scheduler.policy.lateness import lateness
from headrace.scheduler.scheduler_state import SchedulerState


class LagReports:
    """Remembers which tables are late, so that each is reported once until it is fresh again.

    Args:
        events: Told of tables that fall behind.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._late: Set[TableName] = frozenset()
        self._next_late: dt.datetime | None = None

    def report(self, state: SchedulerState, now: dt.datetime) -> None:
        """Report what is late in a new state, and was not before."""
        found = lateness(state, now)
        for name, (lag, target) in found.late.items():
            if name not in self._late:
                self._events.emit(LagExceeded(str(name), round(lag, 1), target))
        self._late, self._next_late = found.late.keys(), found.next_late

    def report_new(self, state: SchedulerState | None, now: dt.datetime) -> None:
        """Report what is late by now as nothing moved, be it refreshed for long or held up.

        Args:
            state: The state that was read last; None before there was one.
            now: The time.
        """
        if state is not None and self._next_late is not None and now > self._next_late:
            self.report(state, now)
