"""Creates, replaces and drops stream tables. A statement that fails leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from headrace.catalog import Catalog, Green, Publication, Role, StreamTable, Swap, resource_of
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details, from_json, to_json
from headrace.errors import HeadraceError, UserError
from headrace.graph.dag import Dag, cycle_error
from headrace.lake.tables import new_suffix, stored_names
from headrace.names import LAKE, TableName
from headrace.ports import Session
from headrace.refresh.cut.cut import Cut, Head
from headrace.refresh.definition.define import check_name, define, require_differential, sources_of
from headrace.refresh.definition.early_checks import check_namespace, check_query
from headrace.refresh.definition.layout_waits import is_layout_deployment, refuse_newer, refuse_waiting, waiting_in
from headrace.refresh.definition.outdated import Outdated
from headrace.refresh.definition.redefine import NONE_BESIDE, NONE_GIVEN, Given, Redefiner
from headrace.refresh.definition.redefinition import Redefine
from headrace.refresh.definition.stored_tables import StoredTables
from headrace.refresh.definition.table_spec import TableSpec, definition_of, needs_companion, spec_of
from headrace.refresh.fuses.fuse import UNRESOLVED, Resolution
from headrace.refresh.gather_facts import defined_as
from headrace.refresh.groups.group_refresh import GroupRefresh, Order
from headrace.refresh.groups.grouping import grouping
from headrace.refresh.groups.load_plan import LoadPlan, held_up, load_plan, lose_columns
from headrace.refresh.held_leases import Held, holding_leases
from headrace.refresh.refresher import Refresher
from headrace.results.refresh_results import RefreshResult
from headrace.schedule.options import Ties, parse_options

PATIENCE = 60.0
"""Seconds to wait for whoever refreshes other members of a group that a table is loaded with."""


class Creator:
    """Creates, replaces and drops stream tables.

    Args:
        catalog: The catalog.
        session: The user's session.
        plans: Compiled views.
        refresher: Loads new tables.
        warehouse: Where tables are stored.
        format_version: Iceberg format of new tables.

    Attributes:
        outdated: Tells which stream tables must be defined again.
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
        self.outdated = Outdated(catalog, session, plans)
        self.tables = StoredTables(catalog, session, warehouse, format_version)
        self.redefiner = Redefiner(catalog, session, plans, self.outdated, self.tables)

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
        if existing is None:
            check_namespace(self.catalog, spec.name)
        check_query(spec.query, self.catalog, self.session)
        options = existing.options if spec.options is None and existing is not None else spec.options
        ties = parse_options(options or {}).ties or Ties.REFINE
        details, _ = define(spec.query, catalog=self.catalog, session=self.session, plans=self.plans, ties=ties)
        require_differential(details, spec.refresh_mode)
        self._refuse_cycle(spec.name, details, new=existing is None)
        if existing is not None:
            return self._replace(existing, Given(spec, details, existing.generation))
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
        again = self.outdated.defined_again(replace(table, details=to_json(details)))
        self._replace(table, Given(spec_of(table), again, table.generation))

    def rebuild(self, name: TableName) -> RefreshResult:
        """Load a stream table again as it is defined, into new tables where stored ones are lost.

        Raises:
            HeadraceError: Loading failed; then it is as it was.
        """
        table = self.catalog.stream_table(name)
        again = self.outdated.defined_again(table)
        return self._replace(table, Given(spec_of(table), again, table.generation))

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
            self._refuse_plain(name)
            return (self.catalog.stream_table(name).name,)
        doomed = self._with_consumers(name)
        if len(doomed) > 1 and not cascade:
            readers = ", ".join(str(n) for n in doomed if n != name)
            raise UserError(
                "HAS_CONSUMERS",
                f"{name} is read by {readers}.",
                hint=f"Drop those first, or write DROP STREAM TABLE {name} CASCADE.",
            )
        along = [g.name for g in self.catalog.greens() if is_layout_deployment(g.deployment) and g.original in doomed]
        both = [*dict.fromkeys((*along, *doomed))]
        refuse_deployed(self.catalog, both)
        self.drop_together(both, still=partial(refuse_deployed, self.catalog, both))
        return tuple(doomed)

    def _refuse_plain(self, name: TableName) -> None:
        """Refuse to drop what is no stream table, and say what it is.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        pointer = self.catalog.pointers(LAKE, [name]).get(name)
        if pointer is None:
            return
        with self.catalog.reading() as reader:
            source = next((s.name for s in reader.sources() if any(m.name == name for m in s.mirrors)), None)
        what, statement = ("view", f"DROP VIEW {name}") if pointer.is_view else ("table", f"DROP TABLE {name}")
        if source is not None:
            what, statement = f"mirror of source {source}", f"ALTER SOURCE {source} DROP TABLES ({name.table})"
        raise UserError(
            "STREAM_TABLE_NOT_FOUND",
            f"{name} is a {what}, not a stream table; nothing was dropped.",
            hint=f"Use {statement}.",
        )

    def drop_together(
        self,
        doomed: Sequence[TableName],
        *,
        ended: Sequence[TableName] = (),
        still: Callable[[], None] = lambda: None,
        patience: float = 0.0,
        held: Held = tuple,
    ) -> None:
        """Drop stream tables in one transaction, whoever reads them.

        Change logs that only they read end after it.

        Args:
            doomed: The stream tables.
            ended: Others that stay, and are members of a deployment no longer.
            still: Raises, under the leases, where they are not to be dropped any more.
            patience: Seconds to wait for whoever refreshes one of them, or a table whose change log ends.
            held: Leases that the caller holds, of these tables or others.
        """
        for name in doomed:
            self.catalog.stream_table(name)
        own = {lease.resource for lease in held()}
        missing = [resource for name in (*doomed, *ended) if (resource := resource_of(name)) not in own]
        with holding_leases(self.catalog, missing, patience=patience) as leases:
            still()
            # only now: an exchange may just have given one of them what another one stored
            stored = tuple(t for name in doomed for t in self.catalog.stream_table(name).stored)
            self.catalog.reset_staging(stored, held=(*held(), *leases()))
            self.catalog.publish_or_settle(
                Publication(drops=tuple(doomed), deletes=stored, leases=(*held(), *leases()), greens_ended=tuple(ended))
            )
        if doomed:
            self.tables.end_unread_logs(patience=patience)

    def refresh_group(
        self,
        names: Sequence[TableName],
        heads: Cut,
        *,
        full: Collection[TableName] = (),
        patience: float = 0.0,
        resolved: Mapping[TableName, Resolution] = UNRESOLVED,
        held: Held = tuple,
    ) -> tuple[RefreshResult, ...]:
        """Refresh stream tables that are published together, or not at all.

        Those whose views, functions or rules were changed are defined again, and published with the others.

        Args:
            names: The members, producers first; one alone is no group.
            heads: The cut.
            full: Those to recompute, whatever changed.
            patience: Seconds to wait for others who are refreshing one of them.
            resolved: What was decided about changes that are too large.
            held: Leases that the caller holds.

        Raises:
            EnvironmentFault: `LAYOUT_AWAITED` where they are to be loaded beside what they are, `LAYOUT_TOO_NEW`.
            HeadraceError: What went wrong; what was published before stays.
        """
        return self.plan_group(names, heads, full=full, patience=patience, resolved=resolved, held=held).run()

    def plan_group(
        self,
        names: Sequence[TableName],
        heads: Cut,
        *,
        full: Collection[TableName] = (),
        patience: float = 0.0,
        resolved: Mapping[TableName, Resolution] = UNRESOLVED,
        held: Held = tuple,
        awaited: Sequence[Sequence[TableName]] = (),
        given_up: Callable[[], bool] = lambda: False,
    ) -> GroupRefresh:
        """Return what `refresh_group` runs, not begun yet, for threads that share it.

        The rest is as in `Order`.
        """
        redefine = self._redefine(names, heads, resolved=resolved)
        if redefine is not None:
            refuse_newer(self.catalog.stream_table(name) for name in names if name not in full)
        if redefine is not None and not full and not resolved:
            refuse_waiting(names, waiting_in(self.catalog, self.refresher.defaults))
        group = tuple(names) if len(names) > 1 else ()
        order = Order(
            names=names,
            heads=heads,
            full=full,
            group=group,
            patience=patience,
            resolved=resolved,
            redefine=redefine,
            held=held,
            awaited=awaited,
            given_up=given_up,
        )
        return self.refresher.together(order)

    def follow(
        self,
        names: Sequence[TableName],
        heads: Cut,
        staged: Mapping[TableName, Head],
        beside: Mapping[TableName, Details],
        held: Held,
    ) -> GroupRefresh:
        """Return a refresh of stream tables over others that are staged, and published along.

        Their fuses let what changes pass: whoever publishes the others has decided about it.

        Args:
            names: The stream tables, producers first.
            heads: The cut.
            staged: Heads of the others.
            beside: Their new definitions.
            held: Leases that the caller holds, at least on the others.
        """
        resolved = dict.fromkeys(names, Resolution.APPLY)
        redefine = self._redefine(names, heads, resolved=resolved, beside=beside)
        if redefine is not None:
            refuse_newer(map(self.catalog.stream_table, names))
        order = Order(
            names=names, heads=heads, patience=PATIENCE, resolved=resolved, redefine=redefine, held=held, staged=staged
        )
        return self.refresher.together(order)

    def _redefine(
        self,
        names: Sequence[TableName],
        heads: Cut,
        given: Mapping[TableName, Given] = NONE_GIVEN,
        *,
        resolved: Mapping[TableName, Resolution] = UNRESOLVED,
        beside: Mapping[TableName, Details] = NONE_BESIDE,
    ) -> Redefine | None:
        """Return what makes new definitions of stream tables; None where all that they have hold."""
        heads.take_mirrors()
        if not given and not self.redefiner.needed(names, heads, beside):
            return None
        return partial(self.redefiner.redefine, names, heads, given, resolved, beside=beside)

    # ---- creating

    def _create(self, spec: TableSpec, details: Details, greens: tuple[Green, ...] = ()) -> RefreshResult | None:
        # schedulers hear of a new table at once, and would load it, too
        with holding_leases(self.catalog, [resource_of(spec.name)]) as own:
            self._define(spec, details, greens, own)
            if not spec.initialize:
                return None
            try:
                return self._loaded(spec.name, self._tables(), held=own)
            except BaseException:  # an interrupt, too, must not leave an empty table behind
                if self.catalog.find_stream_table(spec.name) is not None:
                    self.drop_together((spec.name,), held=own)
                raise

    def _define(self, spec: TableSpec, details: Details, greens: tuple[Green, ...], own: Held) -> None:
        """Make the stored tables of a new stream table, and publish its definition.

        Args:
            spec: The stream table.
            details: Its definition.
            greens: What it is to a deployment.
            own: The lease on it.
        """
        suffix = new_suffix()
        names = stored_names(spec.name, suffix)
        companion = names.companion.within(LAKE) if needs_companion(details, spec.refresh_mode) else None
        definition = definition_of(spec, details, companion)
        logless = self.tables.logless(sources_of(details))
        created = (spec.name, *((companion,) if companion else ()))
        with holding_leases(self.catalog, [resource_of(n) for n in logless]) as others:
            self.catalog.reset_staging((spec.name,), held=own())  # what a process that was killed has left
            try:
                self.tables.start_logs(logless)
                self.tables.make(names.state, details.output, suffix)
                if companion and details.companion:
                    self.tables.make(names.companion, details.companion, suffix)
                self.catalog.publish_or_settle(
                    Publication(
                        swaps=tuple(Swap(t, None) for t in created),
                        definitions=(definition,),
                        leases=(*own(), *others()),
                        greens=greens,
                    )
                )
            except HeadraceError:
                self.catalog.reset_staging(created, held=own())
                raise
        self._restart_logs(logless, sources_of(details))

    def _restart_logs(self, started: Sequence[TableName], sources: Sequence[TableName]) -> None:
        """Start change logs that ended, being unread, while their new reader was being made."""
        if late := [name for name in self.tables.logless(sources) if name not in started]:
            with holding_leases(self.catalog, [resource_of(n) for n in late], patience=PATIENCE):
                self.tables.start_logs(self.tables.logless(late))

    def _replace(self, existing: StreamTable, given: Given) -> RefreshResult:
        """Load a stream table under a new definition, and its group with it."""
        tables = self._tables()
        definition = definition_of(given.spec, given.details, log=existing.log)
        anew = {**tables, existing.name: defined_as(existing, definition)}
        return self._loaded(existing.name, anew, given)

    def _loaded(
        self,
        name: TableName,
        tables: Mapping[TableName, StreamTable],
        given: Given | None = None,
        held: Held = tuple,
    ) -> RefreshResult:
        """Load a stream table, with its group at one cut, or alone from versions that agree.

        Args:
            name: The stream table.
            tables: All stream tables, by the definitions that are to hold.
            given: Its new definition, where it had another one.
            held: Leases that the caller holds.
        """
        with self.catalog.reading() as reader:
            databases = reader.sources()
        left_alone = held_up(tables, self.catalog.scheduling_states())
        left_alone |= waiting_in(self.catalog, self.refresher.defaults).keys() - {name}
        if given is not None:
            left_alone |= lose_columns(tables, name, given.details)
        plan = load_plan(grouping(tables, self.refresher.defaults, databases), name, left_alone)
        anew = NONE_GIVEN if given is None else {name: given}
        for last in (False, True):
            try:
                results = self._load(plan, anew, held)
                break
            except HeadraceError as error:
                if last or error.code != "CUT_OVERTAKEN":  # whoever was waited for had seen more
                    raise
        return next(r for r in results if r.name == str(name))

    def _load(self, plan: LoadPlan, given: Mapping[TableName, Given], held: Held) -> tuple[RefreshResult, ...]:
        heads, names = self.refresher.heads(), plan.members
        redefine = self._redefine(names, heads, given)
        patience = PATIENCE if len(names) > 1 else 0.0
        order = Order(
            names=names,
            heads=heads,
            group=plan.group,
            patience=patience,
            redefine=redefine,
            aligned=plan.aligned,
            held=held,
        )
        return self.refresher.together(order).run()

    def _tables(self) -> dict[TableName, StreamTable]:
        return {t.name: t for t in self.catalog.stream_tables()}

    # ---- graph

    def _refuse_cycle(self, name: TableName, details: Details, *, new: bool) -> None:
        """Refuse a definition that closes a cycle which is not allowed.

        Raises:
            UserError: `CYCLE`, naming the path, where cycles are not allowed, and for a table that is new: others read
                what was there under its name.
        """
        graph = Dag({**self.catalog.dependencies(), name: sources_of(details)})
        if (path := graph.cycle(through=name)) and (new or not self.refresher.defaults.allow_cycles):
            raise cycle_error(path)

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


def refuse_green(catalog: Catalog, name: TableName) -> None:
    """Refuse to define a second generation by the statements for public stream tables.

    Raises:
        UserError: `IN_DEPLOYMENT`.
    """
    if green := next((g for g in catalog.greens() if g.name == name and not g.public), None):
        raise UserError(
            "IN_DEPLOYMENT",
            f"{name} belongs to deployment {green.deployment} of {green.original}.",
            hint=f"`headrace deploy cancel {green.original}` ends it; then begin again with `headrace deploy create`.",
        )


def refuse_deployed(catalog: Catalog, names: Collection[TableName]) -> None:
    """Refuse to drop members of deployments, and what has two generations.

    What Headrace itself has beside a table goes with it.

    Raises:
        UserError: `IN_DEPLOYMENT`.
    """
    for green in catalog.greens():
        if is_layout_deployment(green.deployment) and {green.name, green.original} <= set(names):
            continue
        if green.name in names or (green.role is Role.EXCHANGE and green.original in names):
            raise UserError(
                "IN_DEPLOYMENT",
                f"{green.original} is part of deployment {green.deployment}"
                f"{'' if green.public else f', as {green.name}'}; nothing was dropped.",
                hint=f"`headrace deploy cancel {green.original}` ends that first.",
            )
