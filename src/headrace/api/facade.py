"""What users import: `headrace.open()` and the `Headrace` object. Thin: every verb is one call into the engine."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from headrace import config
from headrace.catalog import Catalog, Status, StreamTable
from headrace.errors import HeadraceError, UserError
from headrace.events import Event, Events, Notice, fields_of, kind_of
from headrace.frontier import Frontier
from headrace.functions import FILE_NAME, Functions, declare
from headrace.graph.dag import Dag
from headrace.names import LAKE, STAGING, TableName, qualify, split_identifier
from headrace.observability import status as _status
from headrace.refresh import gather_facts
from headrace.results.refresh_results import (
    Explanation,
    FunctionInfo,
    HistoryRow,
    RefreshMode,
    RefreshResult,
    StreamTableInfo,
    Validation,
    VerifyResult,
)
from headrace.schedule import parse_schedule
from headrace.schedule.options import parse_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.api.database_sources import Sources
    from headrace.api.declared_keys import KeyInfo
    from headrace.api.running import DiamondGroup, LoggedEvent
    from headrace.api.safeguards.fuses import BlownFuse
    from headrace.api.safeguards.gates import GateInfo
    from headrace.api.safeguards.watermarks import WatermarkInfo
    from headrace.definitions.compiled_views import CompiledViews
    from headrace.functions import Function
    from headrace.refresh.cut.cut import Cut
    from headrace.refresh.definition.create import Creator
    from headrace.refresh.definition.source_keys import KnownKeys
    from headrace.refresh.groups.grouping import Grouping
    from headrace.refresh.maintenance import MaintenanceResult
    from headrace.refresh.refresher import Refresher
    from headrace.scheduler.work import RunSummary
    from headrace.spark.runner import SparkRunner
    from headrace.statements.grammar import Statement


T = TypeVar("T")

Names = list[str] | tuple[str, ...]
"""Several names; a type that a single `str` does not fit."""


def open(path_or_settings: str | Path | config.Settings = ".", *, spark: SparkSession | None = None) -> Headrace:
    """Open a project.

    Args:
        path_or_settings: The project folder (or its headrace.toml), or settings made by hand.
        spark: A session to use instead of starting one; it must have the catalogs `lake` and `staging`.

    A project's catalog must exist (`headrace init` makes it): an empty one in place of one that was lost would look
    like a project without stream tables. Settings made by hand name a catalog that is made when it is missing.

    Raises:
        UserError: `PROJECT_NOT_FOUND`, `CONFIG_INVALID`.
        EnvironmentFault: The catalog cannot be opened; `CATALOG_UNREACHABLE` when there is none.
    """
    if isinstance(path_or_settings, config.Settings):
        return Headrace(path_or_settings, spark=spark)
    return Headrace(config.load(path_or_settings), spark=spark, create=False)


class LazySpark:
    """The Spark session, started at first use; what the engine knows of it is the protocol `Session`."""

    def __init__(self, settings: config.Settings, events: Events, given: SparkSession | None) -> None:
        self._settings = settings
        self._functions = Functions(settings.root / FILE_NAME)
        self._events = events
        self._session = given
        self._checked = given is None
        self.owned = False
        self._runner: SparkRunner | None = None
        self._lock = threading.RLock()

    @property
    def started(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    def session(self) -> SparkSession:
        """The session; starts it."""
        with self._lock:
            from headrace.spark.session import check_session, open_session, running_session

            if self._session is not None and self._checked:
                return self._session
            functions = self._functions.now()  # first: what is wrong with them is known without Spark
            if self._session is None:
                self._session, self._checked = running_session(), False
            if self._session is None:
                self._session, self.owned = open_session(self._settings, self._events), True
            elif not self._checked and not self._settings.spark_remote:
                check_session(self._session, self._settings)
            self._checked = True
            self.runner().use(functions)
            return self._session

    def functions(self) -> Mapping[str, Function]:
        """The project's functions by name, as they are now; a session that runs has them, too."""
        with self._lock:
            found = self._functions.now()
            if self._session is not None and self._checked:
                self.runner().use(found)
            return found

    def register(self, function: Function) -> None:
        """Add a function, for as long as this object lives."""
        self._functions.register(function)
        self.functions()

    def runner(self) -> SparkRunner:
        """The runner over the session."""
        with self._lock:
            if self._runner is None:
                from headrace.spark.runner import SparkRunner

                self._runner = SparkRunner(self.session())
            return self._runner

    @property
    def restartable(self) -> bool:
        """Whether Spark was started here; over Spark Connect it is the server's."""
        return self.owned and not self._settings.spark_remote

    def restart(self) -> None:
        """End Spark, in whatever state it is, and start it anew; nothing may use it meanwhile."""
        from headrace.spark.end_session import end

        with self._lock:
            session, self._session, self._runner = self._session, None, None
            if session is not None:
                end(session)
            self.session()

    def stop(self) -> None:
        """Stop the session, if it was started here; its driver may be dead already."""
        from headrace.spark.end_session import stop

        with self._lock:
            if self.owned and self._session is not None:
                stop(self._session, remote=self._settings.spark_remote is not None)

    def namespace(self) -> tuple[str, ...]:
        """Current namespace in `lake`; empty when another catalog is current, or the session does not run."""
        if not self.started:
            return ()
        catalog = self.session().catalog
        if catalog.currentCatalog() != LAKE:
            return ()
        current = catalog.currentDatabase()
        return split_identifier(current) if current else ()

    def catalogs(self) -> frozenset[str]:
        """Catalogs configured in the session."""
        if not self.started:
            prefix = "spark.sql.catalog."
            given = {k[len(prefix) :] for k in self._settings.spark_options if k.startswith(prefix)}
            return frozenset({LAKE, STAGING} | {name for name in given if "." not in name})
        from headrace.spark.session import catalog_names

        return catalog_names(self.session())

    def location(self, name: TableName) -> str | None:
        """Newest metadata file of a table outside `lake`."""
        from headrace.sources.lakehouse.foreign_catalogs import metadata_location

        return metadata_location(self.runner(), name)


class Headrace:
    """A project: its catalog, its stream tables, and (when something needs it) its Spark session.

    Args:
        settings: Where everything is.
        spark: A session to use; one is started at first use otherwise.
        create: Make the catalog if there is none.

    Attributes:
        settings: Where everything is.
        events: Tells what happens; `events.subscribe(listener)`.
    """

    def __init__(self, settings: config.Settings, *, spark: SparkSession | None = None, create: bool = True) -> None:
        self.settings = settings
        self.events = Events()
        self._catalog = Catalog.open(settings.catalog_url, events=self.events, create=create)
        self._lazy = LazySpark(settings, self.events, spark)
        self._parts: tuple[CompiledViews, Refresher, Creator] | None = None
        self._hooks = ExitStack()

    def close(self) -> None:
        """Close the catalog and stop the Spark session, if this object started it."""
        self._hooks.close()
        self._catalog.close()
        if self._lazy.owned:
            self._lazy.stop()
        elif self._parts is not None:
            self._parts[1].changes.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spark(self) -> SparkSession:
        """The Spark session; the first use starts it."""
        return self._lazy.session()

    @cached_property
    def sources(self) -> Sources:
        """Databases whose tables are mirrored in the lake."""
        from headrace.api.database_sources import Sources

        return Sources(self._catalog, self._lazy, self.events, self.settings, lambda: self._engine()[1].changes)

    def _engine(self) -> tuple[CompiledViews, Refresher, Creator]:
        if self._parts is None:
            from headrace.api.running import defaults_of
            from headrace.definitions.compiled_views import CompiledViews
            from headrace.refresh.definition.create import Creator
            from headrace.refresh.refresher import Refresher

            plans = CompiledViews(self._lazy)
            defaults = defaults_of(self.settings)
            refresher = Refresher(self._catalog, self._lazy, plans, self.events, defaults=defaults)
            creator = Creator(
                self._catalog, self._lazy, plans, refresher, self.settings.warehouse, self.settings.format_version
            )
            self._parts = (plans, refresher, creator)
        return self._parts

    def _name(self, text: str) -> TableName:
        return self._names([text])[0]

    def _names(self, texts: Iterable[str]) -> list[TableName]:
        """Names in full; what the session says of them is asked once."""
        namespace, catalogs = self._lazy.namespace(), self._lazy.catalogs()
        return [qualify(split_identifier(text), namespace, catalogs) for text in texts]

    # ---- statements

    def sql(self, text: str) -> Any:
        """Run statements; those about stream tables here, every other one in Spark.

        Returns:
            The last statement's result: a DataFrame for Spark's, else what the method of that name returns.
        """
        last: Any = None
        for _, result in self.statements(text):
            last = result
        return last

    def statements(self, text: str) -> Iterator[tuple[Statement, Any]]:
        """Run a script statement by statement, yielding each with its result."""
        from headrace.statements.grammar import parse_script
        from headrace.statements.run_statement import run_statement

        for statement in parse_script(text):
            yield statement, run_statement(self, statement, text)

    # ---- definitions

    def create_stream_table(
        self,
        name: str,
        query: str,
        schedule: str | None = None,
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        if_not_exists: bool = False,
        or_replace: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> RefreshResult | None:
        """Create a stream table and load it.

        Args:
            name: `namespace.table`; resolves in `lake`.
            query: The defining query, any deterministic or (then refreshed FULL) other Spark SQL query.
            schedule: How old it may become (`1 minute`, `1h30m`), cron (`0 6 * * * Europe/Berlin`), `ON CHANGE`,
                `DOWNSTREAM` or `MANUAL`; None is `DOWNSTREAM`.
            refresh_mode: `AUTO`, `FULL` or `DIFFERENTIAL`.
            initialize: Load it now; otherwise it stays empty until its first refresh.
            if_not_exists: Do nothing when it exists.
            or_replace: Give an existing one this definition; readers see the old contents until the new are there. A
                blown fuse is resolved by that: the new ones are computed from what the sources are now.
            options: How it is scheduled: `tier`, `pool`, `timeout`, `diamond_consistency`, `diamond_schedule_policy`,
                `refresh_group`, `fuse_ceiling`, `fuse_factor`; None keeps those of the one that is replaced.

        Returns:
            The first load, or None when nothing was loaded.

        Raises:
            HeadraceError: The definition is wrong or loading failed; nothing was created then.
        """
        from headrace.refresh.definition.create import TableSpec

        mode = parse_mode(refresh_mode)
        age = None if schedule is None else parse_schedule(schedule).text
        if options is not None:
            parse_options(options)
        wish = TableSpec(self._name(name), query, age, mode, initialize, if_not_exists, or_replace, options)
        blown = self.fuses() if or_replace else ()
        loaded = self._engine()[2].create(wish)
        if blown:
            self._redefined({fuse.name for fuse in blown} - {fuse.name for fuse in self.fuses()})
        return loaded

    def _redefined(self, names: Iterable[str]) -> None:
        """Say of stream tables that their new definitions went past blown fuses."""
        from headrace.api.safeguards.fuses import went_past
        from headrace.events import FuseResolved, Notice

        for name in sorted(names):
            self.events.emit(Notice(went_past(name)))
            self._decided(FuseResolved(name, "redefine"))

    def alter_stream_table(
        self,
        name: str,
        *,
        schedule: str | None = None,
        clear_schedule: bool = False,
        refresh_mode: str | None = None,
        query: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Change a stream table; what is None stays.

        Args:
            name: The stream table.
            schedule: New schedule.
            clear_schedule: Remove the schedule.
            refresh_mode: `AUTO`, `FULL` or `DIFFERENTIAL`.
            query: New query; contents and definition change together. A blown fuse is resolved by that.
            options: Options to change, by key; those that are not named stay.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `INVALID_SCHEDULE`, or what is wrong with the query.
            Unsupported: `NOT_MAINTAINABLE` for DIFFERENTIAL over a query that cannot be.
        """
        from headrace.refresh.definition.define import require_differential

        full_name = self._name(name)
        table = self._catalog.stream_table(full_name)
        mode = parse_mode(refresh_mode) if refresh_mode is not None else None
        schedule = None if schedule is None else parse_schedule(schedule).text
        changed = None if options is None else {**table.options, **{k.lower(): v for k, v in options.items()}}
        if changed is not None:
            parse_options(changed)
        if query is not None:
            kept_mode = (mode or table.refresh_mode).value
            kept_schedule = None if clear_schedule else schedule or table.schedule
            self.create_stream_table(str(full_name), query, kept_schedule, kept_mode, or_replace=True, options=changed)
            return
        if mode is not None:
            require_differential(gather_facts.details_of(table), mode)
        self._catalog.alter_stream_table(
            full_name, refresh_mode=mode, schedule=schedule, clear_schedule=clear_schedule, options=changed
        )
        if options is not None and any(key.lower().startswith("fuse_") for key in options):
            self._catalog.mend_fuse(full_name)

    def drop_stream_table(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> tuple[str, ...]:
        """Drop a stream table.

        Args:
            name: The stream table.
            if_exists: No error when there is none.
            cascade: Drop its consumers too.

        Returns:
            The names that were dropped.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `HAS_CONSUMERS`.
        """
        dropped = self._engine()[2].drop(self._name(name), if_exists=if_exists, cascade=cascade)
        return tuple(str(n) for n in dropped)

    def register_function(
        self, name: str, call: Callable[..., Any], *, returns: str, deterministic: bool = True
    ) -> None:
        """Let queries call a Python function, in this process only; `functions.py` declares those of every process.

        Args:
            name: Its name in SQL.
            call: The function; takes one argument for each of the call, None for NULL.
            returns: The type it returns, as Spark SQL writes it, or one of PySpark's types.
            deterministic: Whether equal arguments always give equal results; queries that call one for which this is
                not so are recomputed.

        Raises:
            UserError: `FUNCTION_INVALID`.
        """
        self._lazy.register(declare(name, call, returns, deterministic))

    def declare_key(self, source: str, columns: str | Iterable[str], *, check: bool = True) -> KeyInfo:
        """Say that no two rows of a source agree in some columns, NULL being a value like any other.

        Refreshes then leave out work: no DISTINCT over rows that are unique, nobody looks for a second partner. Nothing
        enforces it: should it not hold one day, stream tables that rest on it may be wrong, and `verify` says so.
        Stream tables that read the source are defined and loaded again by their next refresh.

        Args:
            source: A table that stream tables read, or will read; no stream table.
            columns: One column or several.
            check: Look whether it holds now.

        Returns:
            The key, and which stream tables are recomputed for it.

        Raises:
            UserError: `KEY_VIOLATED`, `COLUMN_NOT_FOUND`, `TABLE_NOT_FOUND`; `INVALID_OPTION` for a stream table.
        """
        from headrace.api.declared_keys import declare

        wanted = (columns,) if isinstance(columns, str) else tuple(columns)
        return declare(self._catalog, self._lazy, self._heads(), self._name(source), wanted, check=check)

    def drop_key(self, source: str, columns: str | Iterable[str]) -> None:
        """Declare a key no longer; stream tables that rest on it are defined and loaded again by their next refresh.

        Raises:
            UserError: `KEY_NOT_DECLARED`.
        """
        from headrace.api.declared_keys import drop

        drop(self._catalog, self._name(source), (columns,) if isinstance(columns, str) else tuple(columns))

    def keys(self) -> tuple[KeyInfo, ...]:
        """Declared keys of sources; reads the catalog only."""
        from headrace.api.declared_keys import key_infos

        return key_infos(self._catalog)

    # ---- refreshing and verifying

    @overload
    def refresh(self, names: str, *, full: bool = ..., wait: dt.timedelta = ...) -> RefreshResult: ...
    @overload
    def refresh(
        self, names: list[str] | tuple[str, ...] | None = ..., *, full: bool = ..., wait: dt.timedelta = ...
    ) -> tuple[RefreshResult, ...]: ...
    def refresh(
        self, names: str | Names | None = None, *, full: bool = False, wait: dt.timedelta = dt.timedelta(0)
    ) -> RefreshResult | tuple[RefreshResult, ...]:
        """Bring stream tables up to date; all of them against one cut, sources before consumers.

        A table that belongs to a group (see `diamond_groups`) is refreshed and published with its group. Databases that
        they read are landed first; when that fails, what can be refreshed is refreshed all the same.

        Args:
            names: One, several, or (None) all.
            full: Recompute, whatever changed.
            wait: How long to wait for somebody else, such as a scheduler, who is refreshing one of them.

        Returns:
            One result for one name, else a tuple in the order they ran.

        Raises:
            HeadraceError: The first failure, after everything that does not depend on it was refreshed.
        """
        if isinstance(names, str):
            return self._after_landing([self._name(names)], lambda wanted: self._refresh_one(wanted[0], full, wait))
        wanted = self._names(names) if names is not None else None
        return self._after_landing(wanted, lambda wanted: self._refresh_in_order(wanted, full, wait))

    def _after_landing(self, wanted: list[TableName] | None, refresh: Callable[[Any], T]) -> T:
        """Land what tables read, then refresh them; a failure to land is raised when that is done."""
        from headrace.api.safeguards.gates import gated_above

        failure = self.sources.land_for(wanted)
        if held := gated_above(self._catalog, wanted):
            self.events.emit(Notice(f"Held back by closed gates: {', '.join(map(str, held))}."))
        result = refresh(wanted)
        if failure is not None:
            raise failure
        return result

    def _refresh_one(self, name: TableName, full: bool, wait: dt.timedelta) -> RefreshResult:
        from headrace.api.safeguards.watermarks import refuse_apart

        name = self._catalog.stream_table(name).name
        cut = self._grouping()
        members = cut.members(name)
        refuse_apart(self._catalog, cut, members)
        results = self._refresh_unit(members, self._heads(), [name] if full else [], wait)
        return next(r for r in results if r.name == str(name))

    def _refresh_unit(
        self, members: Sequence[TableName], heads: Cut, full: Collection[TableName], wait: dt.timedelta
    ) -> tuple[RefreshResult, ...]:
        creator, patience = self._engine()[2], wait.total_seconds()
        try:
            return creator.refresh_group(members, heads, full=full, patience=patience)
        except HeadraceError as error:
            if error.code != "CUT_OVERTAKEN":
                raise
        # whoever was waited for had seen more
        return creator.refresh_group(members, self._heads(), full=full, patience=patience)

    def _refresh_in_order(
        self, wanted: list[TableName] | None, full: bool, wait: dt.timedelta
    ) -> tuple[RefreshResult, ...]:
        from headrace.api.safeguards.watermarks import apart_units

        heads, cut = self._heads(), self._grouping()
        order = [n for n in cut.graph.order(cut.options) if wanted is None or n in wanted]
        if wanted is not None:
            for name in wanted:
                self._catalog.stream_table(name)
        elif not full:
            order = self._behind(order, heads)
        asked = frozenset(order)
        results: list[RefreshResult] = []
        failed, errors = set[TableName](), list[HeadraceError]()
        apart = apart_units(self._catalog, cut)
        for unit in cut.units.dag.order({cut.units.unit_of[n] for n in order}):
            if any(above in failed for above in cut.units.dag.producers(unit)):
                failed.add(unit)
                continue
            if unit in apart:
                failed.add(unit)
                if wanted is None:  # nobody asked for these in particular
                    self.events.emit(Notice(apart[unit].message))
                else:
                    errors.append(apart[unit])
                continue
            try:
                members = cut.units.members[unit]
                results += self._refresh_unit(members, heads, asked if full else (), wait)
            except HeadraceError as error:
                failed.add(unit)
                errors.append(error)
        if errors:
            raise errors[0]
        return tuple(results)

    def fuses(self) -> tuple[BlownFuse, ...]:
        """Stream tables whose fuses have blown, with the evidence; reads the catalog only."""
        from headrace.api.safeguards.fuses import blown_fuses

        return blown_fuses(self._catalog)

    def resolve_fuse(self, name: str, resolution: str) -> tuple[RefreshResult, ...]:
        """Decide about a change that was larger than a stream table's fuse allows, and carry it out.

        Of a group that is published together, all blown fuses are resolved so.

        Args:
            name: The stream table.
            resolution: `apply`: refresh it, to what its sources are now. `reinitialize`: recompute it. `skip`: move its
                frontier and leave its contents, which then are known to differ from its query until it is recomputed.

        Returns:
            The refreshes of the table and of its group.

        Raises:
            UserError: `INVALID_OPTION`, `STREAM_TABLE_NOT_FOUND`, `FUSE_NOT_BLOWN`.
            HeadraceError: It could not be carried out; the fuse stays as it was.
        """
        from headrace.api.safeguards.fuses import parse_resolution, to_resolve
        from headrace.api.safeguards.watermarks import refuse_apart
        from headrace.events import FuseResolved
        from headrace.refresh.fuses.fuse import Resolution

        how, cut = parse_resolution(resolution), self._grouping()
        wanted = to_resolve(self._catalog, cut, self._name(name))
        refuse_apart(self._catalog, cut, wanted)
        results = self._engine()[2].refresh_group(
            cut.members(wanted[0]),
            self._heads(),
            full=wanted if how is Resolution.REINITIALIZE else (),
            resolved=dict.fromkeys(wanted, how),
        )
        self._decided(*(FuseResolved(str(table), how.value) for table in wanted))
        return results

    def gates(self) -> tuple[GateInfo, ...]:
        """Sources that are held back; reads the catalog only."""
        from headrace.api.safeguards.gates import gate_infos

        return gate_infos(self._catalog)

    def close_gate(self, sources: str | Names) -> tuple[str, ...]:
        """Hold sources back at what they are now, as while they are loaded, until their gate is opened.

        No refresh, scheduled or not, and no new stream table reads a later version. Mirrors of one database are held
        back together. One that is held back already stays where it is.

        Args:
            sources: Tables, or database sources.

        Returns:
            The tables that are held back.

        Raises:
            UserError: `TABLE_NOT_FOUND`; `INVALID_OPTION` for a stream table. Then no gate is closed.
        """
        from headrace.api.safeguards.gates import close_gate
        from headrace.events import GateClosed

        wanted = self._gated(sources)
        close_gate(self._catalog, wanted, self._heads())
        names = tuple(str(n) for n in wanted)
        self._decided(GateClosed(names))
        return names

    def open_gate(self, sources: str | Names | None = None) -> tuple[str, ...]:
        """Hold sources back no longer.

        Args:
            sources: Tables, or database sources; all that are held back when None.

        Returns:
            The tables.

        Raises:
            UserError: `GATE_NOT_CLOSED`; then no gate is opened.
        """
        from headrace.events import GateOpened

        wanted = tuple(self._catalog.gates()) if sources is None else self._gated(sources)
        self._catalog.open_gates(wanted)
        names = tuple(str(n) for n in wanted)
        if names:
            self._decided(GateOpened(names))
        return names

    def watermarks(self) -> tuple[WatermarkInfo, ...]:
        """Groups of sources that must agree, and where they are; reads the catalog only."""
        from headrace.api.safeguards.watermarks import watermark_infos

        return watermark_infos(self._catalog)

    def create_watermark_group(self, name: str, sources: Names, tolerance: dt.timedelta | str) -> None:
        """Have what reads several sources refreshed only while these are complete up to about the same moment.

        Args:
            name: The group.
            sources: Its tables, two or more; nothing waits for a table that is in no group.
            tolerance: By how much their watermarks may be apart: a duration, zero or more.

        Raises:
            UserError: `INVALID_OPTION`, `TABLE_NOT_FOUND`, `WATERMARK_GROUP_EXISTS`, `WATERMARK_TAKEN`.
        """
        from headrace.api.safeguards.watermarks import create_group

        wanted = tuple(dict.fromkeys(self._names(sources)))
        create_group(self._catalog, name, wanted, tolerance, self._heads())

    def drop_watermark_group(self, name: str, *, if_exists: bool = False) -> None:
        """Have nothing wait for a group of sources any more.

        Raises:
            UserError: `WATERMARK_GROUP_NOT_FOUND`.
        """
        from headrace.api.safeguards.watermarks import drop_group

        drop_group(self._catalog, name, if_exists=if_exists)

    def advance_watermark(self, source: str, moment: dt.datetime | str) -> None:
        """Say that a source is complete up to a moment.

        Args:
            source: A table that is in a watermark group.
            moment: The moment, with a time zone; as text in ISO format. It may not go back.

        Raises:
            UserError: `INVALID_OPTION`, `WATERMARK_UNKNOWN`, `WATERMARK_BACKWARDS`.
        """
        from headrace.api.safeguards.watermarks import parse_moment
        from headrace.events import WatermarkAdvanced

        name, until = self._name(source), parse_moment(moment)
        self._catalog.advance_watermark(name, until)
        self._decided(WatermarkAdvanced(str(name), until.isoformat()))

    def _gated(self, sources: str | Names) -> tuple[TableName, ...]:
        from headrace.api.safeguards.gates import to_gate

        texts = [sources] if isinstance(sources, str) else sources
        return tuple(dict.fromkeys(n for text in texts for n in to_gate(self._catalog, text, self._name)))

    def _decided(self, *events: Event) -> None:
        """Tell what somebody decided, also those who only read the log of events."""
        now = dt.datetime.now(dt.UTC)
        self._catalog.write_events([(now, kind_of(event), fields_of(event)) for event in events])

    def _grouping(self) -> Grouping:
        from headrace.api.running import defaults_of
        from headrace.refresh.groups.grouping import grouping

        with self._catalog.reading() as reader:
            tables, databases = {t.name: t for t in reader.stream_tables()}, reader.sources()
        return grouping(tables, defaults_of(self.settings), databases)

    def _behind(self, order: list[TableName], heads: Cut) -> list[TableName]:
        """Those of `order` that a change can reach: their sources moved, or a table they read is refreshed too."""
        from headrace.refresh.definition.source_keys import KnownKeys

        with self._catalog.reading() as reader:
            tables = {t.name: t for t in reader.stream_tables()}
            frontiers, newest = reader.frontiers(), reader.newest_versions()
        base = {s for n in order for s in tables[n].sources if s not in tables}
        versions = {n: v.version for n, v in newest.items()}
        versions |= heads.versions(base, lambda *_: None)  # whoever reads what cannot be read says so
        behind: list[TableName] = []
        keys = KnownKeys(self._catalog)
        for name in order:
            frontier = frontiers.get(name, Frontier())
            moved = any(frontier.get(s) != versions.get(s) or s in behind for s in tables[name].sources)
            if moved or name not in newest or not frontier or self._unsettled(tables[name], keys):
                behind.append(name)
        return behind

    def _unsettled(self, table: StreamTable, keys: KnownKeys) -> bool:
        try:
            return table.status is not Status.ACTIVE or self._engine()[2].outdated(table, keys)
        except UserError:  # functions that cannot be loaded: whoever refreshes the table says so
            return True

    def _heads(self) -> Cut:
        return self._engine()[1].heads()

    @overload
    def verify(self, names: str) -> VerifyResult: ...
    @overload
    def verify(self, names: Names | None = ...) -> tuple[VerifyResult, ...]: ...
    def verify(self, names: str | Names | None = None) -> VerifyResult | tuple[VerifyResult, ...]:
        """Compare stream tables with their queries at their frontiers.

        Args:
            names: One, several, or (None) all.

        Raises:
            UserError: `NOT_LOADED`, `HISTORY_EXPIRED`.
        """
        from headrace.refresh.verify.verify import verify

        def one(name: TableName) -> VerifyResult:
            rounds = self.settings.max_cycle_rounds
            return verify(name, catalog=self._catalog, session=self._lazy, heads=self._heads(), max_cycle_rounds=rounds)

        if isinstance(names, str):
            return one(self._name(names))
        wanted = [t.name for t in self._catalog.stream_tables()] if names is None else self._names(names)
        return tuple(one(n) for n in wanted)

    # ---- running by themselves

    def run(
        self,
        *,
        once: bool = False,
        dry_run: bool = False,
        max_concurrent: int | None = None,
        stopping: threading.Event | None = None,
        grace: dt.timedelta = dt.timedelta(seconds=60),
    ) -> RunSummary:
        """Keep stream tables fresh by their schedules, until SIGTERM, SIGINT, `drain`, or `stopping`.

        Args:
            once: Refresh what is due now, and what that pulls along; then return.
            dry_run: Only say what would be refreshed now; starts no Spark.
            max_concurrent: Refreshes at once, 1 to 32; `max_concurrent_refreshes` of the settings when None.
            stopping: Set from another thread to let what runs end, start nothing more, and return.
            grace: What runs when it is to stop is given that long, then it is cancelled.

        Raises:
            UserError: `SCHEDULER_RUNNING`: with SQLite one process runs schedules at a time. `INVALID_OPTION`.
        """
        from headrace.api.running import run

        return run(
            self.settings,
            self._catalog,
            self._engine()[2],
            self._lazy,
            self.events,
            once=once,
            dry_run=dry_run,
            max_concurrent=max_concurrent,
            stopping=stopping,
            grace=grace,
            land=lambda ended: self.sources.land_for(None, until=ended),
        )

    def pause(self, names: str | Names | None = None) -> tuple[str, ...]:
        """Have schedules leave stream tables alone, one, several, or (None) all; returns their names.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`; then none is paused.
        """
        from headrace.events import Paused

        wanted = self._several(names)
        self._catalog.pause(wanted)
        return self._told(Paused, wanted)

    def resume(self, names: str | Names | None = None) -> tuple[str, ...]:
        """Have schedules refresh stream tables again, at once: ends pauses, suspensions and waits for a retry.

        What is published together has failed together: that ends for the whole group, pauses of the others stay.

        Returns:
            Their names, and those of others that had failed with them.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`; then none is resumed.
        """
        from headrace.events import Resumed

        wanted, cut, cares = self._several(names), self._grouping(), self._catalog.cares()
        together = dict.fromkeys(m for name in wanted if name in cut.options for m in cut.members(name))
        failed = [m for m in together if m not in wanted and m in cares and cares[m].failures]
        self._catalog.unpause(wanted, failed)
        return self._told(Resumed, [*wanted, *failed])

    def _told(self, kind: Callable[[tuple[str, ...]], Event], tables: Sequence[TableName]) -> tuple[str, ...]:
        names = tuple(str(n) for n in tables)
        if names:
            self._decided(kind(names))
        return names

    def drain(self) -> tuple[str, ...]:
        """Ask every `run` of this project to finish what runs, start nothing more and end; returns who was asked."""
        return tuple(s.owner for s in self._catalog.drain())

    def _several(self, names: str | Names | None) -> list[TableName]:
        if names is None:
            return [t.name for t in self._catalog.stream_tables()]
        return self._names([names] if isinstance(names, str) else names)

    def diamond_groups(self) -> tuple[DiamondGroup, ...]:
        """The groups of stream tables that are refreshed and published together; starts no Spark."""
        from headrace.api.running import diamond_groups, scene_of
        from headrace.refresh.cut.cut import Cut

        scene = scene_of(self.settings, self._catalog, Cut(self._catalog, lambda _: None))
        return diamond_groups(self._catalog, scene, dt.datetime.now(dt.UTC))

    def create_refresh_group(self, name: str, members: Names) -> None:
        """Have stream tables refreshed and published together from now on, without a diamond that asks for it.

        What lies on a way between two members belongs to the group, too.

        Args:
            name: The group.
            members: Its stream tables, two or more.

        Raises:
            UserError: `GROUP_EXISTS`, `GROUP_MEMBER_TAKEN`, `STREAM_TABLE_NOT_FOUND`, `INVALID_OPTION`; then nothing
                changes.
        """
        from headrace.api.running import declare_group

        if not name.strip() or len(set(members)) < 2:
            raise UserError("INVALID_OPTION", "A refresh group has a name and two or more stream tables.")
        declare_group(self._catalog, name.strip(), self._names(dict.fromkeys(members)))

    def drop_refresh_group(self, name: str, *, if_exists: bool = False) -> tuple[str, ...]:
        """Let the members of a declared group go their own ways again; returns their names.

        Raises:
            UserError: `GROUP_NOT_FOUND`.
        """
        from headrace.api.running import drop_group

        return tuple(str(n) for n in drop_group(self._catalog, name.strip(), if_exists=if_exists))

    def on_event(self, call: Callable[[dict[str, Any]], Any]) -> Callable[[], None]:
        """Have a function called with what happens, until the project is closed.

        It is called in a thread of its own, one event after the other: whether it is slow, hangs or raises is no
        refresh's business. When more than 1,000 events wait for it, the oldest are given up.

        Args:
            call: Receives a dict: `at`, `event`, and what it is about, as `headrace run --json` prints them.

        Returns:
            A function that ends it, after what has happened so far was delivered (in five seconds at most).
        """
        from headrace.observability.event_hook import Hook

        hook = self._hooks.enter_context(Hook(call, self.events))
        return hook.end

    def event_log(self, after: int | None = None, limit: int = 100) -> tuple[LoggedEvent, ...]:
        """What schedulers told, as the catalog keeps it for a week; oldest first.

        Args:
            after: Only events later than the one of this id; None for the newest ones.
            limit: How many at most.
        """
        from headrace.api.running import event_log

        return event_log(self._catalog, after, limit)

    # ---- looking

    def explain(self, name_or_query: str, *, refresh_mode: str | None = None) -> Explanation:
        """Say how a stream table's next refresh would run, or how a query would be maintained.

        Args:
            name_or_query: A stream table's name, or a query.
            refresh_mode: Explain this mode instead of the table's own.
        """
        try:
            name = self._name(name_or_query.strip())
        except UserError:
            return self.explain_query(name_or_query, refresh_mode=refresh_mode)
        return self._explain(name, refresh_mode)

    def explain_query(self, query: str, *, refresh_mode: str | None = None) -> Explanation:
        """Say how a query would be maintained, were it a stream table; arguments as for `explain`."""
        return self._explain(query, refresh_mode)

    def validate(self, query: str) -> Validation:
        """Say for each construct of a query how it would be maintained, or why it is not; creates nothing.

        Args:
            query: A SELECT. A syntax error is found without starting Spark.

        Raises:
            UserError: the text is no valid query.
        """
        from headrace.refresh.definition.validate import validate

        plans, _, _ = self._engine()
        return validate(query, catalog=self._catalog, session=self._lazy, plans=plans)

    def _explain(self, subject: TableName | str, refresh_mode: str | None) -> Explanation:
        from headrace.refresh.explain.gather_explanation import explain

        plans, refresher, _ = self._engine()
        mode = parse_mode(refresh_mode) if refresh_mode else None
        return explain(subject, mode, catalog=self._catalog, session=self._lazy, plans=plans, heads=refresher.heads())

    def functions(self) -> tuple[FunctionInfo, ...]:
        """The project's Python functions, and the stream tables that call them; loads `functions.py`, starts no Spark.

        Raises:
            UserError: `FUNCTION_INVALID`.
        """
        from headrace.definitions.function_versions import function_infos

        return function_infos(self._catalog, self._lazy.functions())

    def status(self, names: Iterable[str] | None = None) -> tuple[StreamTableInfo, ...]:
        """Where the stream tables stand; reads the catalog only and starts no Spark."""
        from headrace.api.running import with_schedules
        from headrace.refresh.cut.cut import Cut

        heads = Cut(self._catalog, lambda _: None)
        moved = heads.versions(_status.lake_sources(self._catalog))
        infos = _status.status(self._catalog, moved, None if names is None else self._names(names))
        return with_schedules(infos, self.settings, self._catalog, heads)

    def history(self, name: str | None = None, limit: int | None = 20) -> tuple[HistoryRow, ...]:
        """Past refreshes, newest first, also of tables that were dropped; reads the catalog only.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND` for a name that never was a stream table.
        """
        wanted = self._name(name) if name is not None else None
        found = _status.history(self._catalog, wanted, limit)
        if wanted is not None and not found:
            self._catalog.stream_table(wanted)  # who has none must at least exist
        return found

    def graph(self) -> Dag[TableName]:
        """The DAG of sources and stream tables; reads the catalog only."""
        return Dag(self._catalog.dependencies())

    def at(self, when: dt.datetime | int | None = None) -> Pinned:
        """Pin one published state for reading several tables consistently.

        Args:
            when: A time, or the number of a publication (see `history`); the newest state when None.

        Raises:
            UserError: `PUBLICATION_NOT_FOUND`.
        """
        return Pinned(self._catalog, self._lazy, when)

    def maintain(
        self,
        *,
        older_than: dt.timedelta = dt.timedelta(days=7),
        orphans_older_than: dt.timedelta = dt.timedelta(days=3),
        dry_run: bool = False,
    ) -> tuple[MaintenanceResult, ...]:
        """Expire snapshots, compact, trim logs and remove orphan files; keeps what any frontier needs.

        Args:
            older_than: Snapshots younger than this stay.
            orphans_older_than: Unreferenced files younger than this stay.
            dry_run: Say what would be done.
        """
        from headrace.api.running import defaults_of
        from headrace.refresh.maintenance import maintain

        return maintain(
            self._catalog,
            self._lazy,
            older_than=older_than,
            orphans_older_than=orphans_older_than,
            dry_run=dry_run,
            defaults=defaults_of(self.settings),
        )


class Pinned:
    """One published state of the lake; everything read through it belongs together."""

    def __init__(self, catalog: Catalog, lazy: LazySpark, when: dt.datetime | int | None) -> None:
        from headrace.refresh.cut.pinned_state import PinnedState

        self._state = PinnedState(catalog, when)
        self._lazy = lazy

    def table(self, name: str) -> DataFrame:
        """A table in this state.

        Raises:
            UserError: `TABLE_NOT_FOUND`, `HISTORY_EXPIRED`.
        """
        full_name = qualify(split_identifier(name), self._lazy.namespace(), self._lazy.catalogs())
        return self._lazy.session().sql(f"SELECT * FROM {self._state.expression(full_name)}")

    def sql(self, query: str) -> DataFrame:
        """A query over tables in this state."""
        from headrace.spark.errors import translated

        text = self._state.sql(query, self._lazy.namespace(), self._lazy.catalogs())
        with translated(query):
            return self._lazy.session().sql(text)


def parse_mode(text: str) -> RefreshMode:
    """The refresh mode of that name, in any case.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    try:
        return RefreshMode(text.upper())
    except ValueError:
        raise UserError(
            "INVALID_OPTION", f"'{text}' is no refresh mode.", hint="Use AUTO, FULL or DIFFERENTIAL."
        ) from None
