"""The state a scheduler decides from, read from the catalog: tables, graph, freshness."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from headrace.catalog import Catalog, Outcome, SchedulingState, Status, StreamTable
from headrace.catalog.state.reader import Reader
from headrace.errors import HeadraceError
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.cut.align_cut import alignment, wants_alignment
from headrace.refresh.cut.cut import Cut
from headrace.refresh.cut.watermark_alignment import waiting
from headrace.refresh.definition.layout_waits import is_newer, waiting_for_layout
from headrace.refresh.groups.grouping import Defaults, Grouping, grouping
from headrace.schedule import DOWNSTREAM, MANUAL, Kind, Schedule, stored_schedule
from headrace.schedule.due import Standing

UNKNOWN_SECONDS = 1.0
"""Seconds that a refresh is taken to last before there was one."""


@dataclass(frozen=True, slots=True)
class Table:
    """A stream table as a scheduler sees it.

    Args:
        schedule: What decides when it is due.
        standing: Where it stands, measured to the root sources, whoever holds it up.
        news: Whether what it reads directly has moved, so that refreshing it alone would bring something.
        seconds: How long its refresh takes.
        scheduling: Pauses and failures.
        status: Its life.
        watermarks: The watermark group for which it waits; None for none.
        aligned: Whether it reads versions that agree, where ways meet at it.
        trails: By how many versions it stays behind what it reads, because newer ones do not agree.
        layout: The deployment that is to bring its new layout, for which it waits; None where it does not.
        newer: Whether a newer version of Headrace has stored it.
    """

    schedule: Schedule
    standing: Standing
    news: bool
    seconds: float
    scheduling: SchedulingState
    status: Status
    watermarks: str | None = None
    aligned: bool = False
    trails: Mapping[TableName, int] = field(default_factory=dict)
    layout: str | None = None
    newer: bool = False


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """Everything at one moment.

    Args:
        grouping: Which tables are refreshed together, and the graph.
        tables: Every stream table.
        bases: The relations they read that are none.
        layouts: Tables that wait for nothing but their new layout.
    """

    grouping: Grouping
    tables: Mapping[TableName, Table] = field(default_factory=dict)
    bases: tuple[TableName, ...] = ()
    layouts: tuple[TableName, ...] = ()

    def pulled(self, name: TableName) -> bool:
        """Return whether a table is refreshed for the sake of what reads it."""
        return self.tables[name].schedule.kind is Kind.DOWNSTREAM and self.grouping.options[name].factor is not None

    def unit_seconds(self) -> dict[TableName, float]:
        """Return how long each unit takes."""
        members = self.grouping.units.members
        return {unit: sum(self.tables[n].seconds for n in names) for unit, names in members.items()}


def bases_of(tables: Iterable[StreamTable]) -> tuple[TableName, ...]:
    """Return the relations that stream tables read and that are none themselves."""
    known = {t.name: t for t in tables}
    return tuple(sorted({s for t in known.values() for s in t.sources if s not in known}))


def read_scheduler_state(
    catalog: Catalog,
    heads: Cut,
    defaults: Defaults,
    default_schedule: Schedule,
    unreadable: Callable[[TableName, HeadraceError], None] | None = None,
) -> SchedulerState:
    """Read the state.

    Args:
        catalog: The catalog.
        heads: A new cut; it observes the sources.
        defaults: What the project wants of diamonds.
        default_schedule: For tables without a schedule that nothing reads.
        unreadable: Told of sources that cannot be read, and are taken not to have moved; else that is raised.
    """
    moved = heads.versions(bases_of(catalog.stream_tables()), unreadable)
    states = catalog.scheduling_states()
    with catalog.reading() as reader:
        return scheduler_state(reader, moved, states, defaults, default_schedule)


def scheduler_state(
    reader: Reader,
    moved: Mapping[TableName, int],
    states: Mapping[TableName, SchedulingState],
    defaults: Defaults,
    default_schedule: Schedule,
) -> SchedulerState:
    """Read the state.

    Args:
        reader: One state of the catalog.
        moved: Versions of base tables as just observed.
        states: Pauses and failures of stream tables.
        defaults: What the project wants of diamonds.
        default_schedule: For tables without a schedule that nothing reads.
    """
    tables = {t.name: t for t in reader.stream_tables()}
    grouped = grouping(tables, defaults, reader.sources())
    schedules = effective_schedules(grouped, tables, default_schedule)
    last = reader.last_refreshes()
    lags = _Lags(reader, tables, moved, defaults)
    apart = waiting(reader.watermark_groups(), grouped.graph, tables)
    layouts = waiting_for_layout(reader, tables, grouped)
    found: dict[TableName, Table] = {}
    for name in grouped.graph.order(tables):
        above = [found[s] for s in tables[name].sources if s in found]
        ended = last.get(name)
        done = ended if ended is not None and ended.outcome is Outcome.OK else None
        seconds = done.seconds if done is not None else UNKNOWN_SECONDS
        pulled = [t.standing for t in above if t.schedule.kind is Kind.DOWNSTREAM]
        standing = Standing(
            loaded=name in lags.frontiers,
            behind_since=lags.since(name, [t.standing for t in above]),
            refreshed=done.started_at if done is not None else None,
            expected=seconds + sum(read.expected for read in pulled if read.behind_since),
        )
        scheduling = states.get(name, SchedulingState())
        waits = apart[name].name if name in apart else None
        found[name] = Table(
            schedules[name],
            standing,
            lags.news(name),
            seconds,
            scheduling,
            tables[name].status,
            waits,
            name in lags.aligned,
            lags.trails(name),
            layouts.get(name) if _by_itself(schedules[name], grouped, name) else None,
            is_newer(tables[name]),
        )
        if (cycle := grouped.graph.component(name)) and name == cycle[-1]:
            _share(found, cycle)
    waiting_only = tuple(n for n, t in found.items() if t.layout and t.scheduling.held_up in (None, "retrying"))
    return SchedulerState(grouped, found, bases_of(tables.values()), waiting_only)


def _by_itself(schedule: Schedule, grouping: Grouping, name: TableName) -> bool:
    """Return whether a scheduler refreshes a table without being asked."""
    return schedule.kind is not Kind.MANUAL and grouping.options[name].factor is not None


def _share(found: dict[TableName, Table], cycle: tuple[TableName, ...]) -> None:
    """Give members of a cycle equal freshness: each lacks what another has not seen."""
    since = [at for name in cycle if (at := found[name].standing.behind_since) is not None]
    for name in cycle if since else ():
        standing = replace(found[name].standing, behind_since=min(since))
        found[name] = replace(found[name], standing=standing)


class _Lags:
    """Commit times of changes that tables do not reflect."""

    def __init__(
        self,
        reader: Reader,
        tables: Mapping[TableName, StreamTable],
        moved: Mapping[TableName, int],
        defaults: Defaults,
    ) -> None:
        self._reader = reader
        self._tables = tables
        self.frontiers = reader.frontiers()
        newest = {n: v.version for n, v in reader.newest_versions().items() if n in tables}
        self._heads = {**newest, **moved}
        wanted = [name for name, table in tables.items() if wants_alignment(table, defaults)]
        found = {name: alignment(reader, name, tables, self.frontiers, self._heads) for name in wanted}
        self.aligned = {name: agreed for name, agreed in found.items() if agreed.tops}

    def since(self, name: TableName, above: Iterable[Standing]) -> dt.datetime | None:
        """Return the oldest change that a table, or one above it, does not reflect."""
        times = [standing.behind_since for standing in above if standing.behind_since is not None]
        times += [self._first[source, seen] for source, seen in self._behind(name)]
        return min(times, default=None)

    def news(self, name: TableName) -> bool:
        """Return whether a table is not loaded, or what it may read has moved.

        Nothing is news where no versions agree.
        """
        if name in self.aligned and self.aligned[name].versions is None:
            return False
        if name in self.frontiers and name in self.aligned:
            return any(self._behind(name, self.aligned[name].versions or {}))
        return name not in self.frontiers or any(self._behind(name))

    def trails(self, name: TableName) -> dict[TableName, int]:
        """Return by how many versions a table would stay behind its sources, were it refreshed now."""
        if name not in self.aligned:
            return {}
        read = self.aligned[name].versions or self.frontiers.get(name, Frontier())
        behind = {s: self._heads[s] - version for s, version in read.items() if s in self._heads}
        return {s: versions for s, versions in behind.items() if versions > 0}

    def _behind(self, name: TableName, heads: Mapping[TableName, int] | None = None) -> Iterator[tuple[TableName, int]]:
        if (frontier := self.frontiers.get(name)) is None:
            return
        reached, heads = frontier.versions, self._heads if heads is None else heads
        for source in self._tables[name].sources:
            seen, head = reached.get(source), heads.get(source)
            if seen is not None and head is not None and head > seen:
                yield source, seen

    @cached_property
    def _first(self) -> Mapping[tuple[TableName, int], dt.datetime]:
        """Return when the first change was committed that tables lack, by source and version."""
        behind = {source for name in self.frontiers for source, _ in self._behind(name)}
        return self._reader.first_unreflected(behind)


def effective_schedules(
    grouping: Grouping, tables: Mapping[TableName, StreamTable], default: Schedule
) -> dict[TableName, Schedule]:
    """Return each table's effective schedule.

    It is its own one; else DOWNSTREAM where something scheduled reads it; else the default.

    A table whose readers are all refreshed by hand is, too. The members of a cycle are refreshed together: what reads
    any of them reads all, and a member with a schedule of its own decides for those without.
    """
    found: dict[TableName, Schedule] = {}
    for part in reversed(grouping.graph.parts):
        names = [name for name in part if name in tables]
        texts = {name: tables[name].schedule for name in names}
        own = {name: DOWNSTREAM if text is None else stored_schedule(text) for name, text in texts.items()}
        readers = [found[r].kind for name in names for r in grouping.graph.consumers(name) if r not in part]
        if all(schedule.kind is Kind.DOWNSTREAM for schedule in own.values()):
            if not readers:
                own = dict.fromkeys(names, default)
            elif all(kind is Kind.MANUAL for kind in readers):
                own = dict.fromkeys(names, MANUAL)
        found |= own
    return found


def targets(state: SchedulerState) -> dict[TableName, int]:
    """Return the target lag of tables in seconds.

    It is their own, stretched by their tier, or the strictest of what reads them. What is refreshed on change has none
    (its duration is a pause), nor has what is frozen.
    """
    return _strictest(state, (Kind.LAG,))


def patience(state: SchedulerState) -> dict[TableName, int]:
    """Return the seconds tables may lack a change before they go first: target or pause."""
    return _strictest(state, (Kind.LAG, Kind.ON_CHANGE))


def _strictest(state: SchedulerState, kinds: Collection[Kind]) -> dict[TableName, int]:
    found: dict[TableName, int] = {}
    if not any(table.schedule.kind in kinds for table in state.tables.values()):
        return found
    graph, options = state.grouping.graph, state.grouping.options
    for part in reversed(graph.parts):
        names = [name for name in part if name in state.tables and options[name].factor is not None]
        for name in names:
            if (own := state.tables[name].schedule).kind in kinds:
                found[name] = round(own.seconds * (options[name].factor or 1.0))
        wanted = [found[reader] for name in part for reader in graph.consumers(name) if reader in found]
        if wanted:
            found |= {name: min(wanted) for name in names if state.tables[name].schedule.kind is Kind.DOWNSTREAM}
    return found
