"""Writes the mirrors of a landing in `staging`, side by side.

Small changes are handed to the stream tables that read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from headrace.algebra.schema import Column
from headrace.catalog import Catalog, DatabaseSource, Mirror, StreamTable, Version
from headrace.events import Events, stage_told
from headrace.frontier import Frontier
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import create_log, create_namespace, create_table, table_location
from headrace.landing.mirror_thinning import Thinner
from headrace.landing.mirrors import Hand, Mirroring, Moved
from headrace.landing.operation_ids import OperationIds, last_of
from headrace.names import STAGING, SYSTEM_NAMESPACE, TableName
from headrace.physical.shared_changes import SharedChanges, by_semantics, followers, view_of
from headrace.ports import Runner, Session
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.staging_tables import staged, untouched
from headrace.semantics import Semantics
from headrace.sources.capture import LandedTable, Landing

STRICT = Semantics(time_zone="UTC", ansi=True, case_sensitive=False)
"""Under which texts of a database become values: what does not fit is an error, never NULL."""

_Streams = tuple[Mapping[TableName, StreamTable], Mapping[TableName, Frontier]]
"""All stream tables, and where they stand."""


class MirrorWriter:
    """Writes the mirrors of sources.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        events: Told what happens.
        warehouse: Where tables are stored.
        format_version: Iceberg format of new tables.
        changes: Gives what keeps small changes for those who read mirrors.
        defaults: What the project wants where a stream table says nothing.
    """

    def __init__(
        self,
        catalog: Catalog,
        session: Session,
        events: Events,
        warehouse: str,
        format_version: int,
        changes: Callable[[], SharedChanges] | None = None,
        defaults: Defaults | None = None,
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.events = events
        self.warehouse = warehouse
        self.format_version = format_version
        self.changes = changes
        self.thinner = Thinner(catalog, defaults or Defaults())

    def write(self, source: DatabaseSource, landing: Landing) -> dict[TableName, Moved]:
        """Write every mirror of a landing in parallel.

        Commits wait more for files and locks than they compute.

        Raises:
            KeyOnTwoNodes: A node adds a key that another one has.
            HeadraceError: `VALUE_NOT_REPRESENTABLE`, or another error of Spark's; nothing must be published then.
        """
        mirrors = {m.name: m for m in source.mirrors}
        newest = self.catalog.newest_versions()
        read = self._read_by()
        runner = self.session.runner().under(STRICT)
        made = self._make_missing(landing.tables, mirrors, newest, runner)
        parts: dict[TableName, list[LandedTable]] = {}
        for landed in landing.tables:
            parts.setdefault(landed.name, []).append(landed)

        base = last_of(source.position)
        ids = {name: OperationIds(base + 1 + place, len(parts)) for place, name in enumerate(parts)}

        def one(name: TableName) -> Moved:
            known = newest.get(name)
            version = 0 if known is None else known.version + 1
            before = {table: untouched(self.catalog, table) for table in mirrors[name].stored}
            hand = None if name in made else self._handing(name, version, runner, read)
            bringing = Mirroring(
                mirrors[name],
                version,
                runner,
                self._staged,
                before,
                ids[name],
                hand,
                landing.shared_keys.get(name),
                made=name in made,
            )
            with stage_told(self.events, source.name, f"write {name}"):
                return bringing.bring(parts[name])

        with ThreadPoolExecutor(4, thread_name_prefix="headrace-land") as pool:
            moved = dict(zip(parts, pool.map(one, parts), strict=True))
        written = {t: meta for of in moved.values() for t, meta in of.written.items()}
        thinned = self.thinner.thin({t: m for m in mirrors.values() for t in m.stored}, written, runner)
        for of in moved.values():
            of.written = {t: self._staged(t) if t in thinned else meta for t, meta in of.written.items()}
        for name, of in moved.items():
            of.operation = ids[name].last
        return moved

    def _read_by(self) -> _Streams:
        with self.catalog.reading() as reader:
            return {t.name: t for t in reader.stream_tables()}, reader.frontiers()

    def _handing(self, name: TableName, version: int, runner: Runner, read: _Streams) -> Hand | None:
        """Hands the change that makes a version of a mirror to the stream tables that wait for it."""
        if self.changes is None or not (readers := followers(name, version - 1, *read)):
            return None
        changes = self.changes()

        def hand(log: TableMeta, sql: str, columns: tuple[Column, ...]) -> None:
            view = view_of(log, version - 1, version)
            for semantics, names in by_semantics(readers, read[0]).items():
                changes.hand_over(runner, name, view, sql, columns, names, semantics)

        return hand

    def _make_missing(
        self,
        tables: Iterable[LandedTable],
        mirrors: Mapping[TableName, Mirror],
        newest: Mapping[TableName, Version],
        runner: Runner,
    ) -> frozenset[TableName]:
        """Create the stored tables of mirrors that have none; return those mirrors.

        Where one had others, its versions go on, and its log begins after the next one.
        """
        made: set[TableName] = set()
        for landed in tables:
            mirror, last = mirrors[landed.name], newest.get(landed.name)
            if self.catalog.pointers(STAGING, [mirror.name.within(STAGING)]):
                continue
            suffix = mirror.log.table.removesuffix("_log").rpartition("_")[2]
            for namespace in (mirror.name.namespace, (SYSTEM_NAMESPACE,)):
                runner.run(create_namespace(STAGING, namespace))
            state, log = (t.within(STAGING) for t in mirror.stored)
            after = 0 if last is None else last.version + 1
            made.add(mirror.name)
            for table, make in ((state, create_table), (log, partial(create_log, numbered=True, after=after))):
                location = table_location(self.warehouse, table, suffix)
                runner.run(make(table, landed.columns, location=location, format_version=self.format_version))
        return frozenset(made)

    def _staged(self, table: TableName) -> TableMeta:
        return staged(self.catalog, table)
