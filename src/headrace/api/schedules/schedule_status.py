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
from headrace.names import TableName
from headrace.observability.attainment import read_stretch
from headrace.refresh.fuses.fuse import evidence_from
from headrace.results.refresh_results import StreamTableInfo
from headrace.schedule import parse_schedule
from headrace.scheduler.policy.lateness import late_because
from headrace.scheduler.policy.plan_cycle import Hold, awaiting_layout, holds
from headrace.scheduler.scheduler_state import SchedulerState, patience, read_scheduler_state, targets

if TYPE_CHECKING:
    from headrace.refresh.cut.cut import Cut


def with_schedules(
    infos: Sequence[StreamTableInfo], settings: Settings, catalog: Catalog, heads: Cut
) -> tuple[StreamTableInfo, ...]:
    """Return the status of tables with their schedules, holds and lateness added."""
    state = read_scheduler_state(catalog, heads, defaults_of(settings), parse_schedule(settings.default_schedule))
    now = dt.datetime.now(dt.UTC)
    wanted, found = targets(state), _with_progress(holds(state, now), state, catalog, now)
    epochs, gated = _epochs(state, catalog), _gated(state.grouping.graph, catalog.gates())
    punctuality = _Punctuality(state, catalog, wanted, now)
    names = {str(name): name for name in state.tables}
    done = []
    for info in infos:
        name = names.get(info.name)
        if name is None:  # dropped meanwhile
            done.append(info)
            continue
        unit = state.grouping.units.unit_of[name]
        table, hold, group = state.tables[name], found.get(unit), state.grouping.group(unit)
        done.append(
            dataclasses.replace(
                info,
                effective_schedule=table.schedule.text,
                lag=table.standing.lag(now) if table.standing.loaded else None,
                target=wanted.get(name),
                within_target=punctuality.share(name),
                held_up=None if hold is None else _held_up(name, hold),
                late_because=punctuality.late_because(name) if hold is None else None,
                fuse=None if table.scheduling.fuse is None else evidence_from(table.scheduling.fuse).sentence,
                skipped_rows=table.scheduling.skipped_rows,
                skipped_since=table.scheduling.skipped_at,
                trails={str(source): versions for source, versions in table.trails.items()},
                pool=state.grouping.options[name].pool or None,
                group=group,
                policy=None if group is None else state.grouping.policy(unit).value,
                epoch=epochs.get(name),
                gated=tuple(gated.get(name, ())),
            )
        )
    return tuple(done)


def _held_up(name: TableName, hold: Hold) -> str:
    return hold.reason if hold.table == name else f"{hold.table} is {hold.reason}"


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


def _epochs(state: SchedulerState, catalog: Catalog) -> dict[TableName, int]:
    """Return how often groups were published, by member."""
    epochs, found = catalog.epochs(), dict[TableName, int]()
    for unit, members in state.grouping.units.members.items():
        if state.grouping.group(unit) is not None:
            last = latest(epochs, members)
            found |= dict.fromkeys(members, 0 if last is None else last.epoch)
    return found


class _Punctuality:
    """How well tables keep their targets, and what holds up late ones.

    What is refreshed on change has no target, and is late when it lacks a change for longer than it pauses.

    Args:
        state: State of the scheduler.
        catalog: The catalog.
        wanted: Targets of tables, in seconds.
        now: The time.
    """

    def __init__(
        self, state: SchedulerState, catalog: Catalog, wanted: Mapping[TableName, int], now: dt.datetime
    ) -> None:
        with catalog.reading() as reader:
            self._stretch = read_stretch(reader, state.tables, now)
            held = reader.held_resources()
        self._running = {name for name in state.tables if resource_of(name) in held}
        self._scheduled = bool(catalog.schedulers())
        self._patience = patience(state)
        self._state, self._wanted, self._now = state, wanted, now

    def share(self, name: TableName) -> float | None:
        """Return the share of the last day for which a table kept its target; None without one."""
        return self._stretch.share(name, self._wanted[name]) if name in self._wanted else None

    def late_because(self, name: TableName) -> str | None:
        """Return what holds up a table that is late, though nobody stopped it."""
        if (target := self._patience.get(name)) is None:
            return None
        return late_because(self._state, name, target, self._now, scheduled=self._scheduled, running=self._running)


def _gated(graph: Dag[TableName], gates: Mapping[TableName, Gate]) -> dict[TableName, list[str]]:
    """Return the gates that hold tables back, by table."""
    below: dict[TableName, list[str]] = {}
    for source in (n for n in gates if n in graph):
        for name in graph.downstream(source):
            below.setdefault(name, []).append(str(source))
    return below
