"""The cut: the head of every source, observed once for all tables refreshed together.

Observing reads pointers from the catalog and metadata files; it starts no Spark job, and for tables in `lake` no JVM.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from headrace.catalog import Catalog, Observation, Pointer, Version
from headrace.errors import HeadraceError, UserError
from headrace.frontier import Frontier
from headrace.lake.clock_table import clock_meta, moment_of
from headrace.lake.metadata import TableMeta
from headrace.lake.metadata_cache import Remembered
from headrace.names import CLOCK, LAKE, STAGING, TableName

ASTRAY = 3600.0
"""By how many seconds a host's clock may be behind the newest moment that any refresh has read."""

ForeignLocation = Callable[[TableName], str | None]
"""Finds the metadata file of a table outside `lake`."""


metadata = Remembered()
"""Gives the metadata at a location."""


@dataclass(frozen=True, slots=True)
class Head:
    """A relation at the cut.

    Args:
        version: Its version.
        meta: Its Iceberg metadata.
        staged: Whether it is not published yet: written in `staging`, to be published together with its reader.
        log: Metadata of its change log in `staging`, while it is not published yet.
        newer: How many versions there are after this one, at which it is held back.
        aligned: Whether it is held back so that its reader reads versions that agree, not by a gate.
    """

    version: Version
    meta: TableMeta
    staged: bool = False
    log: TableMeta | None = None
    newer: int = 0
    aligned: bool = False

    @property
    def readable(self) -> bool:
        """Return whether its rows are still kept, where it is not the newest version."""
        known = self.version.snapshot_id is None or self.version.snapshot_id in self.meta.snapshots
        return known and self.version.table_uuid in (None, self.meta.uuid)

    def found_at(self, name: TableName) -> TableName:
        """Return the name under which its rows are read."""
        return name.within(STAGING) if self.staged else name


class Cut:
    """Observes heads: each base table once, stream tables each time, as the cycle moves them.

    Threads may share it: what one has observed, the others find.

    Args:
        catalog: The catalog.
        foreign: Finds metadata files of tables outside `lake`.
        tick: Seconds that have to pass before the clock of moving filters has moved.
    """

    def __init__(self, catalog: Catalog, foreign: ForeignLocation, tick: float = 1e-6) -> None:
        self._catalog = catalog
        self._tick = tick
        self._foreign = foreign
        self._seen: dict[TableName, Head] = {}
        self._views: set[TableName] = set()
        self._lock = threading.RLock()
        self._mirrors: dict[TableName, Head] | None = None

    def of(self, sources: Iterable[TableName], streams: frozenset[TableName]) -> dict[TableName, Head]:
        """Return heads of some relations.

        Args:
            sources: The relations.
            streams: Which names are stream tables.

        Raises:
            UserError: `SOURCE_NOT_FOUND` when a table does not exist (any more).
        """
        names = tuple(dict.fromkeys(sources))
        self._seen |= self._mirrored()
        with self._lock:
            self._look_at_clock(names)
            new = [n for n in names if n not in streams and n not in self._seen]
            self._observe({name: metadata(location) for name, location in self._locations(new).items()})
            self._hold(new)
        heads = {n: self._seen[n] for n in names if n not in streams}
        if wanted := [n for n in names if n in streams]:
            newest = self._catalog.newest_versions(wanted)
            locations = self._locations(wanted)
            for name in wanted:
                if name not in newest:
                    raise UserError(
                        "SOURCE_NOT_LOADED",
                        f"Stream table {name} has never been loaded, so nothing can be computed from it.",
                        hint=f"Run REFRESH STREAM TABLE {name} first.",
                    )
                heads[name] = Head(newest[name], metadata(locations[name]))
        return {n: heads[n] for n in names}

    def passed(self, frontier: Frontier) -> bool:
        """Return whether an observed base table is at another version than at a frontier."""
        with self._lock:
            seen = {n: self._seen[n].version.version for n in frontier if n in self._seen}
        return any(frontier[n] != version for n, version in seen.items())

    def take_mirrors(self) -> None:
        """Take the heads of mirrors unless done, so that keys read afterwards are no older."""
        self._mirrored()

    def versions(
        self, sources: Iterable[TableName], unreadable: Callable[[TableName, HeadraceError], None] | None = None
    ) -> dict[TableName, int]:
        """Return versions of base tables; tables that are gone are left out.

        Args:
            sources: The base tables.
            unreadable: Told of tables that cannot be read, which are left out, too; without it that is raised.
        """
        names = tuple(dict.fromkeys(sources))
        self._seen |= self._mirrored()
        with self._lock:
            self._look_at_clock(names)
            new = [n for n in names if n not in self._seen]
            kept = self._kept(new)
            metas: dict[TableName, TableMeta] = {}
            for name in new:
                try:
                    location = self._location(name, kept)
                    if location is not None:
                        metas[name] = metadata(location)
                except HeadraceError as error:
                    if unreadable is None:
                        raise
                    unreadable(name, error)
            self._observe(metas)
            self._hold(metas)
        return {n: self._seen[n].version.version for n in names if n in self._seen}

    def views_among(self, sources: Iterable[TableName]) -> frozenset[TableName]:
        """Return which of some relations, no stream tables, are views; observes what is new."""
        names = frozenset(sources)
        self.versions(names, lambda *_: None)  # whoever reads what cannot be read says so
        with self._lock:
            return names & self._views

    def _hold(self, names: Collection[TableName]) -> None:
        """Hold back what was just observed and has a closed gate.

        Gates are looked for after the sources: what was committed after a gate closed is seen together with the gate.
        """
        if not names:
            return
        with self._catalog.reading() as reader:
            closed = {n: g for n, g in reader.gates().items() if n in self._seen}
            at = reader.versions_at({n: g.version for n, g in closed.items()})
        self._seen |= {n: head_at(self._seen[n], version) for n, version in at.items() if n in names}

    def _mirrored(self) -> dict[TableName, Head]:
        """Return the heads of all mirrors, taken once, so that they are of one landing."""
        with self._lock:
            if self._mirrors is None:
                with self._catalog.reading() as reader:
                    names = [m.name for source in reader.sources() for m in source.mirrors]
                    newest = reader.newest_versions(names)
                    pointers = reader.pointers(LAKE, names) if names else {}
                    closed = {n: g.version for n, g in reader.gates().items() if n in newest} if names else {}
                    held = reader.versions_at({n: v for n, v in closed.items() if n in names})
                there = [n for n in names if n in newest and n in pointers]
                heads = {n: Head(newest[n], metadata(pointers[n].metadata_location)) for n in there}
                self._mirrors = {n: head_at(head, held.get(n)) for n, head in heads.items()}
            return self._mirrors

    def _look_at_clock(self, names: Collection[TableName]) -> None:
        """Take the time, once for all that are refreshed together.

        It does not go back where clocks of hosts differ a little; one that was far ahead is not followed.
        """
        if CLOCK not in names or CLOCK in self._seen:
            return
        with self._catalog.reading() as reader:
            last = reader.newest_version(CLOCK)
        now, known = moment_of(self._catalog.now()), last.snapshot_id if last is not None else None
        if last is not None and known is not None and -ASTRAY < (now - known) / 1_000_000 < self._tick:
            self._seen[CLOCK] = Head(last, clock_meta(known))
        else:
            self._observe({CLOCK: clock_meta(now)})

    def _observe(self, metas: Mapping[TableName, TableMeta]) -> None:
        if metas:
            observed = self._catalog.observe([_observation(name, meta) for name, meta in metas.items()])
            for (name, meta), seen in zip(metas.items(), observed, strict=True):
                self._seen[name] = Head(seen, meta)

    def _kept(self, names: Iterable[TableName]) -> Mapping[TableName, Pointer]:
        kept = [n for n in names if n.catalog == LAKE]
        found = self._catalog.pointers(LAKE, kept) if kept else {}
        self._views |= {name for name, pointer in found.items() if pointer.is_view}
        return found

    def _location(self, name: TableName, kept: Mapping[TableName, Pointer]) -> str | None:
        if name.catalog != LAKE:
            return self._foreign(name)
        pointer = kept.get(name)
        return None if pointer is None else pointer.metadata_location

    def _locations(self, names: Iterable[TableName]) -> dict[TableName, str]:
        names = tuple(names)
        kept, locations = self._kept(names), {}
        for name in names:
            pointer = kept.get(name)
            if pointer is not None and pointer.is_view:
                raise UserError(
                    "SOURCE_NOT_FOUND",
                    f"{name} is a view now, where a table was read.",
                    hint="Refresh the stream tables that read it: they are defined again, over what the view reads.",
                )
            location = self._location(name, kept)
            if location is None:
                raise UserError(
                    "SOURCE_NOT_FOUND",
                    f"Table {name} does not exist any more.",
                    hint="Create it again, or drop the stream tables that read it.",
                )
            locations[name] = location
        return locations


def head_at(head: Head, version: Version | None, *, aligned: bool = False) -> Head:
    """Return a head that is held back at an older version.

    As it is for None, or a version that is not older.
    """
    if version is None or version.version >= head.version.version:
        return head
    newer = head.newer + head.version.version - version.version
    return replace(head, version=version, newer=newer, aligned=aligned)


def _observation(name: TableName, meta: TableMeta) -> Observation:
    snapshot = meta.current
    committed = dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC) if snapshot else None
    return Observation(name, meta.current_snapshot_id, meta.uuid, meta.row_count, committed)
