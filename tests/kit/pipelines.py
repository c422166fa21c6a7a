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
from collections.abc import Callable, Collection, Mapping, Sequence
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
        self.ran: list[tuple[str, ...]] = []
        self.maintained: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.cancelled = threading.Event()
        self.restartable = False
        self.restarts = 0
        self._lock = threading.Lock()

    def heads(self) -> Cut:
        return Cut(self.catalog, lambda _: None)

    def restart(self) -> bool:
        if self.restartable:
            self.restarts += 1
        return self.restartable

    def maintain(self, wanted: Callable[[TableName], bool]) -> None:
        for table in self.catalog.stream_tables():
            if wanted(table.name):
                self.maintained.append(table.name.table)

    def cancel(self, members: Sequence[TableName]) -> None:
        self.cancelled.set()

    def refresh(self, members: Sequence[TableName], heads: Cut) -> tuple[RefreshResult, ...]:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            with holding_leases(self.catalog, [resource_of(n) for n in members]) as leases:
                self.catalog.reset_staging(members, held=leases())
                publication = self._prepare(members, heads)
                self.catalog.publish(
                    Publication(**publication, leases=leases(), groups=(tuple(members),) if len(members) > 1 else ())
                )
        finally:
            with self._lock:
                self.at_once -= 1
        self.ran.append(tuple(n.table for n in members))
        return tuple(RefreshResult(str(n), Mode.DIFFERENTIAL, None, None, 1, 0, 0.0, {}) for n in members)

    def _prepare(self, members: Sequence[TableName], heads: Cut) -> dict[str, tuple[object, ...]]:
        swaps, versions, moves, entries = [], [], [], []
        tables = {t.name: t for t in self.catalog.stream_tables()}
        newest = {n: v.version for n, v in self.catalog.newest_versions().items()}
        read = {s for n in members for s in tables[n].sources if s not in members}
        # all at once: what lies outside of a group may move on while its members are refreshed one after the other
        found = heads.of(sorted(read), frozenset(tables))
        frontiers = self.catalog.frontiers()
        if len(members) == 1 and wants_alignment(tables[members[0]], Defaults()):
            with self.catalog.reading() as reader:
                at = {s: h.version.version for s, h in found.items()}
                found = aligned_heads(found, alignment(reader, members[0], tables, frontiers, at), reader)
        seen = {s: (h.version.version, h.version.snapshot_id) for s, h in found.items()}
        graph = Dag({n: t.sources for n, t in tables.items()})
        for name in members:
            started = dt.datetime.now(dt.UTC)
            self.fails(name)
            if self.cancelled.wait(self.seconds(name)):
                raise EnvironmentFault("CANCELLED", "The Spark job was cancelled.", retryable=True)
            cycle = graph.component(name)
            own = {s for member in (cycle or (name,)) for s in tables[member].sources if s not in cycle}
            sources = {s: seen[s] for s in own}  # the fixed point of unions: all of a cycle hold what any of it reads
            reached = {s: version for s, (version, _) in sources.items() if s in tables[name].sources}
            frontier = Frontier(reached | {s: newest.get(s, -1) + 1 for s in tables[name].sources if s in cycle})
            if any(frontiers.get(name, {}).get(s, -1) > version for s, version in frontier.items()):
                raise EnvironmentFault("CUT_OVERTAKEN", "Somebody was faster.", retryable=True)
            location, snapshot = self.lake.metadata(name)
            self.lake.write(snapshot, query(self.lake, sources, tables))
            expected = self.lake.iceberg.pointer(name)
            self.lake.iceberg.commit(name, location)
            swaps.append(Swap(name, expected, location))
            seen[name] = (newest.get(name, -1) + 1, snapshot)
            versions.append(NewVersion(name, seen[name][0], snapshot, 1, f"uuid-{name}"))
            moves.append(FrontierMove(name, frontier))
            entries.append(
                HistoryEntry(name, started, dt.datetime.now(dt.UTC), RanAs.DIFFERENTIAL, Outcome.OK, frontier=frontier)
            )
        return {
            "swaps": tuple(swaps),
            "versions": tuple(versions),
            "frontiers": tuple(moves),
            "history": tuple(entries),
        }


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
