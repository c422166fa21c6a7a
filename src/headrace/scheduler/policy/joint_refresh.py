"""Chooses what to refresh along with others so that what is read together agrees. Pure.

Members of an aligned diamond keep their own schedules, and so would hardly ever reflect the same version of what they
have in common. So whenever a slower one is refreshed, the quicker ones are, too, against the same cut. Where a diamond
leads through several generations, the greens on it are, whenever a public table on it is: that one follows its own
schedule and nothing else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from headrace.names import TableName
from headrace.schedule.options import DEPLOY_POOL
from headrace.scheduler.policy.intervals import interval
from headrace.scheduler.scheduler_state import SchedulerState


def along(
    state: SchedulerState, wanted: Mapping[TableName, str], possible: Collection[TableName], now: dt.datetime
) -> dict[TableName, str]:
    """Return further units to refresh, with the reason in words.

    Args:
        state: State of the scheduler.
        wanted: The units that are refreshed.
        possible: The units that have something to bring, and that nothing holds up.
        now: The time.
    """
    found: dict[TableName, str] = {}
    unit_of = state.grouping.units.unit_of
    aligned = state.grouping.meetings.aligned
    for diamond in (d for bottom in aligned if state.tables[bottom].aligned for d in aligned[bottom]):
        members = [name for name in diamond.between if name in state.tables]
        pace = {name: (interval(state, name, now), str(name)) for name in members}
        refreshed = [name for name in members if unit_of[name] in wanted]
        if not refreshed:
            continue
        slow = max(refreshed, key=pace.__getitem__)
        for quick in members:
            unit = unit_of[quick]
            if pace[quick] < pace[slow] and unit not in wanted and unit in possible:
                found.setdefault(unit, f"along with {slow}, for {diamond.bottom} to read both")
    for diamond in state.grouping.across:
        members = [name for name in diamond.between if name in state.tables]
        greens = [name for name in members if state.grouping.options[name].pool == DEPLOY_POOL]
        public = [name for name in members if name not in greens and unit_of[name] in wanted]
        for unit in dict.fromkeys(unit_of[name] for name in greens) if public else ():
            if unit not in wanted and unit in possible:
                found.setdefault(unit, f"along with {public[0]}, for {diamond.bottom} to read both")
    return found
