"""Lands database sources, as callers ask for it: create, land, take anew, drop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace

from headrace.catalog import Catalog, DatabaseSource, Mirror, Publication, SourceStatus
from headrace.errors import HeadraceError, UserError
from headrace.events import Events, Notice
from headrace.lake.tables import new_suffix, stored_names
from headrace.landing.landing_attempt import Become, LandingAttempts, Open, Read
from headrace.landing.left_captures import remove_under_lease
from headrace.landing.mirror_writer import MirrorWriter
from headrace.landing.resting_nodes import RestingNodes
from headrace.landing.source_leases import resources_of
from headrace.names import LAKE, TableName
from headrace.refresh.held_leases import holding_leases
from headrace.results.source_results import LandingResult
from headrace.sources.capture import Capture, Landing
from headrace.sources.nodes.nodes_capture import NodesCapture
from headrace.sources.registry import kind_of


def untold(_: str) -> None:
    """Tell nobody how far a capture is."""


class Lander:
    """Lands sources of one catalog.

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
        using: Entered while Spark is used: to write mirrors, not to read a server.
    """

    def __init__(
        self,
        catalog: Catalog,
        events: Events,
        open_capture: Open,
        writer: MirrorWriter,
        told: MutableMapping[str, tuple[str, str]],
        landings: MutableMapping[str, int] | None = None,
        rests: RestingNodes | None = None,
        patience: float = 0.0,
        using: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.catalog = catalog
        self.events = events
        self.open_capture = open_capture
        self.patience = patience
        published = {} if landings is None else landings
        resting = rests or RestingNodes()
        self._attempts = LandingAttempts(
            catalog, events, open_capture, writer, told, published, resting, patience, using
        )

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
        source = self.catalog.source(name)
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

    def make_anew(self, name: str, mirror: TableName) -> LandingResult:
        """Take a mirror anew into tables of its own, as nothing is left of those that it had.

        Args:
            name: The source; one that was stopped is taken anew as a whole.
            mirror: The mirror; nothing may point at its tables any more.

        Raises:
            UserError: `SOURCE_NOT_ACTIVE` where it is on hold.
        """
        source = self._not_on_hold(name, mirror)
        log = stored_names(mirror, new_suffix()).log.within(LAKE)

        def become(now: DatabaseSource) -> DatabaseSource:
            return replace(now, mirrors=tuple(replace(m, log=log) if m.name == mirror else m for m in now.mirrors))

        def read(capture: Capture, now: DatabaseSource) -> Landing:
            if source.status is SourceStatus.STOPPED or now.position is None:
                return capture.begin()
            return capture.renew(now.position, [mirror])

        return self.renew(name, read, become)

    def refuse_anew(self, name: str, mirror: TableName) -> None:
        """Refuse to take a mirror anew that cannot be, before what is left of it is taken away.

        Args:
            name: The source.
            mirror: The mirror.

        Raises:
            UserError: `SOURCE_NOT_ACTIVE` where it is on hold.
            EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
        """
        source = self._not_on_hold(name, mirror)
        kind_of(source.kind).look(source, landed=False)

    def _not_on_hold(self, name: str, mirror: TableName) -> DatabaseSource:
        source = self.catalog.source(name)
        if source.status is SourceStatus.PAUSED:
            raise not_active(source, f"Resume it (`headrace source resume {name}`), and repair {mirror} then.")
        return source

    def land(self, name: str, until: threading.Event | None = None) -> tuple[LandingResult, ...]:
        """Land what was committed since the last landing; return one result a publication.

        Nothing is landed of a source on hold.

        Args:
            name: The source.
            until: Set to have it stop after the publication that is under way.

        Raises:
            HeadraceError: Nothing more was published than what the results of earlier calls said.
        """
        source = self.catalog.source(name)
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
            results.append(self._attempts.land(name))
            if self.catalog.source(name).status is SourceStatus.PAUSED:
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
        source = self.catalog.source(name)
        own = {m.name for m in source.mirrors}
        self.refuse_read(name, own)
        with holding_leases(self.catalog, resources_of(source), patience=self.patience) as leases:
            capture = self.open_capture(source, untold)
            left = [*remove_under_lease(self.catalog, self.open_capture, source).values()]
            try:
                if left and not force:
                    raise left[0]
                capture.remove()
            except HeadraceError as error:  # also a connection string that is not set here
                if not force:
                    gone = f"If its server is gone for good: `headrace source drop {name} --force`."
                    error.hint = f"{error.hint or ''} {gone}".strip()
                    raise
            capture.sweep(None)
            stored = tuple(t for m in source.mirrors for t in m.stored)
            self.catalog.reset_staging(stored, held=leases())
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
        return self._attempts.renew(name, read, become)

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


def not_active(source: DatabaseSource, hint: str) -> UserError:
    """Return the error for what can only be done while a source is landed."""
    return UserError(
        "SOURCE_NOT_ACTIVE", f"Source {source.name} is {source.status.value}, so that nothing is landed.", hint=hint
    )
