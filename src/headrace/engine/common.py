"""Changes of sources that several stream tables read: computed once, and kept until the next change of that source.

Rows deleted in place are found by reading the files they are in, of a large table about all of them. Were each of the
stream tables over it to do that by itself, a cycle would cost as many scans as there are readers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from headrace.catalog import StreamTable, Version
from headrace.engine.details import from_json
from headrace.engine.facts import Common, Facts
from headrace.engine.ports import Runner
from headrace.engine.results import RefreshMode
from headrace.frontier import Frontier
from headrace.lake.metadata import TableMeta
from headrace.names import RESERVED_PREFIX, WEIGHT, TableName, quote
from headrace.sources.history import AllRows, AppendRange, ChangePlan
from headrace.sources.lakehouse import changes_sql


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
    """What to keep of a change for others; None when nobody else reads it, or it is read as cheaply as what is kept.

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
    if all(isinstance(part, AllRows | AppendRange) for part in plan.parts) or not _follows(streams[reader]):
        return None
    before, after = (version.version for version in span)
    readers = {n: from_json(t.details) for n, t in streams.items() if source in t.sources and _follows(t)}
    at = {n: frontiers[n].get(source) for n in readers if n in frontiers and readers[n].incremental and n != reader}
    along = [version for version in at.values() if version in (before, after)]
    if not along:
        return None
    uses = (use for n in (*at, reader) for use in readers[n].sources if use.name == source)
    used = {column.name.lower() for use in uses for column in use.columns}
    every = tuple(c.name for c in meta.columns if c.name.lower() in used)
    sql = changes_sql(source, meta, plan, every)
    if sql is None:
        return None
    digest = hashlib.sha256(f"{source.sql} {span[0].table_uuid} {sql}".encode()).hexdigest()[:16]
    view = f"{RESERVED_PREFIX}change_{digest}"
    listed = "".join(f"{quote(c)}, " for c in columns)
    own = f"SELECT {listed}{quote(WEIGHT)} FROM {quote(view)}"
    return Common(view, sql, own, waiting=before in along)


def _follows(table: StreamTable) -> bool:
    return table.refresh_mode is not RefreshMode.FULL


@dataclass(slots=True)
class _Kept:
    source: TableName
    users: int = 0
    ready: bool = False
    lock: Lock = field(default_factory=Lock)


class CommonChanges:
    """Keeps changes in Spark while they may be read again; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[tuple[Runner, str], _Kept] = {}

    @property
    def views(self) -> frozenset[str]:
        """The temporary names under which something is kept."""
        with self._lock:
            return frozenset(view for _, view in self._kept)

    def worth_it(self, facts: Facts, runner: Runner) -> Facts:
        """The facts, without what would be kept for nobody: no other table waits for it, and it is not there yet.

        Args:
            facts: As gathered.
            runner: Whose temporary views are read.
        """
        sources = tuple(
            replace(s, common=None) if s.common and not s.common.waiting and not self._has(runner, s.common) else s
            for s in facts.sources
        )
        return replace(facts, sources=sources)

    def _has(self, runner: Runner, common: Common) -> bool:
        with self._lock:
            return (runner, common.view) in self._kept

    def read(self, runner: Runner, source: TableName, view: str, sql: str, *, few: bool = False) -> None:
        """Make a change readable as `view` and keep it there; `leave` must follow.

        What was kept of earlier changes of the source, and nobody reads any more, is let go.

        Args:
            runner: Reads it.
            source: The source.
            view: Temporary name.
            sql: The change.
            few: Whether its rows are few.
        """
        with self._lock:
            kept = self._kept.setdefault((runner, view), _Kept(source))
            kept.users += 1
            old = [k for k, v in self._kept.items() if v.source == source and k[1] != view and not v.users]
            for key in old:
                del self._kept[key]
                self._release(key)
        with kept.lock:
            if not kept.ready:
                runner.materialize(view, sql, few=few)
                kept.ready = True

    def leave(self, runner: Runner, view: str) -> None:
        """Say that a reader is done; what it read stays for others."""
        with self._lock:
            kept = self._kept[runner, view]
            kept.users -= 1
            if not kept.ready and not kept.users:
                del self._kept[runner, view]

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            old, self._kept = list(self._kept), {}
            for key in old:
                self._release(key)

    def _release(self, key: tuple[Runner, str]) -> None:
        """Under the lock: who reads the same change again meanwhile makes the view anew, and must not lose that one."""
        runner, view = key
        runner.release(view)
