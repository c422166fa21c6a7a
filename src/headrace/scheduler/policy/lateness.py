"""Finds stream tables beyond their target lag, and explains in words why. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Set
from dataclasses import dataclass

from headrace.names import TableName
from headrace.schedule import Kind, show_duration
from headrace.scheduler.policy.intervals import interval
from headrace.scheduler.scheduler_state import SchedulerState, targets


@dataclass(frozen=True, slots=True)
class Lateness:
    """Stream tables beyond their target lag at one moment.

    Args:
        late: Their lags and targets, in seconds.
        next_late: When the next one is, if nothing is refreshed until then; None where none lacks a change.
    """

    late: Mapping[TableName, tuple[float, int]]
    next_late: dt.datetime | None


def lateness(state: SchedulerState, now: dt.datetime) -> Lateness:
    """Find the stream tables that are beyond their target lag.

    Args:
        state: State of the scheduler.
        now: The time.
    """
    late: dict[TableName, tuple[float, int]] = {}
    soon: list[dt.datetime] = []
    for name, target in targets(state).items():
        since, lag = state.tables[name].standing.behind_since, state.tables[name].standing.lag(now)
        if lag > target:
            late[name] = lag, target
        elif since is not None:
            soon.append(since + dt.timedelta(seconds=target))
    return Lateness(late, min(soon, default=None))


def late_because(
    state: SchedulerState, name: TableName, target: float, now: dt.datetime, *, scheduled: bool, running: Set[TableName]
) -> str | None:
    """Return why a table is later than its target; None when it is not.

    Args:
        state: State of the scheduler.
        name: The stream table.
        target: The lag it is to keep, in seconds.
        now: The time.
        scheduled: Whether some process runs schedules.
        running: Stream tables that are being refreshed.
    """
    table = state.tables[name]
    if not table.standing.loaded or table.standing.lag(now) <= target:
        return None
    above = [n for n in state.grouping.graph.upstream(name) if n in state.tables]
    if not scheduled:
        return "no process runs schedules (headrace run)"
    if name in running:
        return "it is being refreshed"
    if busy := next((n for n in above if n in running), None):
        return f"{busy} is being refreshed"
    if slow := next((n for n in reversed(above) if _slower(state, n, target, now)), None):
        return f"{slow} has a slower schedule ({state.tables[slow].schedule.text})"
    if table.trails:
        return "newer versions of what it reads do not agree yet"
    if table.standing.expected > target:
        return f"refreshing it takes {show_duration(table.standing.expected)}"
    return "it waits for its turn"


def _slower(state: SchedulerState, name: TableName, target: float, now: dt.datetime) -> bool:
    """Return whether a table, behind, has a schedule of its own slower than the target."""
    table = state.tables[name]
    by_itself = table.schedule.kind is not Kind.DOWNSTREAM or state.grouping.options[name].factor is None
    return by_itself and table.news and interval(state, name, now) > target
