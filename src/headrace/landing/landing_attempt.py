"""Makes one landing: reads, writes mirrors, publishes, acknowledges; or notes why it failed.

All mirrors of a source that a landing changes are published in one transaction with the source's position, so that they
always show one cut of the database, and a crash at any point repeats a landing or finds it done.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from headrace.catalog import (
    Catalog,
    DatabaseSource,
    Lease,
    Mirror,
    NewVersion,
    Publication,
    SourceMove,
    SourceStatus,
    Swap,
)
from headrace.errors import EnvironmentFault, HeadraceError
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
from headrace.landing.durable_tables import make_durable
from headrace.landing.mirror_writer import MirrorWriter
from headrace.landing.mirrors import Moved
from headrace.landing.operation_ids import OP, last_of
from headrace.landing.resting_nodes import RestingNodes
from headrace.landing.shared_keys import KEY_ON_TWO_NODES, KeyOnTwoNodes
from headrace.landing.source_leases import resources_of
from headrace.names import LAKE, TableName
from headrace.refresh.held_leases import Held, holding_leases
from headrace.results.source_results import LandingResult
from headrace.sources.capture import Capture, Landing
from headrace.sources.interruption import is_interrupted
from headrace.sources.nodes.nodes_capture import NodesCapture
from headrace.sources.registry import kind_of
from headrace.sources.source_kind import Told

UNLIMITED = -1
"""In place of the number of landings of a source: this one has all that there is."""

LAND = "LAND"
"""The mode of a landing that takes no snapshot."""

ABANDONED = dt.timedelta(days=1)
"""Files of a landing to which so long nothing was added are nobody's: its process ended, or lost its lease."""

Open = Callable[[DatabaseSource, Told], Capture]
"""Opens the capture of a source, which tells how far it is."""

Read = Callable[[Capture, DatabaseSource], Landing]
"""Reads what is landed."""

Become = Callable[[DatabaseSource], DatabaseSource]
"""Gives a source the options and mirrors that it has once a landing is published."""


class LandingAttempts:
    """Makes landings, one attempt at a time.

    Args:
        catalog: The catalog.
        events: Told what happens.
        open_capture: Opens captures.
        writer: Writes mirrors.
        told: Code and message of the failure that was told last, by source; kept by the caller, so that a source that
            fails at every attempt is told of once.
        landings: How many landings were published, by source; kept by the caller, who opens captures by it.
        rests: Nodes that are not read for a while; kept by the caller.
        patience: Seconds to wait for others who land, or drop, the same source.
        using: Entered while Spark is used.
    """

    def __init__(
        self,
        catalog: Catalog,
        events: Events,
        open_capture: Open,
        writer: MirrorWriter,
        told: MutableMapping[str, tuple[str, str]],
        landings: MutableMapping[str, int],
        rests: RestingNodes,
        patience: float,
        using: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.catalog = catalog
        self.events = events
        self.open_capture = open_capture
        self.writer = writer
        self.told = told
        self.landings = landings
        self.rests = rests
        self.patience = patience
        self.using = using
        self._under_way: set[str] = set()

    def land(self, name: str) -> LandingResult:
        """Land what was committed since the last landing, or the first part of it."""
        return self._landed(name, lambda capture, source: capture.land(source.position or {}), LAND)

    def renew(self, name: str, read: Read, become: Become) -> LandingResult:
        """Land new snapshots of some tables of a source.

        Args:
            name: The source.
            read: Reads what is landed.
            become: Gives the source with the options and mirrors that it has from then on.
        """
        self._began(name, "SNAPSHOT")
        return self._landed(name, read, "SNAPSHOT", become)

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
        with holding_leases(
            self.catalog,
            resources_of(become(self.catalog.source(name))),
            patience=self.patience,
            given_up=is_interrupted,
        ) as leases:
            before = self.catalog.source(name)  # once more: another process may have landed meanwhile
            source = become(before)
            stored = [t for m in source.mirrors for t in m.stored]
            self._refuse_foreign(source, [t for m in source.mirrors if not _is_anew(m, before) for t in m.stored])
            self.catalog.reset_staging(stored, held=leases())
            reading = StagesTold(self.events, name)
            capture = self._opened(source, reading.tell, mode)
            capture.sweep(ABANDONED)
            try:
                with reading:
                    if mode == "SNAPSHOT":
                        reading.tell("copy")
                    landing = read(capture, source)
                if landing.tables:
                    self._began(name, mode)
                landing, moved = self._brought(source, capture, landing, leases)
                if is_interrupted():  # whoever interrupted it is told that nothing was published
                    raise KeyboardInterrupt
                if landing.keep_position:
                    with stage_told(self.events, name, "publish"):
                        self._publish(before, source, landing, moved, leases())
                result = _result(name, landing, moved, time.perf_counter() - begin)
                if landing.tables:  # at once: whoever waits for the rows need not wait until the source has let go
                    told = (result.inserted, result.deleted, result.seconds)
                    self._ended(RefreshFinished(name, mode, *told))
            except BaseException as error:
                self.catalog.reset_staging(stored, held=leases())
                if isinstance(error, HeadraceError) and not is_interrupted():
                    self._failed(before, error)
                    if (
                        isinstance(capture, NodesCapture)
                        and error in capture.held.values()
                        and source.options == before.options  # else the nodes are not those of the source as it stays
                    ):
                        took = time.perf_counter() - begin
                        self.rests.note(name, capture.held, capture.resting, took, landed=False)
                        self._note_nodes(before, capture.held, capture.resting, landed=False)
                raise
            finally:
                capture.clear()
            rested = capture.resting if isinstance(capture, NodesCapture) else {}
            if isinstance(capture, NodesCapture):
                self.rests.note(name, landing.held, rested, time.perf_counter() - begin)
            self._note_nodes(before, landing.held, rested)
            if landing.keep_position:
                with suppress(EnvironmentFault):  # it is published; the next landing acknowledges it
                    capture.acknowledge(landing.position)
                for notice in landing.notices:
                    self.events.emit(Notice(notice))
        self.told.pop(name, None)
        self.landings[name] = self.landings.get(name, 0) + bool(landing.tables)
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
        if error.code in kind_of(source.kind).stopping and self.catalog.source(name).position == source.position:
            # else another process, which has our lease by now, went on: that the slot was moved is its doing
            self.catalog.set_source_status(name, SourceStatus.STOPPED, error.code, error.message)

    def _opened(self, source: DatabaseSource, told: Told, mode: str) -> Capture:
        """Open the capture of a source, which leaves out the nodes that rest."""
        name, landings = source.name, self.landings.get(source.name, 0)
        if mode == LAND and self.rests.read_all(name):
            self.landings[name] = UNLIMITED
        try:
            capture = self.open_capture(source, told)
        finally:
            self.landings[name] = landings
        if mode == LAND and isinstance(capture, NodesCapture):
            capture.resting = self.rests.of(name, capture.nodes, strict=capture.strict)
        return capture

    def _note_nodes(
        self,
        source: DatabaseSource,
        held: Mapping[str, HeadraceError],
        rested: Collection[str],
        *,
        landed: bool = True,
    ) -> None:
        """Report, once, nodes of which nothing was landed, and note those that are landed again.

        Where nothing was landed of any, nothing was written either: whether a key is on two nodes shows only then.
        A node that rests has not failed again: what is known of it is not written at each landing.
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
        news = {node: error for node, error in held.items() if node not in rested or not _is_noted(source, node, error)}
        if news or over:
            with suppress(HeadraceError):  # what is landed is landed
                self.catalog.note_node_failures(source.name, news, over)

    def _refuse_foreign(self, source: DatabaseSource, stored: Sequence[TableName]) -> None:
        """Refuse a change to mirrors that another writer has changed since the last landing."""
        if foreign := self.catalog.foreign_writes(stored):
            what = "was dropped" if foreign[0].found is None else "was written"
            mirrors = {t.within(LAKE): m.name for m in source.mirrors for t in m.stored}
            name = mirrors[foreign[0].name]
            part = f"Mirror {name}" if foreign[0].name == name else f"The change log of mirror {name}"
            raise EnvironmentFault(
                "FOREIGN_WRITER",
                f"{part} {what} by somebody else since Headrace published it; nothing was landed.",
                hint=f"`headrace repair {name}` brings back what was published; mirrors are Headrace's to write.",
            )

    def _brought(
        self, source: DatabaseSource, capture: Capture, landing: Landing, leases: Held
    ) -> tuple[Landing, dict[TableName, Moved]]:
        """Write a landing, without the nodes that add a key which another one has."""
        while landing.tables:
            try:
                with self.using():
                    return landing, self.writer.write(source, landing)
            except KeyOnTwoNodes as error:
                if not isinstance(capture, NodesCapture):
                    raise error.fault from error
                landing = capture.without(error.node, error.fault)
                self.catalog.reset_staging([t for m in source.mirrors for t in m.stored], held=leases())
        return landing, {}

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
            for t, meta in of.written.items():
                at = lake[t].metadata_location if t in lake else None
                swaps.append(Swap(t, at, staged=meta.metadata_location, overwrite_foreign=of.made))
            if of.changed:
                meta, last_version = of.written[name], newest.get(name)
                number = 0 if last_version is None else last_version.version + 1
                versions.append(NewVersion(name, number, meta.current_snapshot_id, meta.row_count, meta.uuid))
        reached = {n: v.version for n, v in newest.items()} | {v.relation: v.version for v in versions}
        mirrors = changed_mirrors(source, landing, reached)
        logs = {m.log for m in before.mirrors} - {m.log for m in source.mirrors}
        known = {m.name for m in before.mirrors}
        adds = tuple(m for m in source.mirrors if m.name not in known)
        options = source.options if source.options != before.options else None
        last = max((last_of(before.position), *(of.operation for of in moved.values())))
        position = {**landing.position, OP: last}
        move = SourceMove(source.name, before.position, position, mirrors, landing.begins, options, adds)
        publication = Publication(
            swaps=tuple(swaps), deletes=tuple(logs), versions=tuple(versions), sources=(move,), leases=leases
        )
        make_durable(lake, [table for of in moved.values() for table in of.written.items()])
        self.catalog.publish_or_settle(publication)


def _is_noted(source: DatabaseSource, node: str, error: HeadraceError) -> bool:
    """Return whether a source has a failure of a node as one that goes on."""
    known = source.node_failures.get(node)
    return known is not None and known.over is None and (known.code, known.message) == (error.code, error.message)


def _is_anew(mirror: Mirror, before: DatabaseSource) -> bool:
    """Return whether a mirror that a source had is made anew, with another change log."""
    return any(mirror.name == known.name and mirror.log != known.log for known in before.mirrors)


def changed_mirrors(source: DatabaseSource, landing: Landing, reached: Mapping[TableName, int]) -> tuple[Mirror, ...]:
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
