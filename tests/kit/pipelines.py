"""Pipelines without Spark: a real catalog, real pointers and metadata files, and a worker that publishes for real.

A stream table's "contents" are, for each base table below it, the versions that reached it over all ways. So a reader
sees at once whether tables agree (several versions of one base are a mixture), and a test whether a table equals its
"query", which is the union of what it reads, at its frontier.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import lake

from headrace.catalog import (
    Catalog,
    Definition,
    FrontierMove,
    HistoryEntry,
    NewVersion,
    Outcome,
    Publication,
    RanAs,
    Swap,
    resource_of,
)
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Events
from headrace.frontier import Frontier
from headrace.graph.dag import Dag
from headrace.names import LAKE, TableName
from headrace.refresh.cut.align_cut import aligned_heads, alignment, wants_alignment
from headrace.refresh.cut.cut import Cut
from headrace.refresh.cut.pinned_state import PinnedState
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.groups.side_by_side import SideBySide
from headrace.refresh.held_leases import holding_leases
from headrace.results.refresh_results import Mode, RefreshResult
from headrace.schedule import parse_schedule
from headrace.scheduler.loop import Scheduler
from headrace.scheduler.rules import Rules

Contents = Mapping[str, frozenset[int]]


KEPT = 16
"""Snapshots that a table has at most, the newest ones."""


class Lake:
    """Base tables and stream tables of one catalog.

    Args:
        url: The catalog, which exists.
        folder: Where metadata files go.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.iceberg = Iceberg(url)
        self._numbers = iter(range(1, 1_000_000))
        self._lock = threading.Lock()
        self._snapshots: dict[TableName, list[dict[str, object]]] = {}

    def base(self, *names: str) -> None:
        """Make or change base tables."""
        for name in names:
            self.iceberg.commit(lake(name), self.metadata(lake(name))[0], catalog=LAKE)

    def metadata(self, name: TableName) -> tuple[str, int]:
        """Write a metadata file with a snapshot of its own; where it is, and the snapshot."""
        snapshot = time.time_ns()
        summary = {"operation": "append"}
        new = {"snapshot-id": snapshot, "timestamp-ms": snapshot // 10**6, "schema-id": 0, "summary": summary}
        with self._lock:
            number = next(self._numbers)
            snapshots = self._snapshots[name] = [*self._snapshots.get(name, ())[1 - KEPT :], new]
        file = self.folder / f"{name.table}-{number}-{snapshot}.metadata.json"
        content = {
            "format-version": 2,
            "table-uuid": f"uuid-{name}",
            "location": str(self.folder / name.table),
            "current-snapshot-id": snapshot,
            "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "k", "type": "long", "required": False}]}],
            "current-schema-id": 0,
            "snapshots": snapshots,
        }
        file.write_text(json.dumps(content), encoding="utf-8")
        return str(file), snapshot

    def write(self, snapshot: int, contents: Contents) -> None:
        """Say what a snapshot of a stream table holds."""
        text = json.dumps({base: sorted(versions) for base, versions in contents.items()})
        (self.folder / f"{snapshot}.json").write_text(text, encoding="utf-8")

    def read(self, snapshot: int) -> Contents:
        """What a snapshot of a stream table holds."""
        text = (self.folder / f"{snapshot}.json").read_text(encoding="utf-8")
        return {base: frozenset(versions) for base, versions in json.loads(text).items()}


def query(lake: Lake, sources: Mapping[TableName, tuple[int, int | None]], streams: Collection[TableName]) -> Contents:
    """What a stream table must hold, from its sources' versions and snapshots."""
    found: dict[str, frozenset[int]] = {}
    for name, (version, snapshot) in sources.items():
        below = lake.read(snapshot or 0) if name in streams else {name.table: frozenset([version])}
        for base, versions in below.items():
            found[base] = found.get(base, frozenset()) | versions
    return found


def define(
    catalog: Catalog, graph: str, schedules: Mapping[str, str] | None = None, **options: Mapping[str, str]
) -> None:
    """Define stream tables from `b: a; d: b c`, producers first; names without a namespace are in `s`."""
    definitions = []
    for line in graph.split(";"):
        name, _, reads = line.partition(":")
        name = name.strip()
        definitions.append(
            Definition(
                full(name),
                "SELECT k",
                tuple(full(read) for read in reads.split()),
                schedule=(schedules or {}).get(name, (schedules or {}).get("*")),
                options=options.get(name, {}),
            )
        )
    catalog.publish(Publication(definitions=tuple(definitions)))


def full(name: str) -> TableName:
    return lake(f"s.{name}")


class PublishingWorker:
    """Refreshes by publishing new pointers, under leases, against the cut; sleeps where Spark would compute.

    Args:
        lake: Where tables are.
        catalog: The catalog.
        seconds: How long a table takes.
        fails: Called with each table before it is written; raises to make it fail.

    Attributes:
        lingers: Called between a publication and the end of its refresh.
    """

    def __init__(
        self,
        lake: Lake,
        catalog: Catalog,
        seconds: Callable[[TableName], float] = lambda _: 0.0,
        fails: Callable[[TableName], None] = lambda _: None,
    ) -> None:
        self.lake = lake
        self.catalog = catalog
        self.seconds = seconds
        self.fails = fails
        self.lingers: Callable[[], None] = lambda: None
        self.ran: list[tuple[str, ...]] = []
        self.maintained: list[str] = []
        self.deployed = 0
        self.deploys: Callable[[], None] = lambda: None
        self.at_once = 0
        self.most_at_once = 0
        self.cancelled = threading.Event()
        self._stops: dict[TableName, threading.Event] = {}
        self.restartable = False
        self.restarts = 0
        self.exchanging = False
        self._lock = threading.Lock()

    def heads(self) -> Cut:
        return Cut(self.catalog, lambda _: None)

    def restart(self) -> bool:
        if self.restartable:
            self.restarts += 1
        return self.restartable

    def maintain(self, wanted: Callable[[TableName], bool], waits: Callable[[], bool]) -> Sequence[str]:
        for table in self.catalog.stream_tables():
            if wanted(table.name):
                self.maintained.append(table.name.table)
        return ()

    def deploy(self, layouts: Sequence[TableName] = ()) -> None:
        self.deployed += 1
        self.deploys()

    def cancel(self, members: Sequence[TableName]) -> None:
        self.cancelled.set()
        with self._lock:
            for stop in (self._stops[n] for n in members if n in self._stops):
                stop.set()

    def begin(
        self,
        members: Sequence[TableName],
        tasks: Mapping[TableName, Sequence[TableName]],
        heads: Cut,
        awaited: Sequence[Sequence[TableName]] = (),
    ) -> SideBySide:
        return SideBySide(lambda: PublishedGroup(self, tuple(members), heads, awaited), tasks)

    def refresh(self, members: Sequence[TableName], heads: Cut) -> tuple[RefreshResult, ...]:
        """All members in one task."""
        return self.begin(members, {members[-1]: members}, heads).refresh(members[-1]) or ()

    @contextmanager
    def computing(self, name: TableName) -> Iterator[None]:
        """Where Spark would compute."""
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            stop = self._stops[name] = threading.Event()
        try:
            self.fails(name)
            if stop.wait(self.seconds(name)):
                raise EnvironmentFault("CANCELLED", "The Spark job was cancelled.", retryable=True)
            yield
        finally:
            with self._lock:
                self.at_once -= 1
                del self._stops[name]


class PublishedGroup:
    """Stream tables that a worker refreshes and publishes together.

    Args:
        worker: The worker.
        members: The stream tables, producers first.
        heads: The cut.
        awaited: The members of each unit that is not published yet; looked at by the first to read one.
    """

    reordered = False

    def __init__(
        self,
        worker: PublishingWorker,
        members: tuple[TableName, ...],
        heads: Cut,
        awaited: Sequence[Sequence[TableName]] = (),
    ) -> None:
        self.worker, self.lake, self.catalog = worker, worker.lake, worker.catalog
        self.members, self.heads, self.awaited = members, heads, awaited
        self.lock = threading.Lock()
        self.stack = ExitStack()
        self.done: list[tuple[Swap, NewVersion, FrontierMove, HistoryEntry]] = []

    @property
    def parts(self) -> tuple[tuple[TableName, ...], ...]:
        return tuple((name,) for name in self.members)

    def begin(self) -> tuple[RefreshResult, ...] | None:
        """Take the leases; results where somebody else has brought all members there since they were planned."""
        resources = [resource_of(n) for n in self.members]
        self.leases = self.stack.enter_context(holding_leases(self.catalog, resources))
        self.catalog.reset_staging(self.members, held=self.leases())
        self.tables = tables = {t.name: t for t in self.catalog.stream_tables()}
        self.newest = {n: v.version for n, v in self.catalog.newest_versions(self.members).items()}
        self.read = read = {s for n in self.members for s in tables[n].sources if s not in self.members}
        read = read - {n for unit in self.awaited for n in unit}
        # all at once: what lies outside of a group may move on while its members are refreshed
        found = self.heads.of(sorted(read), frozenset(tables))
        self.frontiers = self.catalog.frontiers(self.members)
        if len(self.members) == 1 and wants_alignment(tables[self.members[0]], Defaults()):
            with self.catalog.reading() as reader:
                at = {s: h.version.version for s, h in found.items()}
                agreed = alignment(reader, self.members[0], tables, self.frontiers, at)
                found = aligned_heads(found, agreed, reader)
        self.seen = {s: (h.version.version, h.version.snapshot_id) for s, h in found.items()}
        self.graph = Dag({n: tables[n].sources for n in self.members})
        if self.awaited or not all(map(self._is_there, self.members)):
            return None
        self.stack.close()
        return tuple(RefreshResult(str(n), Mode.NO_CHANGE, None, None, 0, 0, 0.0, {}) for n in self.members)

    def _is_there(self, name: TableName) -> bool:
        now = {**self.newest, **{s: version for s, (version, _) in self.seen.items()}}
        wanted = {s: now.get(s) for s in self.tables[name].sources}
        return name in self.frontiers and dict(self.frontiers[name]) == wanted

    def see_published(self, part: Sequence[TableName]) -> None:
        read = {s for name in part for s in self.tables[name].sources}
        with self.lock:
            new = {s for unit in self.awaited if not read.isdisjoint(unit) for s in unit if s not in self.seen}
            found = self.heads.of(sorted(self.read & new), frozenset(self.tables))
            self.seen |= {s: (h.version.version, h.version.snapshot_id) for s, h in found.items()}

    def prepare(self, part: Sequence[TableName]) -> None:
        self.see_published(part)
        for name in part:
            started = dt.datetime.now(dt.UTC)
            with self.worker.computing(name):
                self._write(name, started)

    def _write(self, name: TableName, started: dt.datetime) -> None:
        tables, newest = self.tables, self.newest
        cycle = self.graph.component(name)
        own = {s for member in (cycle or (name,)) for s in tables[member].sources if s not in cycle}
        sources = {s: self.seen[s] for s in own}  # the fixed point of unions: all of a cycle hold what any of it reads
        reached = {s: version for s, (version, _) in sources.items() if s in tables[name].sources}
        frontier = Frontier(reached | {s: newest.get(s, -1) + 1 for s in tables[name].sources if s in cycle})
        if any(self.frontiers.get(name, {}).get(s, -1) > version for s, version in frontier.items()):
            raise EnvironmentFault("CUT_OVERTAKEN", "Somebody was faster.", retryable=True)
        location, snapshot = self.lake.metadata(name)
        self.lake.write(snapshot, query(self.lake, sources, tables))
        expected = self.lake.iceberg.pointer(name)
        self.lake.iceberg.commit(name, location)
        self.seen[name] = (newest.get(name, -1) + 1, snapshot)
        version = NewVersion(name, self.seen[name][0], snapshot, 1, f"uuid-{name}")
        ended = dt.datetime.now(dt.UTC)
        entry = HistoryEntry(name, started, ended, RanAs.DIFFERENTIAL, Outcome.OK, frontier=frontier)
        self.done.append((Swap(name, expected, location), version, FrontierMove(name, frontier), entry))

    def publish(self) -> tuple[RefreshResult, ...]:
        swaps, versions, moves, entries = zip(*self.done, strict=True)
        groups = (self.members,) if len(self.members) > 1 else ()
        self.catalog.publish(Publication(swaps, versions, moves, entries, leases=self.leases(), groups=groups))
        self.stack.close()
        self.worker.ran.append(tuple(n.table for n in self.members))
        self.worker.lingers()
        return tuple(RefreshResult(str(n), Mode.DIFFERENTIAL, None, None, 1, 0, 0.0, {}) for n in self.members)

    def give_up(self, _error: BaseException) -> None:
        self.stack.close()


def rules(**changes: object) -> Rules:
    values: dict[str, object] = {
        "slots": 4,
        "default_schedule": parse_schedule("ON CHANGE"),
        "poll": 0.02,
        "grace": 5.0,
    }
    return Rules(**{**values, **changes})  # type: ignore[arg-type]


class ClockAhead:
    """The machine's clock, put forward, so that nobody has to wait for pauses to end."""

    def __init__(self, seconds: float) -> None:
        self._ahead = dt.timedelta(seconds=seconds)

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC) + self._ahead


def scheduler(
    catalog: Catalog, worker: PublishingWorker, events: Events | None = None, *, ahead: float = 0, **changes: object
) -> Scheduler:
    return Scheduler(catalog, worker, events or Events(), rules(**changes), ClockAhead(ahead))


def contents(lake: Lake, catalog: Catalog, *names: str, when: dt.datetime | int | None = None) -> list[Contents]:
    """What stream tables hold, or held, read through one pinned state, which is what `hr.at(when)` takes."""
    pinned = PinnedState(catalog, when)
    found = []
    for name in names:
        snapshot = re.search(r"VERSION AS OF (\d+)", pinned.expression(full(name)))
        found.append(lake.read(int(snapshot[1])) if snapshot else {})
    return found


def roots(lake: Lake, catalog: Catalog) -> dict[str, dict[str, set[int]]]:
    """What every loaded stream table holds."""
    names = [n.table for n in catalog.frontiers()]
    return {n: {b: set(v) for b, v in c.items()} for n, c in zip(names, contents(lake, catalog, *names), strict=True)}


def mixed(*tables: Contents) -> bool:
    """Whether tables, taken together, reflect several versions of one base table."""
    seen: dict[str, frozenset[int]] = {}
    for one in tables:
        for base, versions in one.items():
            seen[base] = seen.get(base, versions) | versions
    return any(len(versions) > 1 for versions in seen.values())


def failing(
    *names: str, times: int = 10**6, code: str = "TEST_FAULT", retryable: bool = True
) -> Callable[[TableName], None]:
    """Makes tables fail so often."""
    left = dict.fromkeys(names, times)

    def fail(name: TableName) -> None:
        if left.get(name.table, 0) > 0:
            left[name.table] -= 1
            raise HeadraceError(code, f"{name} was made to fail.", retryable=retryable)

    return fail
