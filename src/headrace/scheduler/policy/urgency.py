"""Ranks units and tasks by the longest path of work behind them; late ones come sooner."""

from __future__ import annotations

import datetime as dt

from headrace.graph.critical import remaining, remaining_of_tasks
from headrace.names import TableName
from headrace.scheduler.policy.unit_tasks import UnitTasks
from headrace.scheduler.scheduler_state import SchedulerState, patience


def urgency(state: SchedulerState, now: dt.datetime) -> dict[TableName, float]:
    """By unit, seconds: the larger, the sooner it is to start.

    Args:
        state: State of the scheduler.
        now: The time.
    """
    return remaining(state.grouping.units.dag, state.unit_seconds(), _late(state, now))


def task_urgency(state: SchedulerState, work: UnitTasks, now: dt.datetime) -> dict[TableName, float]:
    """By task, seconds: the larger, the sooner it is to start.

    Args:
        state: State of the scheduler.
        work: The tasks of its units.
        now: The time.
    """
    seconds = {task: sum(state.tables[name].seconds for name in names) for task, names in work.tables.items()}
    return remaining_of_tasks(state.grouping.units.dag, work.inside, seconds, _late(state, now), work.outside)


def _late(state: SchedulerState, now: dt.datetime) -> dict[TableName, float]:
    """Return by how many seconds units are late."""
    late = dict[TableName, float]()
    for name, target in patience(state).items():
        unit = state.grouping.units.unit_of[name]
        late[unit] = max(late.get(unit, 0.0), state.tables[name].standing.lag(now) - target)
    return late
