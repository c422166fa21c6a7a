"""A cycle for people: what would be refreshed, in which order and why, and what waits."""

from __future__ import annotations

import datetime as dt

from headrace.names import TableName
from headrace.scheduler.policy.dispatch import Dispatch
from headrace.scheduler.policy.plan_cycle import Cycle
from headrace.scheduler.policy.urgency import urgency
from headrace.scheduler.scheduler_state import SchedulerState
from headrace.scheduler.work import Planned


def planned(state: SchedulerState, cycle: Cycle, now: dt.datetime) -> tuple[Planned, ...]:
    """Describe a cycle: what would be refreshed, most urgent first, then what waits."""
    units, seconds = state.grouping.units, state.unit_seconds()
    order: Dispatch[TableName] = Dispatch(1)
    order.draw(units.dag, urgency(state, now))
    order.add(cycle.wanted)
    found = []
    while not order.idle:
        for unit in order.start():
            members = tuple(str(n) for n in units.members[unit])
            found.append(Planned(members, cycle.wanted[unit], seconds=seconds[unit]))
            order.finish(unit)
    for unit, hold in cycle.held.items():
        members = tuple(str(n) for n in units.members[unit])
        found.append(Planned(members, f"{hold.table} is {hold.reason}", waits=True, seconds=seconds[unit]))
    return tuple(found)
