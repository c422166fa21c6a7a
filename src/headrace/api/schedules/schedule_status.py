"""Reads the status of stream tables, with what their schedules make of them."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.api.schedules.groups import latest
from headrace.api.schedules.project_defaults import defaults_of
from headrace.catalog import Catalog, Gate, resource_of
from headrace.catalog.state.reader import Reader
from headrace.config import Settings
from headrace.deploy.unattended.layout_progress import layout_progress
from headrace.graph.dag import Dag
from headrace.names import TableName
from headrace.observability.attainment import read_stretch
from headrace.observability.status import standings
from headrace.refresh.cut.cut import Cut
from headrace.refresh.fuses.fuse import evidence_from
from headrace.results.refresh_results import StreamTableInfo
from headrace.schedule import parse_schedule
from headrace.scheduler.policy.lateness import late_because
from headrace.scheduler.policy.plan_cycle import Hold, awaiting_layout, holds
from headrace.scheduler.scheduler_state import SchedulerState, bases_of, patience, scheduler_state, targets


def read_status(catalog: Catalog, settings: Settings, names: Iterable[TableName] | None) -> tuple[StreamTableInfo, ...]:
    """Return where stream tables stand.

    What was published is of one state of the catalog; pauses, epochs and the progress of layouts are read beside it.

    Args:
        catalog: The catalog.
        settings: The project's settings.
        names: Only these; all when None.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`.
    """
    moved = Cut(catalog, lambda _: None).versions(bases_of(catalog.stream_tables()))
    catalog.look_at_stored()
    states, eventual = catalog.scheduling_states(), not catalog.moves_together()
    running, now = bool(catalog.schedulers()), dt.datetime.now(dt.UTC)
    with catalog.reading() as reader:
        found = standings(reader, moved, names)
        state = scheduler_state(reader, moved, states, defaults_of(settings), parse_schedule(settings.default_schedule))
        punctuality = _Punctuality(state, reader, now, scheduled=running)
        gated = _gated(state.grouping.graph, reader.gates())
    return found.lines(_Schedules(state, catalog, punctuality, gated, now).of, eventual=eventual)


class _Schedules:
    """Schedules of stream tables, what holds them up and how late they are.

    Args:
        state: State of the scheduler.
        catalog: The catalog.
        punctuality: How well tables keep their targets.
        gated: Gates that hold tables back, by table.
        now: The time.
    """

    def __init__(
        self,
        state: SchedulerState,
        catalog: Catalog,
        punctuality: _Punctuality,
        gated: Mapping[TableName, Sequence[str]],
        now: dt.datetime,
    ) -> None:
        self._state, self._punctuality, self._gated, self._now = state, punctuality, gated, now
        self._holds = _with_progress(holds(state, now), state, catalog, now)
        self._epochs = _epochs(state, catalog)

    def of(self, name: TableName) -> dict[str, Any]:
        """Return the fields of a stream table's `StreamTableInfo` that tell of this."""
        table, grouping = self._state.tables[name], self._state.grouping
        unit = grouping.units.unit_of[name]
        hold, group, punctuality = self._holds.get(unit), grouping.group(unit), self._punctuality
        return {
            "effective_schedule": table.schedule.text,
            "lag": table.standing.lag(self._now) if table.standing.loaded else None,
            "target": punctuality.targets.get(name),
            "within_target": punctuality.share(name),
            "held_up": None if hold is None else _held_up(name, hold),
            "late_because": punctuality.late_because(name) if hold is None else None,
            "fuse": None if table.scheduling.fuse is None else evidence_from(table.scheduling.fuse).sentence,
            "skipped_rows": table.scheduling.skipped_rows,
            "skipped_since": table.scheduling.skipped_at,
            "trails": {str(source): versions for source, versions in table.trails.items()},
            "pool": grouping.options[name].pool or None,
            "group": group,
            "policy": None if group is None else grouping.policy(unit).value,
            "epoch": self._epochs.get(name),
            "gated": tuple(self._gated.get(name, ())),
        }


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
    """Tells how well tables keep their targets, and what holds up late ones.

    What is refreshed on change has no target, and is late when it lacks a change for longer than it pauses.

    Args:
        state: State of the scheduler.
        reader: The state of the catalog that it was read from.
        now: The time.
        scheduled: Whether a scheduler runs.

    Attributes:
        targets: Targets of tables, in seconds.
    """

    def __init__(self, state: SchedulerState, reader: Reader, now: dt.datetime, *, scheduled: bool) -> None:
        self.targets = targets(state)
        self._stretch = read_stretch(reader, state.tables, now) if self.targets else None
        held = reader.held_resources()
        self._running = {name for name in state.tables if resource_of(name) in held}
        self._scheduled = scheduled
        self._patience = patience(state)
        self._state, self._now = state, now

    def share(self, name: TableName) -> float | None:
        """Return the share of the last day for which a table kept its target; None without one."""
        if self._stretch is None or name not in self.targets:
            return None
        return self._stretch.share(name, self.targets[name])

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
