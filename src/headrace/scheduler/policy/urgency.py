"""Ranks units by the longest path of work behind them; late ones come sooner."""

from __future__ import annotations

import datetime as dt

from headrace.graph.critical import remaining
from headrace.names import TableName
from headrace.scheduler.scheduler_state import SchedulerState, patience


def urgency(state: SchedulerState, now: dt.datetime) -> dict[TableName, float]:
    """By unit, seconds: the larger, the sooner it is to start.

    Args:
        state: State of the scheduler.
        now: The time.
    """
    units, late = state.grouping.units, dict[TableName, float]()
    for name, target in patience(state).items():
        unit = units.unit_of[name]
        late[unit] = max(late.get(unit, 0.0), state.tables[name].standing.lag(now) - target)
    return remaining(units.dag, state.unit_seconds(), late)
