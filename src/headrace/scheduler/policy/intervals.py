"""Computes how often stream tables are refreshed by their schedules: a pure function."""

from __future__ import annotations

import datetime as dt
import math

from headrace.names import TableName
from headrace.schedule import Kind
from headrace.scheduler.scheduler_state import SchedulerState


def interval(state: SchedulerState, name: TableName, now: dt.datetime) -> float:
    """Return seconds between two refreshes of a table, if its sources keep changing.

    Infinite where nothing refreshes it.
    """
    schedule, factor = state.tables[name].schedule, state.grouping.options[name].factor
    if factor is None or schedule.kind is Kind.MANUAL:
        return math.inf
    if schedule.cron is not None:
        following = schedule.cron.next_after(now)
        return (schedule.cron.next_after(following) - following).total_seconds()
    return schedule.seconds * factor
