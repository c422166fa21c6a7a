"""Thins snapshots of mirrors within landings, every so many commits.

Maintenance waits until nothing is to be done. A source that is written by the second is never so quiet, and the more
snapshots its mirrors have, the longer each commit takes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from headrace.catalog import Catalog, Mirror, resource_of
from headrace.lake.metadata import TableMeta
from headrace.lake.snapshot_retention import Density, is_time, superfluous
from headrace.names import LAKE, STAGING, TableName
from headrace.ports import Runner
from headrace.refresh.cut.cut import metadata
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.maintenance import Needs, needs_of

DENSITY = Density()
"""The density of the snapshots that are kept of a mirror's past."""


class Thinner:
    """Thins tables that are about to be published, under the leases of whoever wrote them.

    Args:
        catalog: The catalog.
        defaults: What the project wants where a stream table says nothing.
    """

    def __init__(self, catalog: Catalog, defaults: Defaults) -> None:
        self._catalog = catalog
        self._defaults = defaults

    def thin(
        self, mirrors: Mapping[TableName, Mirror], written: Mapping[TableName, TableMeta], runner: Runner
    ) -> frozenset[TableName]:
        """Expire snapshots of mirrors when it is time; return the tables written to for it.

        Args:
            mirrors: The mirrors, by the `lake` name of each of their stored tables.
            written: Stored tables as they are in `staging` now.
            runner: Runs it.
        """
        pointers = self._catalog.pointers(LAKE, list(written)) if written else {}
        shown = {name: metadata(p.metadata_location) for name, p in pointers.items()}
        due = [name for name, meta in written.items() if name in shown and is_time(shown[name], meta)]
        if not due:
            return frozenset()
        needs = needs_of(self._catalog, self._defaults)
        return frozenset(n for n in due if self._thinned(n, mirrors[n], written[n], shown[n], needs, runner))

    def _thinned(
        self, name: TableName, mirror: Mirror, meta: TableMeta, shown: TableMeta, needs: Needs, runner: Runner
    ) -> bool:
        now = dt.datetime.now(dt.UTC)
        since = self._busy_since(mirror.name, needs, now)
        if since is None:
            return False
        gone = superfluous(
            meta,
            shown=shown.current_snapshot_id,
            published=self._published(mirror, name, meta),
            needed=needs.snapshots.get(name, frozenset()),
            now=now,
            density=DENSITY,
            busy_since=since,
        )
        return bool(gone) and runner.forget(name.within(STAGING), gone)

    def _busy_since(self, mirror: TableName, needs: Needs, now: dt.datetime) -> dt.datetime | None:
        """Return since when running refreshes may read a mirror; None: since ever."""
        live = self._catalog.held_resources()
        busy = [n for n, t in needs.tables.items() if mirror in t.sources and resource_of(n) in live]
        since = now
        for name in busy:
            version = needs.frontiers[name].get(mirror) if name in needs.frontiers else None
            found = None if version is None else self._catalog.versions_at({mirror: version}).get(mirror)
            if found is None:
                return None
            since = min(since, found.committed_at)
        return since

    def _published(self, mirror: Mirror, name: TableName, meta: TableMeta) -> dict[int, dt.datetime]:
        """Return when snapshots were published; of a log, roughly when they were committed."""
        if name != mirror.name:
            times = {s.id: s.timestamp_ms / 1000 for s in meta.snapshots.values()}
            return {s: dt.datetime.fromtimestamp(at, dt.UTC) for s, at in times.items()}
        with self._catalog.reading() as reader:
            return reader.first_shown(name, meta.snapshots.keys())
