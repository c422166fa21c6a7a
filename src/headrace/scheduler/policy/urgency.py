"""Ranks units and tasks by the longest path of work behind them; late ones come sooner.

Several schedulers see the same ranks. Were each to begin with the first of them, all but one would find it leased; so
each begins with a share of the tasks that is its own, and takes those of the others when they are more urgent by far.
"""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Mapping

from headrace.graph.critical import remaining, remaining_of_tasks
from headrace.names import TableName
from headrace.scheduler.policy.slot_shares import Rank
from headrace.scheduler.policy.unit_tasks import UnitTasks
from headrace.scheduler.scheduler_state import SchedulerState, patience

PREFERENCE = 30.0
"""Seconds by which a task of another scheduler's share must be more urgent to come before an own one.

About what losing the race for a lease costs: what reads the table waits for the loser's next look.
"""


def urgency(state: SchedulerState, now: dt.datetime) -> dict[TableName, float]:
    """Return seconds by unit: the larger, the sooner it is to start.

    Args:
        state: State of the scheduler.
        now: The time.
    """
    return remaining(state.grouping.units.dag, state.unit_seconds(), _late(state, now))


def task_urgency(state: SchedulerState, work: UnitTasks, now: dt.datetime) -> dict[TableName, float]:
    """Return seconds by task: the larger, the sooner it is to start.

    Args:
        state: State of the scheduler.
        work: The tasks of its units.
        now: The time.
    """
    seconds = {task: sum(state.tables[name].seconds for name in names) for task, names in work.tables.items()}
    return remaining_of_tasks(state.grouping.units.dag, work.inside, seconds, _late(state, now), work.outside)


def own_share_first(left: Mapping[TableName, float], rank: Rank) -> dict[TableName, float]:
    """Return how urgent tasks are to one of several schedulers.

    Args:
        left: By task, how urgent it is to all of them, in seconds.
        rank: Which scheduler it is. Its share follows from it and from the names of tasks, whoever computes it.
    """
    if rank.schedulers == 1:
        return dict(left)
    return {
        task: seconds if zlib.crc32(str(task).encode()) % rank.schedulers == rank.place else seconds - PREFERENCE
        for task, seconds in left.items()
    }


def _late(state: SchedulerState, now: dt.datetime) -> dict[TableName, float]:
    """Return by how many seconds units are late."""
    late = dict[TableName, float]()
    for name, target in patience(state).items():
        unit = state.grouping.units.unit_of[name]
        late[unit] = max(late.get(unit, 0.0), state.tables[name].standing.lag(now) - target)
    return late
