"""Creates, replaces and drops stream tables. A statement that fails leaves nothing behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from headrace.algebra.schema import Column
from headrace.catalog import Catalog, Definition, Green, Publication, StreamTable, Swap, resource_of
from headrace.compiler.layout import LAYOUT
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details, from_json, to_json
from headrace.definitions.function_versions import changed_functions, refuse_missing
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.graph.dag import Dag, cycle_error
from headrace.lake.tables import create_log, create_table, new_suffix, stored_names, table_location
from headrace.names import LAKE, STAGING, SYSTEM_NAMESPACE, TableName, quote
from headrace.ports import Session
from headrace.reasons import FullReason
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.define import check_name, define, require_differential, sources_of, view_locations
from headrace.refresh.definition.source_keys import SourceKeys, out_of_date
from headrace.refresh.fuses.fuse import UNRESOLVED, Resolution, not_skippable
from headrace.refresh.groups.cycle_rules import as_member, check_cycle, in_cycle, parts
from headrace.refresh.held_leases import holding_leases
from headrace.refresh.refresher import Refresher
from headrace.results.refresh_results import Mode, RefreshMode, RefreshResult


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A stream table as the user asked for it.

    Args:
        name: The stream table.
        query: Its query.
        schedule: When to refresh, as text; None for `DOWNSTREAM`.
        refresh_mode: AUTO, FULL or DIFFERENTIAL.
        initialize: Load it now.
        if_not_exists: Do nothing when it exists.
        or_replace: Replace it when it exists.
        options: How it is scheduled; None keeps those of the one that is replaced.
    """

    name: TableName
    query: str
    schedule: str | None = None
    refresh_mode: RefreshMode = RefreshMode.AUTO
    initialize: bool = True
    if_not_exists: bool = False
    or_replace: bool = False
    options: Mapping[str, str] | None = None


class Creator:
    """Creates, replaces and drops stream tables.

    Args:
        catalog: The catalog.
        session: The user's session.
        plans: Compiled views.
        refresher: Loads new tables.
        warehouse: Where tables are stored.
        format_version: Iceberg format of new tables.
    """

    def __init__(
        self,
        catalog: Catalog,
        session: Session,
        plans: CompiledViews,
        refresher: Refresher,
        warehouse: str,
        format_version: int,
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.plans = plans
        self.refresher = refresher
        self.warehouse = warehouse
        self.format_version = format_version

    def create(self, spec: TableSpec) -> RefreshResult | None:
        """Create (or replace) a stream table.

        Returns:
            The first load; None when there was nothing to do or `initialize` is off.

        Raises:
            HeadraceError: The definition is wrong, or loading failed; then nothing was created or changed.
        """
        check_name(spec.name)
        existing = self.catalog.find_stream_table(spec.name)
        if existing is not None and spec.if_not_exists:
            return None
        if existing is not None and not spec.or_replace:
            raise UserError(
                "STREAM_TABLE_EXISTS",
                f"Stream table {spec.name} exists already.",
                hint="Use CREATE OR REPLACE STREAM TABLE, or IF NOT EXISTS.",
            )
        if existing is not None:
            refuse_green(self.catalog, spec.name)
        if existing is None and spec.name in self.catalog.pointers(LAKE, [spec.name]):
            raise UserError(
                "TABLE_EXISTS",
                f"{spec.name} exists already and is no stream table.",
                hint="Choose another name, or drop that table or view first.",
            )
        details, _ = define(spec.query, catalog=self.catalog, session=self.session, plans=self.plans)
        require_differential(details, spec.refresh_mode)
        cycle = self._cycle(spec.name, details, new=existing is None)
        if existing is not None and cycle:
            results = self._replace_cycle(cycle, {spec.name: (spec, details)})
            return next(r for r in results if r.name == str(spec.name))
        if existing is not None:
            return self._replace(existing, spec, details)
        return self._create(spec, details)

    def create_green(self, spec: TableSpec, details: Details, green: Green) -> RefreshResult | None:
        """Create a second generation of a stream table; the two are written down together.

        Args:
            spec: The stream table.
            details: Its definition.
            green: Which stream table it stands beside.

        Returns:
            The first load; None when `initialize` is off.

        Raises:
            HeadraceError: Loading failed; then nothing was created.
        """
        return self._create(spec, details, (green,))

    def define_green_again(self, name: TableName, redirects: Mapping[TableName, TableName]) -> None:
        """Have a second generation read others than it did, and load it again.

        Args:
            name: The stream table.
            redirects: Relations in whose place others are read.
        """
        table = self.catalog.stream_table(name)
        details = replace(from_json(table.details), redirects=redirects)
        self._replace(table, _spec_of(table), self._defined_again(replace(table, details=to_json(details))))

    def drop(self, name: TableName, *, if_exists: bool = False, cascade: bool = False) -> tuple[TableName, ...]:
        """Drop a stream table, with `cascade` its consumers too.

        Returns:
            What was dropped, consumers first.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `HAS_CONSUMERS`.
        """
        found = self.catalog.find_stream_table(name)
        if found is None:
            if if_exists:
                return ()
            return (self.catalog.stream_table(name).name,)
        doomed = self._with_consumers(name)
        if len(doomed) > 1 and not cascade:
            readers = ", ".join(str(n) for n in doomed if n != name)
            raise UserError(
                "HAS_CONSUMERS",
                f"{name} is read by {readers}.",
                hint=f"Drop those first, or write DROP STREAM TABLE {name} CASCADE.",
            )
        refuse_deployed(self.catalog, doomed)
        self.drop_together(doomed)
        return tuple(doomed)

    def drop_together(self, doomed: Sequence[TableName]) -> None:
        """Drop stream tables in one transaction, whoever reads them."""
        tables = [self.catalog.stream_table(n) for n in doomed]
        with holding_leases(self.catalog, [resource_of(n) for n in doomed]) as leases:
            stored = tuple(t for table in tables for t in table.stored)
            self.catalog.publish(Publication(drops=tuple(doomed), deletes=stored, leases=leases()))

    def refresh_group(
        self,
        names: Sequence[TableName],
        heads: Cut,
        *,
        full: Collection[TableName] = (),
        patience: float = 0.0,
        resolved: Mapping[TableName, Resolution] = UNRESOLVED,
    ) -> tuple[RefreshResult, ...]:
        """Refresh stream tables that are published together, or not at all.

        Those whose views or rules were changed are defined again first, each for itself.

        Args:
            names: The members, producers first; one alone is no group.
            heads: The cut.
            full: Those to recompute, whatever changed.
            patience: Seconds to wait for others who are refreshing one of them.
            resolved: What was decided about changes that are too large.

        Raises:
            HeadraceError: What went wrong; what was published before stays.
        """
        heads.take_mirrors()
        tables = {name: self.catalog.stream_table(name) for name in names}
        renewed: list[RefreshResult] = []
        for part in (together := parts(names, tables)):
            if in_cycle(part, tables):
                renewed += self._renewed_cycle(part, tables, resolved)
            elif (found := self._renewed(tables[part[0]], heads, resolved)) is not None:
                renewed.append(found)
        if len(together) == 1 and renewed:
            return tuple(renewed)
        group = tuple(names) if len(names) > 1 else ()
        results = self.refresher.refresh_together(
            names, heads, full=full, group=group, patience=patience, resolved=resolved
        )
        anew = {r.name: r for r in renewed}
        return tuple(anew.get(r.name, r) if r.mode is Mode.NO_CHANGE else r for r in results)

    def _renewed(
        self, table: StreamTable, heads: Cut, resolved: Mapping[TableName, Resolution]
    ) -> RefreshResult | None:
        """Define and load a table again if its definition no longer holds, else return None."""
        if self.outdated(table):
            refuse_missing(table.name, from_json(table.details), self.session)
            reason = self._why_again(table)
            _refuse_skipping(table.name, resolved, reason)
            return self._replace(table, _spec_of(table), self._defined_again(table), reason, resolved)
        if (details := self._without_lost_columns(table, heads)) is not None:
            _refuse_skipping(table.name, resolved, FullReason.SCHEMA_CHANGED)
            return self._replace(table, _spec_of(table), details, FullReason.SCHEMA_CHANGED, resolved)
        return None

    def _renewed_cycle(
        self,
        part: Sequence[TableName],
        tables: Mapping[TableName, StreamTable],
        resolved: Mapping[TableName, Resolution],
    ) -> tuple[RefreshResult, ...]:
        """Define and load a cycle again if a member's definition no longer holds."""
        keys = SourceKeys(self.catalog)
        old = [name for name in part if self._is_old(from_json(tables[name].details), keys)]
        if not old and all(from_json(tables[name].details).cyclic for name in part):
            return ()
        for name in part:
            refuse_missing(name, from_json(tables[name].details), self.session)
            _refuse_skipping(name, resolved, FullReason.DEFINITION_CHANGED)
        again = {n: (_spec_of(tables[n]), self._defined_again(tables[n])) for n in old}
        return self._replace_cycle(part, again, resolved)

    def _why_again(self, table: StreamTable) -> FullReason:
        function = changed_functions(from_json(table.details), self.session)
        return FullReason.FUNCTION_CHANGED if function else FullReason.DEFINITION_CHANGED

    def _defined_again(self, table: StreamTable) -> Details:
        details = from_json(table.details)
        again, _ = define(
            table.query,
            catalog=self.catalog,
            session=self.session,
            plans=self.plans,
            namespace=details.namespace,
            semantics=details.semantics,
            redirects=details.redirects,
            deployment=details.deployment,
        )
        return again

    def _without_lost_columns(self, table: StreamTable, heads: Cut) -> Details | None:
        """Return details without columns a source has lost.

        Only of a query that is not read as algebra; None when it used such a column, or none is lost.

        Which columns such a query uses is not known, but whether it can still be computed, to the same columns, is.
        """
        details = from_json(table.details)
        if details.incremental:
            return None
        try:
            if not self._lost(table, details, heads):
                return None
            again = self._defined_again(table)
        except HeadraceError:
            return None  # the refresh finds what is missing, and says so in the history
        same = [(c.name, c.type) for c in again.output] == [(c.name, c.type) for c in details.output]
        return again if same else None

    def _lost(self, table: StreamTable, details: Details, heads: Cut) -> bool:
        streams = frozenset(t.name for t in self.catalog.stream_tables())
        now = heads.of(table.sources, streams)
        there = {name: {c.name for c in head.meta.columns} for name, head in now.items()}
        return any({c.name for c in use.columns} - there[use.name] for use in details.sources)

    def outdated(self, table: StreamTable, keys: SourceKeys | None = None) -> bool:
        """Return whether a stream table must be defined again.

        A view that it reads through was changed, or a function of the project that it calls, or what is known of keys
        of its sources, or the rules were, or it was altered from FULL to a mode that needs what a table that is always
        recomputed does not store, or it has left its cycle.

        Args:
            table: The stream table.
            keys: What is known of keys; who asks about many tables reads it once.

        Raises:
            UserError: `FUNCTION_INVALID`: it calls functions, and they cannot be loaded.
        """
        details = from_json(table.details)
        if self._is_old(details, keys or SourceKeys(self.catalog)):
            return True
        if details.cyclic and not Dag(self.catalog.dependencies()).component(table.name):
            return True
        return table.companion is None and needs_companion(details, table.refresh_mode)

    def _is_old(self, details: Details, keys: SourceKeys) -> bool:
        """Return whether what a stream table was compiled from is not that any more."""
        known = details.view_locations
        if details.layout != LAYOUT or (bool(known) and view_locations(self.catalog, known) != dict(known)):
            return True
        if details.disabled_passes != self.plans.disabled_in_definitions:
            return True
        return out_of_date(details, keys) or bool(changed_functions(details, self.session))

    # ---- creating

    def _create(self, spec: TableSpec, details: Details, greens: tuple[Green, ...] = ()) -> RefreshResult | None:
        suffix = new_suffix()
        names = stored_names(spec.name, suffix)
        companion = names.companion.within(LAKE) if needs_companion(details, spec.refresh_mode) else None
        definition = self._definition(spec, details, companion, None)
        logless = self._logless(details)
        with ExitStack() as stack:
            resources = [resource_of(n) for n in (spec.name, *logless)]
            leases = stack.enter_context(holding_leases(self.catalog, resources))
            created = (spec.name, *((companion,) if companion else ()))
            try:
                self._start_logs(logless)
                self._make(names.state, details.output, suffix)
                if companion and details.companion:
                    self._make(names.companion, details.companion, suffix)
                self.catalog.publish(
                    Publication(
                        swaps=tuple(Swap(t, None) for t in created),
                        definitions=(definition,),
                        leases=leases(),
                        greens=greens,
                    )
                )
            except HeadraceError:
                self.catalog.reset_staging(created, held=leases())
                raise
        if not spec.initialize:
            return None
        try:
            return self.refresher.refresh_together((spec.name,), self.refresher.heads())[0]
        except BaseException:  # an interrupt, too, must not leave an empty table behind
            if self.catalog.find_stream_table(spec.name) is not None:
                self.drop_together((spec.name,))
            raise

    def _replace(
        self,
        existing: StreamTable,
        spec: TableSpec,
        details: Details,
        reason: FullReason = FullReason.DEFINITION_CHANGED,
        resolved: Mapping[TableName, Resolution] | None = None,
    ) -> RefreshResult:
        suffix = new_suffix()
        names = stored_names(spec.name, suffix)
        old = from_json(existing.details)
        there = spec.name in self.catalog.pointers(LAKE, [spec.name])
        same = there and [(c.name, c.type) for c in old.output] == [(c.name, c.type) for c in details.output]
        companion = names.companion.within(LAKE) if needs_companion(details, spec.refresh_mode) else None
        log = existing.log if same or existing.log is None else names.log.within(LAKE)
        logless = self._logless(details)
        with holding_leases(self.catalog, [resource_of(n) for n in (spec.name, *logless)]) as leases:
            self.catalog.reset_staging(existing.stored, held=leases())
            try:
                self._start_logs(logless)
                if companion and details.companion:
                    self._make(names.companion, details.companion, suffix)
                if not same:
                    self.session.runner().run(f"DROP TABLE IF EXISTS {names.state.sql}")
                    self._make(names.state, details.output, suffix)
                    if log is not None:
                        self._make_log(names.log, details.output, suffix)
                definition = self._definition(spec, details, companion, log)
                kept = {spec.name, companion, log}
                gone = tuple(t for t in existing.stored if t not in kept)
                return self.refresher.replace(definition, self.refresher.heads(), leases(), gone, reason, resolved)
            except HeadraceError:
                self.catalog.reset_staging([spec.name, *(t for t in (companion, log) if t)], held=leases())
                raise

    def _replace_cycle(
        self,
        cycle: Sequence[TableName],
        changed: Mapping[TableName, tuple[TableSpec, Details]],
        resolved: Mapping[TableName, Resolution] | None = None,
    ) -> tuple[RefreshResult, ...]:
        """Give some members of a cycle new definitions, and load all members again.

        Args:
            cycle: The members, once the definitions hold.
            changed: The new definitions.
            resolved: What was decided about changes that are too large; None where a user gave a definition.
        """
        tables = {name: self.catalog.stream_table(name) for name in cycle}
        specs = {name: changed.get(name) or (_spec_of(tables[name]), from_json(tables[name].details)) for name in cycle}
        details = {name: as_member(new) for name, (_, new) in specs.items()}
        check_cycle(details, {n: self.plans.view(n, d) if d.incremental else None for n, d in details.items()})
        logless = tuple(dict.fromkeys(n for d in details.values() for n in self._logless(d) if n not in cycle))
        with holding_leases(self.catalog, [resource_of(n) for n in (*cycle, *logless)]) as leases:
            written: list[TableName] = []
            gone: dict[TableName, tuple[TableName, ...]] = {}
            definitions: dict[TableName, Definition] = {}
            try:
                self._refuse_overtaken(tables)
                self._start_logs(logless)
                for name in cycle:
                    self.catalog.reset_staging(tables[name].stored, held=leases())
                    log = self._stored_again(tables[name], details[name])
                    written += (name, *((log,) if log else ()))
                    gone[name] = tuple(t for t in tables[name].stored if t not in (name, log))
                    definitions[name] = self._definition(specs[name][0], details[name], None, log)
                heads = self.refresher.heads()
                return self.refresher.replace_cycle(definitions, heads, leases(), gone, resolved=resolved)
            except HeadraceError:
                self.catalog.reset_staging(written, held=leases())
                raise

    def _refuse_overtaken(self, tables: Mapping[TableName, StreamTable]) -> None:
        """Refuse members whose stored definition changed meanwhile."""
        for name, was in tables.items():
            now = self.catalog.stream_table(name)
            if (now.generation, now.schedule, now.refresh_mode) != (was.generation, was.schedule, was.refresh_mode):
                raise EnvironmentFault(
                    "DEFINITION_CHANGED",
                    f"The definition of {name} changed while its cycle was defined; nothing was changed by this.",
                    hint="Try again.",
                    retryable=True,
                )

    def _stored_again(self, table: StreamTable, details: Details) -> TableName | None:
        """Create new stored tables where the columns changed; return the new change log."""
        suffix = new_suffix()
        names, old = stored_names(table.name, suffix), from_json(table.details)
        there = table.name in self.catalog.pointers(LAKE, [table.name])
        if there and [(c.name, c.type) for c in old.output] == [(c.name, c.type) for c in details.output]:
            return table.log
        self.session.runner().run(f"DROP TABLE IF EXISTS {names.state.sql}")
        self._make(names.state, details.output, suffix)
        if table.log is None:
            return None
        self._make_log(names.log, details.output, suffix)
        return names.log.within(LAKE)

    def _definition(
        self, spec: TableSpec, details: Details, companion: TableName | None, log: TableName | None
    ) -> Definition:
        return Definition(
            name=spec.name,
            query=details.query,
            sources=sources_of(details),
            refresh_mode=spec.refresh_mode,
            schedule=spec.schedule,
            details=to_json(details),
            companion=companion,
            log=log,
            options=spec.options,
        )

    # ---- stored tables

    def _make(self, table: TableName, columns: tuple[Column, ...], suffix: str) -> None:
        location = table_location(self.warehouse, table, suffix)
        runner = self.session.runner()
        ddl = create_table(table, columns, location=location, format_version=self.format_version)
        runner.run(f"CREATE NAMESPACE IF NOT EXISTS {_namespace(table)}")
        runner.run(ddl)

    def _make_log(self, table: TableName, columns: tuple[Column, ...], suffix: str) -> None:
        location = table_location(self.warehouse, table, suffix)
        runner = self.session.runner()
        ddl = create_log(table, columns, location=location, format_version=self.format_version)
        runner.run(f"CREATE NAMESPACE IF NOT EXISTS {STAGING}.{quote(SYSTEM_NAMESPACE)}")
        runner.run(ddl)

    def _logless(self, details: Details) -> tuple[TableName, ...]:
        """Return stream tables among the sources that keep no change log yet."""
        streams = {t.name: t for t in self.catalog.stream_tables()}
        return tuple(n for n in sources_of(details) if n in streams and streams[n].log is None)

    def _start_logs(self, names: tuple[TableName, ...]) -> None:
        """Start change logs from the versions the tables are at; the callers hold their leases.

        A log is published before it is announced: whoever finds it announced finds it complete from then on.
        """
        for name in names:
            suffix = new_suffix()
            log = stored_names(name, suffix).log
            self._make_log(log, from_json(self.catalog.stream_table(name).details).output, suffix)
            self.catalog.publish(Publication(swaps=(Swap(log.within(LAKE), None),)))
            self.catalog.set_log_table(name, log.within(LAKE))

    # ---- graph

    def _cycle(self, name: TableName, details: Details, *, new: bool) -> tuple[TableName, ...]:
        """Return the members of the cycle that a definition makes, or keeps, the table in.

        () for none.

        Raises:
            UserError: `CYCLE`, naming the path, where cycles are not allowed, and for a table that is new: others read
                what was there under its name.
        """
        graph = Dag({**self.catalog.dependencies(), name: sources_of(details)})
        if (path := graph.cycle(through=name)) and (new or not self.refresher.defaults.allow_cycles):
            raise cycle_error(path)
        return graph.component(name)

    def _with_consumers(self, name: TableName) -> list[TableName]:
        """Return a stream table and everything that reads it, consumers first."""
        dependencies = self.catalog.dependencies()
        doomed, queue = [name], [name]
        while queue:
            current = queue.pop()
            for reader, sources in sorted(dependencies.items()):
                if current in sources and reader not in doomed:
                    doomed.append(reader)
                    queue.append(reader)
        return doomed[::-1]


def _refuse_skipping(name: TableName, resolved: Mapping[TableName, Resolution], reason: FullReason) -> None:
    """Recomputing for another reason would bring in what is to be skipped."""
    if resolved.get(name) is Resolution.SKIP:
        raise not_skippable(name, reason)


def _spec_of(table: StreamTable) -> TableSpec:
    return TableSpec(table.name, table.query, table.schedule, table.refresh_mode, or_replace=True)


def needs_companion(details: Details, mode: RefreshMode) -> bool:
    """Return whether a stream table has a companion; one always recomputed has none."""
    return details.companion is not None and mode is not RefreshMode.FULL


def refuse_green(catalog: Catalog, name: TableName) -> None:
    """Refuse to define a second generation by the statements for public stream tables.

    Raises:
        UserError: `IN_DEPLOYMENT`.
    """
    if green := next((g for g in catalog.greens() if g.name == name), None):
        raise UserError(
            "IN_DEPLOYMENT",
            f"{name} belongs to deployment {green.deployment} of {green.original}.",
            hint=f"`headrace deploy cancel {green.original}` ends it; then begin again with `headrace deploy create`.",
        )


def refuse_deployed(catalog: Catalog, names: Collection[TableName]) -> None:
    """Refuse to drop stream tables of which there are two generations.

    Raises:
        UserError: `IN_DEPLOYMENT`.
    """
    for green in catalog.greens():
        if green.name in names or green.original in names:
            raise UserError(
                "IN_DEPLOYMENT",
                f"{green.original} is part of deployment {green.deployment}, as {green.name}; nothing was dropped.",
                hint=f"`headrace deploy cancel {green.original}` ends that first.",
            )


def _namespace(table: TableName) -> str:
    return ".".join(quote(p) for p in table.parts[:-1])
