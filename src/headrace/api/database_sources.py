"""Database sources for users: `hr.sources`. A verb each, like those of `Headrace`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from headrace.catalog import Catalog, DatabaseSource, SourceStatus
from headrace.errors import HeadraceError
from headrace.graph.dag import Dag
from headrace.landing.resting_nodes import RestingNodes
from headrace.landing.source_watch import SourceWatch
from headrace.names import LAKE, TableName
from headrace.results.source_results import LandingResult, LastError, SourceCheck, SourceHealth, SourceInfo
from headrace.sources.interruption import side_by_side
from headrace.sources.registry import KINDS, kind_of, nodes_kind_of
from headrace.sources.source_kind import HealthLine, SourceRequest, Tables, Told

if TYPE_CHECKING:
    from headrace.api.session import LazySpark
    from headrace.config import Settings
    from headrace.events import Events
    from headrace.landing.lander import Lander
    from headrace.physical.shared_changes import SharedChanges
    from headrace.project.declared_sources import SourceStep
    from headrace.sources.capture import Capture

DEFAULT_KIND = KINDS[0].name

Address = str | Sequence[str | Mapping[str, str]] | Mapping[str, str | Mapping[str, str]]
"""A connection string; or several, of shards, by name or not."""

Using = Callable[[], AbstractContextManager[object]]
"""A context that is entered while Spark is used."""

AT_ONCE = 4
"""Sources that are landed side by side where all are; each uses a few of the catalog's 15 connections."""

PATIENCE_SECONDS = 60.0
"""Seconds to wait for others who land the same source, as `headrace run` nearly always does."""


class Sources:
    """The database sources of a project.

    Args:
        catalog: The catalog.
        lazy: Gives the Spark session.
        events: Told what happens.
        settings: Where everything is.
        changes: Gives what keeps small changes for those who read mirrors.
    """

    def __init__(
        self,
        catalog: Catalog,
        lazy: LazySpark,
        events: Events,
        settings: Settings,
        changes: Callable[[], SharedChanges] | None = None,
    ) -> None:
        self._catalog = catalog
        self._lazy = lazy
        self._events = events
        self._settings = settings
        self._changes = changes
        self._told: dict[str, tuple[str, str]] = {}
        self._landings: dict[str, int] = {}
        self._rests = RestingNodes()
        self._watch = SourceWatch(catalog, events, self._capture)

    def create(
        self,
        name: str,
        url: Address,
        tables: Tables,
        *,
        text_columns: Sequence[str] = (),
        capture: str | None = None,
        failover: bool = False,
        shard_column: str | None = None,
        availability: str | None = None,
        same_key: str | None = None,
        if_not_exists: bool = False,
        kind: str = DEFAULT_KIND,
        options: Mapping[str, object] | None = None,
    ) -> LandingResult | None:
        """Capture tables of a database, and mirror them in the lake.

        Args:
            name: The source; its mirrors are `name.table`.
            url: `postgresql://user@host:port/database`, the password from `PGPASSWORD` or `~/.pgpass`; or `env:NAME`
                for a URL, with a password or without, in an environment variable that is set wherever Headrace runs.
                Of several servers that have shards of the tables: a list of such URLs, or names of the shards mapped
                to them (or to tables with `url` and `capture`).
            tables: `schema.table [COLUMNS (…)] [WHERE (…)] [AS mirror]` of each table, names and condition as
                PostgreSQL writes them; or the names of the mirrors mapped to them.
            text_columns: Columns to keep as text, whatever their type, as `schema.table.column`.
            capture: `wal`, from the write-ahead log; `trigger`, by triggers on the tables; or `auto`, by triggers until
                the log can be used. The documentation says when to choose which; None for `wal`.
            failover: Replicas keep the slot in step (PostgreSQL 17 and newer), and landing goes on by itself where one
                is promoted that has all that was landed.
            shard_column: Of shards: the column of the mirrors that says of which shard a row is; None for `__shard`.
            availability: Of shards: `partial`, a server that is down holds back itself; or `strict`, all of them.
            same_key: Of shards: `error`, a key is on one server only; or `allowed`, the shard is part of the key.
            if_not_exists: Do nothing when it exists.
            kind: What kind of database. What is said here of the other arguments is said of PostgreSQL.
            options: Whatever else the kind wants to know.

        Returns:
            The first landing, or None when there was nothing to do.

        Raises:
            HeadraceError: It cannot be captured; nothing is left behind then. Only where the server cannot be reached
                any more, the source stays, stopped, to be dropped.
        """
        with self._catalog.reading() as reader:
            if if_not_exists and reader.find_source(name) is not None:
                return None
        said = _said(text_columns=text_columns, capture=capture, failover=failover)
        said |= _said(shard_column=shard_column, availability=availability, same_key=same_key)
        of = kind_of(kind)
        kept = of.options(name, _request(url, tables, {**said, **(options or {})}))
        return self._lander().create(name, kind, kept, of.mirror_names(tables))

    def apply(self, *, prune: bool = False, dry_run: bool = False) -> tuple[SourceStep, ...]:
        """Make the sources as `headrace.toml` declares: create missing ones, add tables.

        Args:
            prune: Drop tables that are not declared; sources that are not declared are left alone in any case.
            dry_run: Only say what would be done.

        Returns:
            What was (or would be) done, in order.

        Raises:
            HeadraceError: `SOURCE_DIFFERS` before anything is done; or the first failure, what was done before stays.
        """
        from headrace.project.declared_sources import request_of, steps

        declared = self._settings.sources
        planned = steps(declared, self._all(), prune=prune)
        for step in () if dry_run else planned:
            kind, wanted = request_of(declared[step.source])
            if step.action == "create":
                self.create(step.source, wanted.address, wanted.tables, kind=kind.name, options=wanted.options)
            elif step.action == "add tables":
                self._add_tables(step.source, step.tables, kind.said_of(step.tables, wanted.options))
            elif step.action == "drop tables":
                self.drop_tables(step.source, step.tables)
        return planned

    def drop(self, name: str, *, if_exists: bool = False, force: bool = False) -> tuple[str, ...]:
        """Drop a source, its mirrors, and what was installed on its server.

        Args:
            name: The source.
            if_exists: No error when there is none.
            force: Also when the server cannot be reached; slot and publication stay there then.

        Returns:
            The mirrors that were dropped.

        Raises:
            UserError: `SOURCE_UNKNOWN`, `HAS_CONSUMERS`.
        """
        with self._catalog.reading() as reader:
            if if_exists and reader.find_source(name) is None:
                return ()
        return tuple(str(n) for n in self._lander().drop(name, force=force))

    def add_tables(self, name: str, tables: Tables, *, text_columns: Sequence[str] = ()) -> LandingResult:
        """Capture further tables of a source; publish old and new ones at one cut.

        Args:
            name: The source.
            tables: As for `create`.
            text_columns: As for `create`, of the new tables.

        Returns:
            The landing that brought them.

        Raises:
            HeadraceError: They cannot be captured; the source stays as it is.
        """
        return self._add_tables(name, tables, _said(text_columns=text_columns))

    def drop_tables(self, name: str, tables: Sequence[str]) -> tuple[str, ...]:
        """Take tables out of a source; their mirrors are dropped, the other ones go on.

        Args:
            name: The source.
            tables: Their mirrors (`mirror` or `source.mirror`), or the tables as they were named when they were added.

        Returns:
            The mirrors that were dropped.

        Raises:
            UserError: `SOURCE_UNKNOWN`, `SOURCE_TABLE_UNKNOWN`, `HAS_CONSUMERS`, `SOURCE_WITHOUT_TABLES`.
        """
        from headrace.landing.captured_tables import drop_tables

        kind, mirrors = kind_of(self._catalog.source(name).kind), self._mirrors(name, tables)
        own = [m.table for m in mirrors]
        dropped = drop_tables(self._lander(), name, lambda options: kind.without_tables(options, own), mirrors)
        return tuple(map(str, dropped))

    def add_shard(self, name: str, url: str, *, shard: str | None = None, capture: str | None = None) -> LandingResult:
        """Add a server to a source with shards; its rows join those of the others in the mirrors.

        Args:
            name: The source.
            url: The server; see `create`.
            shard: What the shard column has for its rows; None for a number.
            capture: As for `create`; None as the others.

        Raises:
            HeadraceError: It cannot be added; the source stays as it is.
        """
        said = _said(url=url, name=shard, capture=capture)
        return self.add_node(name, said)

    def add_node(self, name: str, node: object) -> LandingResult:
        """Add a node to a source, as its kind names nodes; `add_shard` is for people."""
        from headrace.landing.captured_nodes import add_node

        kind = nodes_kind_of(self._catalog.source(name).kind)
        return add_node(self._lander(), name, lambda options: kind.with_node(name, options, node))

    def drop_shard(self, name: str, shard: str) -> LandingResult:
        """Take a server out of a source with shards; its rows leave the mirrors.

        Args:
            name: The source.
            shard: The shard.

        Raises:
            HeadraceError: `SHARD_UNKNOWN` and the like; the source stays as it is.
        """
        from headrace.landing.captured_nodes import drop_node

        kind = nodes_kind_of(self._catalog.source(name).kind)
        return drop_node(self._lander(), name, lambda options: kind.without_node(name, options, shard), shard)

    def move_shard(self, name: str, shard: str, url: str) -> LandingResult:
        """Go on with a shard on another server; stream tables receive the difference only.

        Args:
            name: The source.
            shard: The shard.
            url: The server; see `create`.

        Raises:
            HeadraceError: `SHARD_UNKNOWN` and the like; the source stays as it is.
        """
        from headrace.landing.captured_nodes import move_node

        kind = nodes_kind_of(self._catalog.source(name).kind)
        return move_node(self._lander(), name, lambda options: kind.moved_node(name, options, shard, url), shard)

    def land(self, name: str | None = None) -> tuple[LandingResult, ...]:
        """Land what was committed since the last time; refreshing does it by itself.

        Args:
            name: One source; all that are not on hold when None.

        Raises:
            HeadraceError: The first failure, after the other sources were landed.
        """
        names = [name] if name is not None else [s.name for s in self._all() if s.status is not SourceStatus.PAUSED]
        results, error = self._land(names)
        if error is not None:
            raise error
        return results

    def land_for(
        self, tables: Iterable[TableName] | None, *, until: threading.Event | None = None
    ) -> HeadraceError | None:
        """Land the sources that stream tables read, at any distance.

        One whose first snapshot is being taken, mostly by another process, is nothing to land yet.

        Args:
            tables: The stream tables; None for all sources. Those that are stopped fail, the others are landed.
            until: Set to have it stop as soon as what it has begun is whole. Who gives it comes again, and so waits
                for nobody else who lands the same source.

        Returns:
            The first failure; mirrors stay at their last cut then, which is consistent.
        """
        sources = tuple(s for s in self.due() if s.status is not SourceStatus.NEW)
        if sources and tables is not None:
            read = self._read_by(tables)
            sources = tuple(s for s in sources if any(m.name in read for m in s.mirrors))
        return self._land([s.name for s in sources], until)[1]

    def due(self) -> tuple[DatabaseSource, ...]:
        """Return the sources that are landed, or only watched, though nobody names them."""
        return self._all()

    def land_due(self, name: str, until: threading.Event, using: Using) -> None:
        """Land a source, unless it is not to be landed any more.

        One that is stopped was told of when it stopped, and is only watched; so is one whose first snapshot was not
        landed.

        Args:
            name: The source.
            until: As for `land_for`.
            using: Entered while Spark is used.

        Raises:
            HeadraceError: It could not be landed; its mirrors stay at their last cut.
        """
        with self._catalog.reading() as reader:
            source = reader.find_source(name)
        if source is None:
            return
        if source.status in (SourceStatus.NEW, SourceStatus.STOPPED):
            self._watch.landed(name, None)
            return
        failure = self._land([name], until, using)[1]
        if failure is not None:
            raise failure

    def resnapshot(self, name: str, tables: Sequence[str] = (), *, shards: Sequence[str] = ()) -> LandingResult:
        """Copy a source, or some tables, anew; stream tables receive the difference only.

        Args:
            name: The source.
            tables: As for `drop_tables`; none for all. The other ones go on, and all are published at one cut.
            shards: Of a source with shards, those that are copied; none for all.

        Raises:
            HeadraceError: It could not; the mirrors stay as they are, and an active source goes on. The old slot of a
                stopped one may be gone then, so that nothing is landed before another new snapshot succeeds.
        """
        if shards:
            source = self._catalog.source(name)
            nodes_kind_of(source.kind).require_nodes(name, source.options, shards)
        return self._lander().resnapshot(name, self._mirrors(name, tables), shards)

    def pause(self, name: str) -> None:
        """Land nothing until `resume`; the server keeps write-ahead log meanwhile.

        Raises:
            UserError: `SOURCE_NOT_ACTIVE`.
        """
        self._catalog.pause_source(name)

    def resume(self, name: str) -> None:
        """End a pause; a source that is stopped needs a new snapshot instead.

        Raises:
            UserError: `SOURCE_NOT_PAUSED`.
        """
        self._catalog.resume_source(name)

    def list(self) -> tuple[SourceInfo, ...]:
        """Return all sources; reads the catalog only."""
        return tuple(_info(source) for source in self._all())

    def status(self, name: str) -> SourceHealth:
        """Return where a source stands, as its server tells.

        Raises:
            UserError: `SOURCE_UNKNOWN`.
            EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
        """
        source = self._catalog.source(name)
        found = kind_of(source.kind).health(source, self._folder(name))
        if found.look is not None:
            self._watch.seen(source, found.look)
        return SourceHealth(
            name=name,
            status=source.status,
            figures=found.figures,
            lines=(*found.lines, *_left_lines(source)),
            landed_at=source.landed_at,
            stopped_reason=source.stopped_reason,
            last_error=LastError.of(source.failure),
        )

    def check(
        self, url: Address, tables: Tables, *, capture: str | None = None, kind: str = DEFAULT_KIND
    ) -> tuple[SourceCheck, ...]:
        """Check whether a server's tables can be captured, and what to run there; changes nothing.

        Args:
            url: The server; see `create`.
            tables: As for `create`.
            capture: As for `create`.
            kind: As for `create`.
        """
        found = kind_of(kind).check(_request(url, tables, _said(capture=capture)))
        return tuple(SourceCheck(c.name, c.ok, c.finding, None if c.ok else c.remedy) for c in found)

    # ---- inside

    def _add_tables(self, name: str, tables: Tables, said: Mapping[str, object]) -> LandingResult:
        from headrace.landing.captured_tables import add_tables

        kind = kind_of(self._catalog.source(name).kind)
        names = kind.mirror_names(tables)
        return add_tables(self._lander(), name, lambda options: kind.with_tables(options, tables, said), names)

    def _mirrors(self, name: str, tables: Sequence[str]) -> tuple[TableName, ...]:
        source = self._catalog.source(name)
        named = kind_of(source.kind).named_mirrors(source, tables)
        return tuple(TableName(LAKE, (name,), mirror) for mirror in named)

    def _all(self) -> tuple[DatabaseSource, ...]:
        with self._catalog.reading() as reader:
            return reader.sources()

    def _land(
        self, names: Sequence[str], until: threading.Event | None = None, using: Using = nullcontext
    ) -> tuple[tuple[LandingResult, ...], HeadraceError | None]:
        """Land sources side by side; return results and the first failure in the order of the names."""
        stop = threading.Event() if until is None else until
        lander = self._lander(PATIENCE_SECONDS if until is None else 0.0, using)
        for name in names if until is None else ():
            self._rests.wake(name)

        def land(name: str) -> tuple[tuple[LandingResult, ...], HeadraceError | None]:
            results: tuple[LandingResult, ...] = ()
            failure: HeadraceError | None = None
            if not stop.is_set():
                try:
                    results = lander.land(name, stop)
                except HeadraceError as error:
                    failure = error
                self._watch.landed(name, failure)
            return results, failure

        if len(names) > 1:  # one alone is landed in this thread
            self._lazy.adopt()
            landed = side_by_side(land, names, AT_ONCE, stop)
        else:
            landed = {name: land(name) for name in names}
        found = [landed[name] for name in names]
        return sum((results for results, _ in found), ()), next((failure for _, failure in found if failure), None)

    def _read_by(self, tables: Iterable[TableName]) -> set[TableName]:
        dag = Dag(self._catalog.dependencies())
        return set(dag.upstream(*(name for name in tables if name in dag)))

    def _lander(self, patience: float = PATIENCE_SECONDS, using: Using = nullcontext) -> Lander:
        from headrace.api.schedules.project_defaults import defaults_of
        from headrace.landing.lander import Lander
        from headrace.landing.mirror_writer import MirrorWriter

        of = self._settings
        writer = MirrorWriter(
            self._catalog,
            self._lazy,
            self._events,
            of.warehouse,
            of.format_version,
            changes=self._changes,
            defaults=defaults_of(of),
        )
        return Lander(
            self._catalog,
            self._events,
            self._capture,
            writer,
            self._told,
            self._landings,
            self._rests,
            patience=patience,
            using=using,
        )

    def _folder(self, name: str) -> str:
        """Return where landings of a source have their folders."""
        return f"{self._settings.warehouse.rstrip('/')}/_headrace/landing/{name}"

    def _capture(self, source: DatabaseSource, told: Told) -> Capture:
        landings = self._landings.get(source.name, 0)
        return kind_of(source.kind).open_capture(source, self._folder(source.name), told, landings)


def _said(**options: object) -> dict[str, object]:
    """Return what was said of a source; the kind decides the rest."""
    return {name: value for name, value in options.items() if value}


def _request(url: Address, tables: Tables, said: Mapping[str, object]) -> SourceRequest:
    """Return what a user asks for, of one server or of shards."""
    if isinstance(url, str):
        return SourceRequest(url, tables, said)
    return SourceRequest("", tables, {**said, "shards": url})


def _left_lines(source: DatabaseSource) -> Iterator[HealthLine]:
    from headrace.landing.left_captures import left_captures

    for slot, of in left_captures(source).items():
        yield HealthLine("Left over", f"{slot} of shard {of['node']} at {of['options']['url']}, to be removed")


def _info(source: DatabaseSource) -> SourceInfo:
    kind = kind_of(source.kind)
    return SourceInfo(
        name=source.name,
        kind=source.kind,
        url=kind.address(source.options),
        status=source.status,
        mirrors=tuple(str(m.name) for m in source.mirrors),
        gone=tuple(str(m.name) for m in source.mirrors if m.gone),
        follows=dict(kind.followed(source)),
        position=kind.position_text(source.position),
        landed_at=source.landed_at,
        stopped_reason=source.stopped_reason,
    )
