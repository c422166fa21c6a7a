"""Lands database sources: read, write mirrors, publish, then acknowledge.

All mirrors of a source that a landing changes are published in one transaction with the source's position, so that they
always show one cut of the database, and a crash at any point repeats a landing or finds it done.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial

from headrace.algebra.schema import Column
from headrace.catalog import (
    Catalog,
    DatabaseSource,
    Lease,
    Mirror,
    NewVersion,
    Publication,
    SourceMove,
    SourceStatus,
    StreamTable,
    Swap,
    resource_of,
)
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import (
    Events,
    Notice,
    RefreshFailed,
    RefreshFinished,
    RefreshGivenUp,
    RefreshStarted,
    StagesTold,
    stage_told,
)
from headrace.frontier import Frontier
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import create_log, create_namespace, create_table, new_suffix, stored_names, table_location
from headrace.landing.mirror_thinning import Thinner
from headrace.landing.mirrors import Hand, Mirroring, Moved
from headrace.landing.operation_ids import OP, OperationIds, last_of
from headrace.landing.shared_keys import KEY_ON_TWO_NODES, KeyOnTwoNodes
from headrace.names import LAKE, STAGING, SYSTEM_NAMESPACE, TableName
from headrace.physical.shared_changes import SharedChanges, by_semantics, followers, view_of
from headrace.ports import Runner, Session
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.held_leases import Held, holding_leases
from headrace.refresh.staging_tables import staged, untouched
from headrace.results.source_results import LandingResult
from headrace.semantics import Semantics
from headrace.sources.capture import Capture, LandedTable, Landing
from headrace.sources.nodes.nodes_capture import NodesCapture
from headrace.sources.registry import kind_of
from headrace.sources.source_kind import Told

STRICT = Semantics(time_zone="UTC", ansi=True, case_sensitive=False)
"""Under which texts of a database become values: what does not fit is an error, never NULL."""

UNLIMITED = -1
"""In place of the number of landings of a source: the next one has all that there is."""

_Streams = tuple[Mapping[TableName, StreamTable], Mapping[TableName, Frontier]]
"""All stream tables, and where they stand."""

Open = Callable[[DatabaseSource, Told], Capture]
"""Opens the capture of a source, which tells how far it is."""


def untold(_: str) -> None:
    """Tell nobody how far a capture is."""


Read = Callable[[Capture, DatabaseSource], Landing]
"""Reads what is landed."""

Become = Callable[[DatabaseSource], DatabaseSource]
"""Gives a source the options and mirrors that it has once a landing is published."""


ABANDONED = dt.timedelta(days=1)
"""Files of a landing to which so long nothing was added are nobody's: its process ended, or lost its lease."""


class Lander:
    """Lands sources of one catalog.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        events: Told what happens.
        warehouse: Where tables are stored.
        format_version: Iceberg format of new tables.
        open_capture: Opens captures.
        told: Code and message of the failure that was told last, by source; kept by the caller, so that a source that
            fails at every attempt is told of once.
        landings: How many landings were published, by source; kept by the caller, who opens captures by it.
        patience: Seconds to wait for others who land, or drop, the same source.
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
        open_capture: Open,
        told: MutableMapping[str, tuple[str, str]],
        landings: MutableMapping[str, int] | None = None,
        patience: float = 0.0,
        changes: Callable[[], SharedChanges] | None = None,
        defaults: Defaults | None = None,
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.events = events
        self.warehouse = warehouse
        self.format_version = format_version
        self.open_capture = open_capture
        self.told = told
        self.landings = {} if landings is None else landings
        self.patience = patience
        self.changes = changes
        self.thinner = Thinner(catalog, defaults or Defaults())
        self._under_way: set[str] = set()

    def create(self, name: str, kind: str, options: Mapping[str, object], tables: Iterable[str]) -> LandingResult:
        """Install capture of a source and land its first snapshot.

        A failure leaves nothing behind; only where the server cannot be reached any more, the source stays, stopped,
        so that dropping it takes away what was installed there.

        Args:
            name: The source, and the namespace of its mirrors.
            kind: What kind of database.
            options: Where it is and what is captured, as the capture reads them.
            tables: Names of the mirrors.

        Raises:
            UserError: `SOURCE_EXISTS`, `TABLE_EXISTS`, or what the capture finds.
        """
        with self.catalog.reading() as reader:
            there = reader.find_source(name) is not None
        mirrors = () if there else self.new_mirrors(name, tables)  # its mirrors exist, but it is told first
        source = self.catalog.create_source(name, kind, options, mirrors)
        begun: list[Capture] = []
        try:
            return self._begin(name, begun)
        except BaseException:  # an interrupt, too, must not leave a slot that keeps write-ahead log for ever
            self._undo(source, [capture for capture in begun if capture.installed])
            raise

    def new_mirrors(self, name: str, tables: Iterable[str]) -> tuple[Mirror, ...]:
        """Return mirrors of a source that do not exist yet.

        Raises:
            UserError: `TABLE_EXISTS`.
        """
        suffix = new_suffix()
        names = [TableName(LAKE, (name,), table) for table in tables]
        if taken := sorted(self.catalog.pointers(LAKE, names)):
            raise UserError(
                "TABLE_EXISTS",
                f"{taken[0]} exists already.",
                hint="Choose another name for the source, or give the mirror another one: TABLES (… AS name).",
            )
        return tuple(Mirror(n, stored_names(n, suffix).log.within(LAKE)) for n in names)

    def resnapshot(self, name: str, mirrors: Sequence[TableName] = (), nodes: Collection[str] = ()) -> LandingResult:
        """Take a source, or some of its mirrors, anew from their tables as they are now.

        While changes can be followed, what is installed stays, so that a failure changes nothing.

        Args:
            name: The source.
            mirrors: The mirrors; none for all.
            nodes: Of a source of several, those that are copied; none for all.

        Raises:
            UserError: `SOURCE_NOT_ACTIVE` for some mirrors of a source that is on hold or stopped, and for some nodes
                of one that is on hold.
        """
        source = self.source(name)
        stopped = source.status is SourceStatus.STOPPED
        if source.status is not SourceStatus.ACTIVE:
            if not mirrors and not nodes:
                return self._begin(name, [])
            if mirrors or not stopped or source.position is None:
                again = f"Copy all of its tables again: `headrace source resnapshot {name}`"
                raise not_active(source, f"{again}." if stopped else f"{again}, or resume it first.")
        anew = mirrors or tuple(m.name for m in source.mirrors if not m.gone)

        def read(capture: Capture, now: DatabaseSource) -> Landing:
            of = capture.only(nodes, restarts=stopped) if nodes and isinstance(capture, NodesCapture) else capture
            return of.renew(now.position or {}, anew)

        try:
            return self.renew(name, read)
        except UserError as error:
            if mirrors or nodes or error.code not in kind_of(source.kind).stopping:
                raise
        return self._begin(name, [])

    def land(self, name: str, until: threading.Event | None = None) -> tuple[LandingResult, ...]:
        """Land what was committed since the last landing; return one result a publication.

        Nothing is landed of a source on hold.

        Args:
            name: The source.
            until: Set to have it stop after the publication that is under way.

        Raises:
            HeadraceError: Nothing more was published than what the results of earlier calls said.
        """
        source = self.source(name)
        if source.status is SourceStatus.PAUSED:
            return ()
        if source.status is SourceStatus.STOPPED or source.position is None:
            raise UserError(
                source.stopped_code or "SOURCE_NOT_LOADED",
                source.stopped_reason or f"Source {name} was never loaded.",
                hint=f"Take a new snapshot: `headrace source resnapshot {name}`.",
            )
        results: list[LandingResult] = []
        while not results or not (results[-1].caught_up or (until is not None and until.is_set())):
            results.append(self._landed(name, lambda capture, source: capture.land(source.position or {}), "LAND"))
            if self.source(name).status is SourceStatus.PAUSED:
                break
        return tuple(results)

    def drop(self, name: str, *, force: bool = False) -> tuple[TableName, ...]:
        """Drop a source and its mirrors, and take away what was installed on its server.

        Args:
            name: The source.
            force: Leave slot and publication on a server that cannot be reached.

        Raises:
            UserError: `SOURCE_UNKNOWN`, `HAS_CONSUMERS`; `SOURCE_URL_INVALID`: nothing was dropped then.
            EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`; nothing was dropped then.
        """
        source = self.source(name)
        own = {m.name for m in source.mirrors}
        self.refuse_read(name, own)
        with holding_leases(self.catalog, resources_of(source), patience=self.patience) as leases:
            capture = self.open_capture(source, untold)
            try:
                capture.remove()
            except HeadraceError as error:  # also a connection string that is not set here
                if not force:
                    gone = f"If its server is gone for good: `headrace source drop {name} --force`."
                    error.hint = f"{error.hint or ''} {gone}".strip()
                    raise
            capture.sweep(None)
            stored = tuple(t for m in source.mirrors for t in m.stored)
            self.catalog.publish_or_settle(Publication(source_drops=(name,), deletes=stored, leases=leases()))
        return tuple(sorted(own))

    def refuse_read(self, name: str, mirrors: Collection[TableName]) -> None:
        """Refuse to drop mirrors that stream tables read.

        Raises:
            UserError: `HAS_CONSUMERS`.
        """
        dependencies = self.catalog.dependencies()
        if readers := sorted(str(t) for t, read in dependencies.items() if set(mirrors) & set(read)):
            raise UserError(
                "HAS_CONSUMERS",
                f"Mirrors of source {name} are read by {', '.join(readers)}.",
                hint="Drop those stream tables first.",
            )

    # ---- snapshots

    def renew(self, name: str, read: Read, become: Become = lambda source: source) -> LandingResult:
        """Land new snapshots of some tables of a source.

        Args:
            name: The source.
            read: Reads what is landed.
            become: Gives the source with the options and mirrors that it has from then on.
        """
        self._began(name, "SNAPSHOT")
        return self._landed(name, read, "SNAPSHOT", become)

    def _begin(self, name: str, begun: list[Capture]) -> LandingResult:
        """Install capture and land a snapshot; puts the capture that did it into `begun`."""

        def begin(capture: Capture, _: DatabaseSource) -> Landing:
            begun.append(capture)
            return capture.begin()

        return self.renew(name, begin)

    def _undo(self, source: DatabaseSource, installed: Sequence[Capture]) -> None:
        """Remove a source that could not be created.

        Where its server is out of reach, it is kept to be dropped later.
        """
        name = source.name
        try:
            for capture in installed:
                capture.remove()
        except Exception:  # whatever it is: the error that is told is the one that made creating it fail
            left = f"The first snapshot of source {name} failed, and what was installed on its server is still there."
            with suppress(Exception):
                self.catalog.set_source_status(name, SourceStatus.STOPPED, "SOURCE_NOT_LOADED", left)
            self.events.emit(Notice(f"{left} Run `headrace source drop {name}` when the server can be reached."))
        else:
            with suppress(Exception):
                self.catalog.publish_or_settle(Publication(source_drops=(name,)))

    # ---- one landing

    def source(self, name: str) -> DatabaseSource:
        """Return a source as the catalog has it."""
        with self.catalog.reading() as reader:
            return reader.source(name)

    def _began(self, name: str, mode: str) -> None:
        """Report once that a landing began."""
        if name not in self._under_way:
            self._under_way.add(name)
            self.events.emit(RefreshStarted(name, mode, None))

    def _ended(self, end: RefreshFinished | RefreshFailed) -> None:
        """Report what became of a landing."""
        self._under_way.discard(end.table)
        self.events.emit(end)

    def _landed(self, name: str, read: Read, mode: str, become: Become = lambda source: source) -> LandingResult:
        try:
            return self._tried(name, read, mode, become)
        finally:
            if name in self._under_way:  # nothing was to land, or others hold it, or the failure was told before
                self._under_way.discard(name)
                self.events.emit(RefreshGivenUp(name))

    def _tried(self, name: str, read: Read, mode: str, become: Become) -> LandingResult:
        begin = time.perf_counter()
        with holding_leases(self.catalog, resources_of(become(self.source(name))), patience=self.patience) as leases:
            before = self.source(name)  # once more: another process may have landed meanwhile
            source = become(before)
            stored = [t for m in source.mirrors for t in m.stored]
            self._refuse_foreign(source, stored)
            self.catalog.reset_staging(stored, held=leases())
            reading = StagesTold(self.events, name)
            capture = self.open_capture(source, reading.tell)
            capture.sweep(ABANDONED)
            try:
                with reading:
                    if mode == "SNAPSHOT":
                        reading.tell("copy")
                    landing = read(capture, source)
                if landing.tables:
                    self._began(name, mode)
                landing, moved = self._brought(source, capture, landing, leases)
                if landing.keep_position:
                    with stage_told(self.events, name, "publish"):
                        self._publish(before, source, landing, moved, leases())
                result = _result(name, landing, moved, time.perf_counter() - begin)
                if landing.tables:  # at once: whoever waits for the rows need not wait until the source has let go
                    told = (result.inserted, result.deleted, result.seconds)
                    self._ended(RefreshFinished(name, mode, *told))
            except BaseException as error:
                self.catalog.reset_staging(stored, held=leases())
                if isinstance(error, HeadraceError):
                    self._failed(before, error)
                    if (
                        isinstance(capture, NodesCapture)
                        and error in capture.held.values()
                        and source.options == before.options  # else the nodes are not those of the source as it stays
                    ):
                        self._note_nodes(before, capture.held, landed=False)
                raise
            finally:
                capture.clear()
            self._note_nodes(before, landing.held)
            if landing.keep_position:
                with suppress(EnvironmentFault):  # it is published; the next landing acknowledges it
                    capture.acknowledge(landing.position)
                for notice in landing.notices:
                    self.events.emit(Notice(notice))
        self.told.pop(name, None)
        self.landings[name] = self.landings.get(name, 0) + bool(landing.tables)
        self._read_all_after(name, *landing.held.values())
        if before.failure is not None and before.failure.over is None:
            with suppress(HeadraceError):  # what is landed is landed
                self.catalog.end_source_failure(name)
        return replace(result, seconds=time.perf_counter() - begin)

    def _failed(self, source: DatabaseSource, error: HeadraceError) -> None:
        """Say so, unless it was said, and stop the source where changes may have been missed."""
        name, failure = source.name, (error.code, error.message)
        if failure not in (self.told.get(name), *(self.told.get(f"{name}/{node}") for node in source.node_failures)):
            self._ended(RefreshFailed(name, *failure))
        self.told[name] = failure
        with suppress(HeadraceError):  # the failure itself is told, whatever becomes of the note
            self.catalog.note_source_failure(name, error)
        self._read_all_after(name, error)
        if error.code in kind_of(source.kind).stopping and self.source(name).position == source.position:
            # else another process, which has our lease by now, went on: that the slot was moved is its doing
            self.catalog.set_source_status(name, SourceStatus.STOPPED, error.code, error.message)

    def _read_all_after(self, name: str, *errors: HeadraceError) -> None:
        """Have the next landing read all there is where a key was on two nodes.

        A row that moves is whole then.
        """
        if any(error.code == KEY_ON_TWO_NODES for error in errors):
            self.landings[name] = UNLIMITED

    def _note_nodes(self, source: DatabaseSource, held: Mapping[str, HeadraceError], *, landed: bool = True) -> None:
        """Report, once, nodes of which nothing was landed, and note those that are landed again.

        Where nothing was landed of any, nothing was written either: whether a key is on two nodes shows only then.
        """
        over = [
            node
            for node, failure in source.node_failures.items()
            if failure.over is None and node not in held and (landed or failure.code != KEY_ON_TWO_NODES)
        ]
        for node in over:
            self.told.pop(f"{source.name}/{node}", None)
        for node, error in held.items():
            failure = (error.code, error.message)
            if failure not in (self.told.get(f"{source.name}/{node}"), self.told.get(source.name)):
                self._ended(RefreshFailed(source.name, *failure))
            self.told[f"{source.name}/{node}"] = failure
        if held or over:
            with suppress(HeadraceError):  # what is landed is landed
                self.catalog.note_node_failures(source.name, held, over)

    def _refuse_foreign(self, source: DatabaseSource, stored: Sequence[TableName]) -> None:
        """Refuse a change to mirrors that another writer has changed since the last landing."""
        if foreign := self.catalog.foreign_writes(stored):
            what = "was dropped" if foreign[0].found is None else "was written"
            raise EnvironmentFault(
                "FOREIGN_WRITER",
                f"Mirror {foreign[0].name} {what} by somebody else since Headrace published it; nothing was landed.",
                hint=f"`headrace repair {foreign[0].name}` brings back what was published; mirrors are Headrace's to "
                "write.",
            )

    def _brought(
        self, source: DatabaseSource, capture: Capture, landing: Landing, leases: Held
    ) -> tuple[Landing, dict[TableName, Moved]]:
        """Write a landing, without the nodes that add a key which another one has."""
        while landing.tables:
            try:
                return landing, self._bring(source, landing)
            except KeyOnTwoNodes as error:
                if not isinstance(capture, NodesCapture):
                    raise error.fault from error
                landing = capture.without(error.node, error.fault)
                self.catalog.reset_staging([t for m in source.mirrors for t in m.stored], held=leases())
        return landing, {}

    def _bring(self, source: DatabaseSource, landing: Landing) -> dict[TableName, Moved]:
        """Write every mirror of a landing in parallel.

        Commits wait more for files and locks than they compute.
        """
        mirrors = {m.name: m for m in source.mirrors}
        newest = self.catalog.newest_versions()
        read = self._read_by()
        runner = self.session.runner().under(STRICT)
        self._make_missing(landing.tables, mirrors, runner)
        parts: dict[TableName, list[LandedTable]] = {}
        for landed in landing.tables:
            parts.setdefault(landed.name, []).append(landed)

        base = last_of(source.position)
        ids = {name: OperationIds(base + 1 + place, len(parts)) for place, name in enumerate(parts)}

        def one(name: TableName) -> Moved:
            known = newest.get(name)
            version = 0 if known is None else known.version + 1
            before = {table: untouched(self.catalog, table) for table in mirrors[name].stored}
            hand, shared = self._handing(name, version, runner, read), landing.shared_keys.get(name)
            bringing = Mirroring(mirrors[name], version, runner, self._staged, before, ids[name], hand, shared)
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

    def _publish(
        self,
        before: DatabaseSource,
        source: DatabaseSource,
        landing: Landing,
        moved: Mapping[TableName, Moved],
        leases: tuple[Lease, ...],
    ) -> None:
        newest = self.catalog.newest_versions()
        lake = self.catalog.pointers(LAKE, [t for m in moved.values() for t in m.written])
        swaps, versions = [], []
        for name, of in moved.items():
            swaps += [
                Swap(t, lake[t].metadata_location if t in lake else None, staged=meta.metadata_location)
                for t, meta in of.written.items()
            ]
            if of.changed:
                meta, known = of.written[name], newest.get(name)
                number = 0 if known is None else known.version + 1
                versions.append(NewVersion(name, number, meta.current_snapshot_id, meta.row_count, meta.uuid))
        reached = {n: v.version for n, v in newest.items()} | {v.relation: v.version for v in versions}
        mirrors = _mirrors(source, landing, reached)
        adds = tuple(m for m in source.mirrors if m not in before.mirrors)
        options = source.options if source.options != before.options else None
        last = max((last_of(before.position), *(of.operation for of in moved.values())))
        position = {**landing.position, OP: last}
        move = SourceMove(source.name, before.position, position, mirrors, landing.begins, options, adds)
        publication = Publication(swaps=tuple(swaps), versions=tuple(versions), sources=(move,), leases=leases)
        self.catalog.publish_or_settle(publication)

    # ---- stored tables

    def _make_missing(self, tables: Iterable[LandedTable], mirrors: Mapping[TableName, Mirror], runner: Runner) -> None:
        for landed in tables:
            mirror = mirrors[landed.name]
            if self.catalog.pointers(STAGING, [mirror.name.within(STAGING)]):
                continue
            suffix = mirror.log.table.removesuffix("_log").rpartition("_")[2]
            for namespace in (mirror.name.namespace, (SYSTEM_NAMESPACE,)):
                runner.run(create_namespace(STAGING, namespace))
            state, log = (t.within(STAGING) for t in mirror.stored)
            for table, make in ((state, create_table), (log, partial(create_log, numbered=True))):
                location = table_location(self.warehouse, table, suffix)
                runner.run(make(table, landed.columns, location=location, format_version=self.format_version))

    def _staged(self, table: TableName) -> TableMeta:
        return staged(self.catalog, table)


def source_resource(name: str) -> str:
    """Return the lease resource of a source."""
    return f"source:{name}"


def not_active(source: DatabaseSource, hint: str) -> UserError:
    """Return the error for what can only be done while a source is landed."""
    return UserError(
        "SOURCE_NOT_ACTIVE", f"Source {source.name} is {source.status.value}, so that nothing is landed.", hint=hint
    )


def resources_of(source: DatabaseSource) -> list[str]:
    """Return the leases needed to change a source or its mirrors."""
    return [source_resource(source.name), *(resource_of(t) for m in source.mirrors for t in m.stored)]


def _mirrors(source: DatabaseSource, landing: Landing, reached: Mapping[TableName, int]) -> tuple[Mirror, ...]:
    """Return mirrors whose details change with a landing; `reached` has their versions after it."""
    landed = {t.name: t for t in landing.tables if t.replaced or t.reshaped}
    changed = []
    for mirror in source.mirrors:
        if mirror.name in landed:
            details = {**landed[mirror.name].details, "key_since": reached.get(mirror.name, 0)}
            now = replace(mirror, details=details, gone=mirror.name in landing.gone)
            if mirror.details is not None and mirror.key == now.key:
                details["key_since"] = mirror.key_since
            changed.append(now)
        elif mirror.name in landing.gone:
            changed.append(replace(mirror, gone=True))
    return tuple(changed)


def _result(name: str, landing: Landing, moved: Mapping[TableName, Moved], seconds: float) -> LandingResult:
    return LandingResult(
        source=name,
        transactions=landing.transactions,
        rows=landing.rows,
        inserted=sum(m.inserted for m in moved.values()),
        deleted=sum(m.deleted for m in moved.values()),
        mirrors=tuple(sorted(str(n) for n, m in moved.items() if m.changed)),
        caught_up=landing.caught_up,
        seconds=seconds,
        held={node: f"[{error.code}] {error.message}" for node, error in landing.held.items()},
    )
