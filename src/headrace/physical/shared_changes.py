"""Changes that several stream tables read: computed once, kept until the next change.

Rows deleted in place are found by reading the files they are in, of a large table about all of them. Were each of the
stream tables over it to do that by itself, a cycle would cost as many scans as there are readers. And the change of a
stream table is known when it has been refreshed: where its rows are few, its consumers are handed them, and nobody
reads its change log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from headrace.algebra.schema import Column
from headrace.catalog import StreamTable, Version
from headrace.definitions.details import columns_read, semantics_of
from headrace.frontier import Frontier
from headrace.ivm.program import Key
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import OPERATION, VERSION
from headrace.names import WEIGHT, TableName, quote
from headrace.physical.facts import Common, Facts
from headrace.physical.view_names import view_named
from headrace.ports import Runner
from headrace.results.refresh_results import RefreshMode
from headrace.semantics import Semantics
from headrace.sources.lakehouse.change_plan import AllRows, AppendRange, ChangePlan
from headrace.sources.lakehouse.changes_sql import changes_sql

LOCAL_RELATION_ROWS = 20_000
"""Changes of so many rows, and what follows from them, are expected to be few enough to be held in one place."""

SMALL_APPEND_ROWS = 1_000
"""Appended rows that are kept for all readers, at most; more are read from files as quickly."""

About = TableName | Key
"""The key of what is kept: a source's change, or its semi-join with changes by some columns."""

MOST_BYTES = 64 * 2**20
"""Bytes of memory that all changes may take which consumers have yet to read."""


def common_change(
    reader: TableName,
    source: TableName,
    columns: tuple[str, ...],
    span: tuple[Version, Version],
    *,
    meta: TableMeta,
    plan: ChangePlan,
    streams: Mapping[TableName, StreamTable],
    frontiers: Mapping[TableName, Frontier],
) -> Common | None:
    """Return how to keep a change for others; None if unread or cheap to read again.

    Args:
        reader: The stream table that is refreshed.
        source: The source.
        columns: The columns that `reader` reads.
        span: The source's versions at the reader's frontier and at the cut.
        meta: The source's metadata.
        plan: How the change is read.
        streams: All stream tables.
        frontiers: Their frontiers.
    """
    cheap = all(isinstance(part, AllRows | AppendRange) for part in plan.parts)
    few = plan.rows is not None and plan.rows <= SMALL_APPEND_ROWS
    if (cheap and not few) or not _follows(streams[reader]):
        return None
    before, after = (version.version for version in span)
    reading = (name for name, table in streams.items() if source in table.sources and _follows(table))
    at = {name: frontiers[name].get(source) for name in reading if name != reader and name in frontiers}
    read = {name: columns_read(streams[name].details, source) for name in (*at, reader)}
    at = {name: version for name, version in at.items() if read[name] is not None}
    if not {before, after}.intersection(at.values()):
        return None
    used = {column.lower() for columns in read.values() for column in columns or ()}
    every = tuple(c.name for c in meta.columns if c.name.lower() in used)
    sql = changes_sql(source, meta, plan, every)
    if sql is None:
        return None
    view = view_named(f"{source.sql} {span[0].table_uuid} {sql}")
    own = f"SELECT {_listed(columns)} FROM {quote(view)}"
    waiting = frozenset(n for n, version in at.items() if version == before)
    readers = 1 + sum(version in (before, after) for version in at.values())
    return Common(view, sql, own, waiting, frozenset(every), readers=readers)


def logged_change(
    reader: TableName,
    source: TableName,
    span: tuple[Version, Version],
    *,
    columns: tuple[str, ...],
    log: TableMeta,
    sql: str,
    rows: int | None,
    streams: Mapping[TableName, StreamTable],
    frontiers: Mapping[TableName, Frontier],
) -> Common | None:
    """Return the change of a source that keeps a change log.

    Kept, if its rows are few, by whoever made it or reads it first.

    Args:
        reader: The stream table that is refreshed.
        source: What it reads.
        span: The source's versions at the reader's frontier and at the cut.
        columns: The columns that `reader` reads.
        log: The log's metadata.
        sql: The rows of the log between the two: the query without its list of columns.
        rows: How many rows these are, if known.
        streams: All stream tables.
        frontiers: Their frontiers.
    """
    if rows is None or rows > LOCAL_RELATION_ROWS:
        return None
    before, after = (version.version for version in span)
    waiting, done = (followers(source, at, streams, frontiers) - {reader} for at in (before, after))
    every = tuple(column.name for column in log.columns if column.name not in (WEIGHT, VERSION, OPERATION))
    view = view_of(log, before, after)
    own = f"SELECT {_listed(columns)} FROM {quote(view)}"
    readers = 1 + len(waiting) + len(done)
    return Common(view, f"SELECT {_listed(every)} {sql}", own, waiting, frozenset(every), readers=readers)


def view_of(log: TableMeta, before: int, after: int) -> str:
    """Return the temporary name of a change log's rows between two versions.

    A log that was put back and written anew has another snapshot, and so has one that something was added to.
    """
    return view_named(f"{log.uuid} {log.current_snapshot_id} {before} {after}")


def followers(
    source: TableName, version: int, streams: Mapping[TableName, StreamTable], frontiers: Mapping[TableName, Frontier]
) -> frozenset[TableName]:
    """Return the stream tables that read a source's changes and stand at a version of it.

    Args:
        source: The source.
        version: The version.
        streams: All stream tables.
        frontiers: Their frontiers.
    """
    reading = (name for name, table in streams.items() if source in table.sources and _follows(table))
    return frozenset(name for name in reading if name in frontiers and frontiers[name].get(source) == version)


def by_semantics(
    readers: Iterable[TableName], streams: Mapping[TableName, StreamTable]
) -> dict[Semantics, frozenset[TableName]]:
    """Return stream tables by the settings under which they are computed."""
    found: dict[Semantics, set[TableName]] = {}
    for name in readers:
        found.setdefault(semantics_of(streams[name].details), set()).add(name)
    return {semantics: frozenset(names) for semantics, names in found.items()}


def _listed(columns: Iterable[str]) -> str:
    return ", ".join((*map(quote, columns), quote(WEIGHT)))


def _follows(table: StreamTable) -> bool:
    return table.refresh_mode is not RefreshMode.FULL and not table.details.get("refusals")


def worth(facts: Facts, there: Callable[[str], bool]) -> Facts:
    """Return the facts without shared changes that no other table will read.

    No other table waits for it, and it is not there yet.

    Args:
        facts: As gathered.
        there: Whether something is kept under a name.
    """
    sources = tuple(
        replace(s, common=None) if s.common and not s.common.waiting and not there(s.common.view) else s
        for s in facts.sources
    )
    return replace(facts, sources=sources)


@dataclass(frozen=True, slots=True)
class Read:
    """Measures of a shared change, and the seconds that each reader is charged.

    Args:
        measures: What was measured of it, by name.
        seconds: Its part of the time that computing it took, in equal parts for all that it was computed for.
    """

    measures: Mapping[str, Any]
    seconds: float


@dataclass(slots=True)
class _Kept:
    """A change or semi-join that is kept under a temporary name.

    Args:
        about: Whose change it is.
        users: How many refreshes read it just now.
        ready: Whether it is there.
        readers: Who has yet to read it; the last to leave lets it go.
        size: The bytes it takes, where it was handed over.
        read: What was measured when it was computed, and each reader's part of the time that it took.
        lock: Held while it is computed.
    """

    about: About
    users: int = 0
    ready: bool = False
    readers: set[TableName] = field(default_factory=set)
    size: int = 0
    read: Read = field(default_factory=lambda: Read({}, 0.0))
    lock: Lock = field(default_factory=Lock)


class SharedChanges:
    """Keeps changes in Spark while they may be read again; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[tuple[Runner, str], _Kept] = {}

    @property
    def views(self) -> frozenset[str]:
        """Return the temporary names under which something is kept."""
        with self._lock:
            return frozenset(view for _, view in self._kept)

    def is_there(self, runner: Runner, view: str) -> bool:
        """Return whether something is kept under a name, or being computed at this moment."""
        with self._lock:
            return (runner, view) in self._kept

    def hand_over(
        self,
        runner: Runner,
        source: TableName,
        view: str,
        sql: str,
        columns: tuple[Column, ...],
        readers: Iterable[TableName],
        semantics: Semantics | None = None,
    ) -> None:
        """Keep a change for its consumers if its rows are known by now, and few.

        It is kept until all of them have read it, at most until the source's next change, or newer ones need the room.

        Args:
            runner: Knows the rows.
            source: Whose change it is.
            view: Temporary name.
            sql: The change.
            columns: Its columns, without the weight, as its change log has them.
            readers: Its consumers.
            semantics: Under which they read it; the runner's own when None.
        """
        size = runner.hold(view, sql, columns, semantics)
        if size is None:
            return
        if semantics is not None:
            runner = runner.under(semantics)
        with self._lock:
            self._outdate(source, view)
            self._kept[runner, view] = _Kept(source, ready=True, readers=set(readers), size=size)
            self._make_room()

    def read(
        self,
        runner: Runner,
        about: About,
        common: Common,
        *,
        measures: Mapping[str, str] | None = None,
        local: bool = False,
        sql: Callable[[], str] | None = None,
    ) -> Read:
        """Compute or reuse a shared result under its temporary name; `leave` must follow.

        What was kept of the same thing earlier, and nobody reads any more, is let go.

        Args:
            runner: Reads it.
            about: What it is.
            common: How it is read.
            measures: SQL aggregates over its columns, by result name, the same for whoever reads it.
            local: Whether its rows are few.
            sql: Finds the statement that computes it, should it not be there yet; None: as `common` says.
        """
        view = common.view
        with self._lock:
            kept = self._kept.setdefault((runner, view), _Kept(about, readers=set(common.waiting)))
            kept.users += 1
            self._outdate(about, view)
        with kept.lock:
            if not kept.ready:
                begun = time.perf_counter()
                found = runner.materialize(view, sql() if sql else common.sql, measures, local=local)
                kept.read = Read(found, (time.perf_counter() - begun) / (1 + len(common.waiting)))
                kept.ready = True
        return kept.read

    def leave(self, runner: Runner, view: str, reader: TableName) -> None:
        """Note that a reader is done; the result stays for the others."""
        with self._lock:
            kept = self._kept.get((runner, view))
            if kept is None:  # all was let go, with a Spark that was lost
                return
            kept.users -= 1
            kept.readers.discard(reader)
            if not kept.users and not (kept.ready and kept.readers):
                self._release((runner, view))

    def clear(self) -> None:
        """Drop all kept changes."""
        with self._lock:
            for key in list(self._kept):
                self._release(key)

    def distrust(self) -> None:
        """Have what executors keep computed again by its next reader, as one of them was lost."""
        with self._lock:
            for key, kept in list(self._kept.items()):
                runner, view = key
                if runner.literal_count(view) is not None:
                    continue
                if kept.users:
                    kept.ready = False
                else:
                    self._release(key)

    def _outdate(self, about: About, view: str) -> None:
        for key in [k for k, v in self._kept.items() if v.about == about and k[1] != view and not v.users]:
            self._release(key)

    def _make_room(self) -> None:
        """Drop the changes handed over first, while all of them are too large."""
        handed = {k: v for k, v in self._kept.items() if v.size}
        total = sum(kept.size for kept in handed.values())
        for key, kept in handed.items():
            if total > MOST_BYTES and not kept.users:
                self._release(key)
                total -= kept.size

    def _release(self, key: tuple[Runner, str]) -> None:
        """Drop a kept change under the lock, so that a reader's new view of it is not lost."""
        del self._kept[key]
        runner, view = key
        runner.release(view)
