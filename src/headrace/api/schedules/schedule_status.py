"""Adds to the status of stream tables what their schedules make of them."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.api.schedules.groups import latest
from headrace.api.schedules.project_defaults import defaults_of
from headrace.catalog import Catalog, Gate, resource_of
from headrace.config import Settings
from headrace.deploy.unattended.layout_progress import layout_progress
from headrace.graph.dag import Dag
from headrace.observability.attainment import read_stretch
from headrace.refresh.fuses.fuse import evidence_from
from headrace.results.refresh_results import StreamTableInfo
from headrace.schedule import parse_schedule
from headrace.scheduler.policy.lateness import late_because
from headrace.scheduler.policy.plan_cycle import Hold, awaiting_layout, holds
from headrace.scheduler.scheduler_state import SchedulerState, patience, read_scheduler_state, targets

if TYPE_CHECKING:
    from headrace.names import TableName
    from headrace.refresh.cut.cut import Cut


def with_schedules(
    infos: Sequence[StreamTableInfo], settings: Settings, catalog: Catalog, heads: Cut
) -> tuple[StreamTableInfo, ...]:
    """Return the status of tables with their schedules, holds and lateness added."""
    state = read_scheduler_state(catalog, heads, defaults_of(settings), parse_schedule(settings.default_schedule))
    now = dt.datetime.now(dt.UTC)
    wanted, found = targets(state), _with_progress(holds(state, now), state, catalog, now)
    by_text = {str(name): name for name in state.tables}
    infos = [_scheduled(info, state, by_text.get(info.name), wanted, found, now) for info in infos]
    infos = _counted(infos, state, catalog)
    infos = _punctual(infos, state, catalog, wanted, now)
    return tuple(_gated(infos, state.grouping.graph, catalog.gates()))


def _with_progress(
    found: dict[TableName, Hold], state: SchedulerState, catalog: Catalog, now: dt.datetime
) -> dict[TableName, Hold]:
    """Return the same, of tables that wait for their new layout with how far that is."""
    layouts = {name: table.layout for name, table in state.tables.items() if table.layout is not None}
    progress = layout_progress(catalog, frozenset(layouts.values()), now)
    return {
        unit: dataclasses.replace(hold, reason=f"{hold.reason}, {progress[layouts[hold.table]]}")
        if hold.table in layouts and hold.reason == awaiting_layout(layouts[hold.table])
        else hold
        for unit, hold in found.items()
    }


def _counted(infos: Sequence[StreamTableInfo], state: SchedulerState, catalog: Catalog) -> list[StreamTableInfo]:
    """Add to members of groups how often these were published."""
    epochs, members = catalog.epochs(), state.grouping.units.members
    of = {cut: latest(epochs, names) for unit, names in members.items() if (cut := state.grouping.group(unit))}
    found = {name: 0 if epoch is None else epoch.epoch for name, epoch in of.items()}
    return [info if info.group is None else dataclasses.replace(info, epoch=found[info.group]) for info in infos]


def _punctual(
    infos: Sequence[StreamTableInfo],
    state: SchedulerState,
    catalog: Catalog,
    wanted: Mapping[TableName, int],
    now: dt.datetime,
) -> list[StreamTableInfo]:
    """Add to tables how well they keep their targets, and what holds up late ones.

    What is refreshed on change has no target, and is late when it lacks a change for longer than it pauses.
    """
    with catalog.reading() as reader:
        stretch = read_stretch(reader, state.tables, now)
        held = reader.held_resources()
    running = {name for name in state.tables if resource_of(name) in held}
    scheduled = bool(catalog.schedulers())
    by_text = {str(name): (name, target) for name, target in patience(state).items()}
    done = []
    for info in infos:
        if info.name in by_text:
            name, target = by_text[info.name]
            share = stretch.share(name, wanted[name]) if name in wanted else None
            why = late_because(state, name, target, now, scheduled=scheduled, running=running)
            info = dataclasses.replace(info, within_target=share, late_because=None if info.held_up else why)
        done.append(info)
    return done


def _gated(
    infos: Sequence[StreamTableInfo], graph: Dag[TableName], gates: Mapping[TableName, Gate]
) -> Sequence[StreamTableInfo]:
    """Return the same with the gates that hold tables back."""
    below: dict[str, list[str]] = {}
    for source in (n for n in gates if n in graph):
        for name in graph.downstream(source):
            below.setdefault(str(name), []).append(str(source))
    return [dataclasses.replace(i, gated=tuple(below[i.name])) if i.name in below else i for i in infos]


def _scheduled(
    info: StreamTableInfo,
    state: SchedulerState,
    name: TableName | None,
    wanted: Mapping[TableName, int],
    found: Mapping[TableName, Hold],
    now: dt.datetime,
) -> StreamTableInfo:
    if name is None:  # dropped meanwhile
        return info
    unit = state.grouping.units.unit_of[name]
    table, hold, group = state.tables[name], found.get(unit), state.grouping.group(unit)
    return dataclasses.replace(
        info,
        effective_schedule=table.schedule.text,
        lag=table.standing.lag(now) if table.standing.loaded else None,
        target=wanted.get(name),
        held_up=None if hold is None else hold.reason if hold.table == name else f"{hold.table} is {hold.reason}",
        fuse=None if table.scheduling.fuse is None else evidence_from(table.scheduling.fuse).sentence,
        skipped_rows=table.scheduling.skipped_rows,
        skipped_since=table.scheduling.skipped_at,
        trails={str(source): versions for source, versions in table.trails.items()},
        pool=state.grouping.options[name].pool or None,
        group=group,
        policy=None if group is None else state.grouping.policy(unit).value,
    )
