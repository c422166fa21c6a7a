"""Plans a cycle: what to refresh now and why, what is held and why. Pure."""

from __future__ import annotations

import datetime as dt
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from headrace.catalog import Status
from headrace.names import TableName
from headrace.refresh.groups.grouping import keeps
from headrace.schedule import Kind
from headrace.schedule.due import due_at
from headrace.schedule.options import Policy
from headrace.scheduler.policy.backoff import MOST
from headrace.scheduler.policy.joint_refresh import along
from headrace.scheduler.scheduler_state import SchedulerState, Table


@dataclass(frozen=True, slots=True)
class Hold:
    """The reason why a unit is not refreshed although it is behind.

    Args:
        table: The stream table that holds it up: a member, or one that a member reads.
        reason: `paused`, `suspended`, `stopped`, `retrying`, `not loaded yet`, or for what it waits; what may follow
            "is".
    """

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class Cycle:
    """Units to refresh at a moment, units held, and the next moment to plan.

    Args:
        wanted: Units to refresh, with the reason in words, producers first.
        held: Units that are due, or would be pulled along, and wait.
        next_due: When the next unit becomes due, if nothing else happens; None when nothing does.
        unchanged: Units that a refresh would not change.
    """

    wanted: Mapping[TableName, str] = field(default_factory=dict)
    held: Mapping[TableName, Hold] = field(default_factory=dict)
    next_due: dt.datetime | None = None
    unchanged: Collection[TableName] = ()


def plan_cycle(state: SchedulerState, now: dt.datetime) -> Cycle:
    """Decide.

    A unit is due when its schedule says so and refreshing it brings something: what it reads has moved, or is about to
    be refreshed. It pulls along what it reads that has no schedule of its own. A unit in trouble (paused, suspended,
    waiting for a retry) is left alone, and so is what reads from it: refreshing that would show old contents as new.
    Only where a table wants no consistency of its diamonds does it go on. From what was never loaded nothing can be
    computed; whoever reads it waits until it is, or comes after it.
    """
    units = state.grouping.units
    troubles = {unit: hold for unit, names in units.members.items() if (hold := _trouble(state, names, now))}
    due_times = {unit: at for unit in units.members if (at := unit_due_at(state, unit, now)) is not None}
    wanted: dict[TableName, str] = {}
    held: dict[TableName, Hold] = {}
    fruitful: set[TableName] = set()
    for unit in units.dag.order():
        if _brings_news(state, unit, fruitful, wanted):
            fruitful.add(unit)
        if unit not in due_times or due_times[unit] > now:
            continue
        pulled = _pulled(state, unit, fruitful)
        well = [above for above in units.dag.order(pulled) if above not in troubles]
        before, nothing = _loaded_before(state, unit, well, wanted, ChainMap(held, troubles))
        if (hold := _hold(state, unit, pulled, troubles) or nothing) is not None:
            held[unit] = hold
            continue
        if unit not in fruitful:
            continue
        for above in before:
            wanted.setdefault(above, f"for {unit}")
        wanted[unit] = reason(state, unit, now)
    if any(table.aligned for table in state.tables.values()):
        free = {u for u in fruitful if _hold(state, u, _pulled(state, u, fruitful), troubles) is None}
        wanted |= along(state, wanted, free, now)
    order = units.dag.order(wanted)
    soon = [at for unit, at in due_times.items() if at > now]
    retries = (table.scheduling.retry_at for table in state.tables.values())
    soon += [at for at in retries if at and at > now]
    unchanged = units.members.keys() - fruitful
    return Cycle({unit: wanted[unit] for unit in order}, held, min(soon, default=None), unchanged)


def holds(state: SchedulerState, now: dt.datetime) -> dict[TableName, Hold]:
    """Return the units that would not be refreshed now, due or not, with reasons."""
    units = state.grouping.units
    found: dict[TableName, Hold] = {}
    for unit in units.dag.order():
        own = _trouble(state, units.members[unit], now)
        above = next((found[p] for p in units.dag.producers(unit) if p in found), None)
        if own is not None:
            found[unit] = own
        elif above is not None and waits(state, unit):
            found[unit] = above
        elif (hold := _nothing_to_read(state, unit, (), found)) is not None:
            found[unit] = hold
    return found


def unit_due_at(state: SchedulerState, unit: TableName, now: dt.datetime) -> dt.datetime | None:
    """Return when a unit is due by its own schedule.

    A group is due when any or all of its members are, by its policy.
    """
    given = _due_times(state, unit, now).values()
    if not given:
        return None
    return max(given) if state.grouping.policy(unit) is Policy.SLOWEST else min(given)


def not_due_yet(state: SchedulerState, unit: TableName, now: dt.datetime) -> tuple[TableName, ...]:
    """Return the members that keep a group from being due though others of it are."""
    due_times = _due_times(state, unit, now)
    if state.grouping.policy(unit) is not Policy.SLOWEST or all(at > now for at in due_times.values()):
        return ()
    return tuple(name for name, at in due_times.items() if at > now)


def _due_times(state: SchedulerState, unit: TableName, now: dt.datetime) -> dict[TableName, dt.datetime]:
    """Return when members of a unit are due by their own schedules; others are left out."""
    found = {}
    for name in state.grouping.units.members[unit]:
        table, factor = state.tables[name], state.grouping.options[name].factor
        if factor is not None and (at := due_at(table.schedule, table.standing, now, factor=factor)) is not None:
            found[name] = at
    return found


def reason(state: SchedulerState, unit: TableName, now: dt.datetime) -> str:
    """Return in words why a unit is due."""
    behind = [n for n in state.grouping.units.members[unit] if state.tables[n].schedule.kind is not Kind.DOWNSTREAM]
    name = max(behind, key=lambda n: state.tables[n].standing.lag(now), default=unit)
    table = state.tables[name]
    if not table.standing.loaded:
        return "not loaded yet"
    return f"{table.standing.lag(now):.0f} s behind, schedule {table.schedule.text}"


def _hold(
    state: SchedulerState, unit: TableName, pulled: tuple[TableName, ...], troubles: Mapping[TableName, Hold]
) -> Hold | None:
    """Return why a unit is held: by its own trouble, or by that of one it waits for."""
    if unit in troubles:
        return troubles[unit]
    above = (troubles[a] for a in (*pulled, *state.grouping.units.dag.producers(unit)) if a in troubles)
    return next(above, None) if waits(state, unit) else None


def _trouble(state: SchedulerState, members: tuple[TableName, ...], now: dt.datetime) -> Hold | None:
    for name in members:
        if why := _troubled(state.tables[name], now):
            return Hold(name, why)
    return None


def _troubled(table: Table, now: dt.datetime) -> str | None:
    if table.status is Status.STOPPED:
        return "stopped"
    if table.newer:
        return "stored by a newer version of Headrace: upgrade this one"
    held_up = table.scheduling.held_up
    retry_at = table.scheduling.retry_at
    if held_up == "retrying" and retry_at is not None and not now < retry_at <= now + MOST:
        held_up = None  # the pause is over; what else it waits for, it waits for still
    if held_up is None and table.watermarks is not None:
        return f"waiting for watermark group {table.watermarks}"
    if held_up is None and table.schedule.trouble:
        return f"without a schedule that can be read here: {table.schedule.trouble}"
    if held_up is None and table.layout is not None:
        return awaiting_layout(table.layout)
    return held_up


def awaiting_layout(deployment: str) -> str:
    """Return why a table stands still until a deployment has brought its new layout."""
    return f"waiting for its new layout: deployment {deployment}"


def _brings_news(
    state: SchedulerState, unit: TableName, fruitful: set[TableName], wanted: Mapping[TableName, str]
) -> bool:
    """Return whether refreshing a unit would change it, given what is refreshed before it."""
    units = state.grouping.units
    if any(state.tables[name].news for name in units.members[unit]):
        return True
    return any(above in fruitful and (above in wanted or _follows(state, above)) for above in units.dag.producers(unit))


def _follows(state: SchedulerState, unit: TableName) -> bool:
    """Return whether a unit is refreshed for the sake of what reads it."""
    return any(state.pulled(name) for name in state.grouping.units.members[unit])


def _pulled(state: SchedulerState, unit: TableName, fruitful: set[TableName]) -> tuple[TableName, ...]:
    """Return units above with changes and no schedule of their own, over such units only."""
    found: list[TableName] = []
    queue = [unit]
    while queue:
        for above in state.grouping.units.dag.producers(queue.pop()):
            if above not in found and above in fruitful and _follows(state, above):
                found.append(above)
                queue.append(above)
    return tuple(found)


def _loaded_before(
    state: SchedulerState,
    unit: TableName,
    pulled: Iterable[TableName],
    wanted: Collection[TableName],
    held: ChainMap[TableName, Hold],
) -> tuple[list[TableName], Hold | None]:
    """Return pulled units that can be refreshed, producers first; and why none can."""
    before: dict[TableName, None] = {}
    known = held.new_child()  # a copy of what is held for each unit would make the whole quadratic
    for one in (*pulled, unit):
        if (nothing := _nothing_to_read(state, one, (wanted, before), known)) is not None:
            known[one] = nothing
        elif one != unit:
            before[one] = None
    return list(before), nothing


def _nothing_to_read(
    state: SchedulerState,
    unit: TableName,
    before: Collection[Collection[TableName]],
    held: Mapping[TableName, Hold],
) -> Hold | None:
    """Return a hold for a unit that reads a table neither loaded nor in any of `before`."""
    for name in _never_loaded(state, unit):
        above = state.grouping.units.unit_of[name]
        if not any(above in some for some in before):
            return held.get(above) or Hold(name, "not loaded yet")
    return None


def _never_loaded(state: SchedulerState, unit: TableName) -> list[TableName]:
    """Return the stream tables outside a unit that it reads and that were never loaded."""
    members, graph = state.grouping.units.members[unit], state.grouping.graph
    read = dict.fromkeys(s for name in members for s in graph.producers(name))
    return [s for s in read if s in state.tables and s not in members and not state.tables[s].standing.loaded]


def waits(state: SchedulerState, unit: TableName) -> bool:
    """Return whether a unit waits for what it reads.

    A table that keeps none of its diamonds together does not, once all of that was loaded.
    """
    if _never_loaded(state, unit):
        return True
    grouping = state.grouping
    met = grouping.meetings.bottoms.intersection(grouping.units.members[unit])
    return all(keeps(grouping.options, grouping.defaults, name) for name in met)
