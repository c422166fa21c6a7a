"""Refreshes and verifies stream tables by hand."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from headrace.api.project_handle import Names, ProjectHandle
from headrace.api.schedules.maintenance_ages import ORPHAN_AGE, SNAPSHOT_AGE
from headrace.catalog import ForeignWrite, Status, StreamTable
from headrace.errors import UserError
from headrace.events import Notice, cycle_told
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.results.refresh_results import (
    RefreshResult,
    VerifyResult,
)

if TYPE_CHECKING:
    from headrace.api.schedules.refresh_units import Outcome
    from headrace.refresh.cut.cut import Cut
    from headrace.refresh.definition.source_keys import SourceKeys
    from headrace.refresh.groups.grouping import Grouping
    from headrace.refresh.groups.side_by_side import Together
    from headrace.refresh.maintenance import MaintenanceResult


T = TypeVar("T")


class RefreshVerbs(ProjectHandle):
    """Verbs that bring contents up to date, and prove them."""

    @overload
    def refresh(
        self, names: str, *, full: bool = ..., wait: dt.timedelta = ..., max_concurrent: int | None = ...
    ) -> RefreshResult: ...
    @overload
    def refresh(
        self,
        names: list[str] | tuple[str, ...] | None = ...,
        *,
        full: bool = ...,
        wait: dt.timedelta = ...,
        max_concurrent: int | None = ...,
    ) -> tuple[RefreshResult, ...]: ...
    def refresh(
        self,
        names: str | Names | None = None,
        *,
        full: bool = False,
        wait: dt.timedelta = dt.timedelta(0),
        max_concurrent: int | None = None,
    ) -> RefreshResult | tuple[RefreshResult, ...]:
        """Bring stream tables up to date; all of them against one cut, sources before consumers.

        Those that do not read each other run side by side, within the quotas of their pools, as schedules have them. A
        table that belongs to a group (see `diamond_groups`) is refreshed and published with its group. Databases that
        they read are landed first; when that fails, what can be refreshed is refreshed all the same.

        Args:
            names: One, several, or (None) all.
            full: Recompute, whatever changed.
            wait: How long to wait for somebody else, such as a scheduler, who is refreshing one of them.
            max_concurrent: Refreshes at once, 1 to 32; `max_concurrent_refreshes` of the settings when None.

        Returns:
            One result for one name, else a tuple, sources before consumers.

        Raises:
            HeadraceError: A failure, after everything that does not depend on it was refreshed; of several the first in
                order of dependency.
        """
        from headrace.api.schedules.project_defaults import slots_of

        slots = slots_of(self.settings, max_concurrent)
        if isinstance(names, str):
            return self._after_landing(
                [self._name(names)], lambda wanted: self._refresh_one(wanted[0], full, wait, slots)
            )
        wanted = self._names(names) if names is not None else None
        return self._after_landing(wanted, lambda wanted: self._refresh_in_order(wanted, full, wait, slots))

    def _refresh_one(self, name: TableName, full: bool, wait: dt.timedelta, slots: int) -> RefreshResult:
        results = self._refresh_in_order([name], full, wait, slots)
        return next(r for r in results if r.name == str(name))

    def _after_landing(self, wanted: list[TableName] | None, refresh: Callable[[Any], T]) -> T:
        """Land what tables read, refresh them, then write their sinks.

        A failure to land or to write is raised when all of it is done.
        """
        from headrace.api.safeguards.gates import gated_above

        self._catalog.refuse_copy()
        with cycle_told(self.events, "refresh"):
            failure = self.sources.land_for(wanted)
            if held := gated_above(self._catalog, wanted):
                self.events.emit(Notice(f"Held back by closed gates: {', '.join(map(str, held))}."))
            try:
                result = refresh(wanted)
            finally:  # what was published is written, also where another table failed
                unwritten = self.sinks.write_for(wanted)
        failure = failure or unwritten
        if failure is not None:
            raise failure
        return result

    def _bring_layout(self, name: TableName, patience: float) -> None:
        """Load a table's new stored layout beside the running one, and exchange the two."""
        from headrace.api.deploying.promoting import layout_upgrades_of
        from headrace.clock import SystemClock
        from headrace.deploy.load_journal import noting_loads

        with noting_loads(self._catalog, self.events, SystemClock()):
            done = layout_upgrades_of(self._engine().creator, self._lazy).finish(name, patience)
        if done is not None:
            names = ", ".join(table.name for table in done.tables)
            self.events.emit(Notice(f"{names}: new stored layout, loaded beside and exchanged ({done.deployment})."))

    def _refresh_in_order(
        self, wanted: list[TableName] | None, full: bool, wait: dt.timedelta, slots: int
    ) -> tuple[RefreshResult, ...]:
        from headrace.api.safeguards.watermarks import apart_units

        heads, grouping, damaged = self._heads(), self._grouping(), self._damaged()
        order = [n for n in grouping.graph.order(grouping.options) if wanted is None or n in wanted]
        if wanted is not None:
            for name in wanted:
                self._catalog.stream_table(name)
        elif not full:
            order = self._behind(order, heads, damaged)
        recomputed, apart = frozenset(order if full else ()), apart_units(self._catalog, grouping)

        def refuse(unit: TableName) -> None:
            if unit in apart:
                if wanted is None:  # nobody asked for these in particular
                    self.events.emit(Notice(apart[unit].message))
                raise apart[unit]
            self._refuse_damaged(grouping.units.members[unit], damaged, recomputed)

        outcome = self._refresh_units(grouping, order, heads, refuse, recomputed, wait.total_seconds(), slots)
        for unit, error in outcome.errors.items():
            dropped = error.code == "STREAM_TABLE_NOT_FOUND" and len(grouping.units.members[unit]) == 1
            if wanted is not None or not (dropped or unit in apart):
                raise error
        return outcome.results

    def _refresh_units(
        self,
        grouping: Grouping,
        names: Sequence[TableName],
        heads: Cut,
        refuse: Callable[[TableName], None],
        full: Collection[TableName],
        patience: float,
        slots: int,
    ) -> Outcome:
        from headrace.api.schedules.project_defaults import quotas_of
        from headrace.api.schedules.refresh_units import UnitsRefresh
        from headrace.api.schedules.run_schedules import EngineWorker
        from headrace.api.schedules.unit_attempts import UnitAttempts
        from headrace.scheduler.policy.unit_tasks import unit_tasks

        creator, members, abandoned = self._engine().creator, grouping.units.members, threading.Event()

        def begin(unit: TableName, at: Cut) -> Together:
            return creator.plan_group(members[unit], at, full=full, patience=patience, given_up=abandoned.is_set)

        def first(unit: TableName) -> Together:
            refuse(unit)
            return begin(unit, heads)

        def bring_layout(unit: TableName) -> None:
            self._bring_layout(members[unit][0], patience)

        attempts = UnitAttempts(self._catalog, begin, self._heads, bring_layout)
        self._lazy.adopt()
        worker = EngineWorker(creator, self._lazy)
        units = grouping.units.dag.order({grouping.units.unit_of[name] for name in names})
        return UnitsRefresh(
            {unit: partial(first, unit) for unit in units},
            grouping.units.dag,
            unit_tasks(grouping),
            slots=slots,
            quotas=quotas_of(self.settings),
            cancel=lambda tables: worker.cancel((*tables, *attempts.loaded_for(tables))),
            again=attempts.again,
            abandoned=abandoned,
        ).run()

    def _damaged(self) -> Mapping[TableName, ForeignWrite]:
        """Return stored tables that others have changed, from one query."""
        return {write.name: write for write in self._catalog.foreign_writes()}

    def _refuse_damaged(
        self, members: Sequence[TableName], damaged: Mapping[TableName, ForeignWrite], full: Collection[TableName]
    ) -> None:
        """Refuse stream tables that others have changed, though nothing they read has moved.

        Raises:
            EnvironmentFault: `FOREIGN_WRITER`, `STORED_TABLE_DROPPED`.
        """
        from headrace.refresh.guards import foreign_writer

        for name in members if damaged else ():
            changed = [t for t in self._catalog.stream_table(name).stored if t in damaged]
            if changed and name not in full:
                raise foreign_writer(damaged[changed[0]], name)

    def _behind(self, order: list[TableName], heads: Cut, damaged: Mapping[TableName, ForeignWrite]) -> list[TableName]:
        """Return the tables whose sources moved, that read such a table, or that are damaged."""
        from headrace.refresh.definition.source_keys import SourceKeys

        with self._catalog.reading() as reader:
            tables = {t.name: t for t in reader.stream_tables()}
            frontiers, newest = reader.frontiers(), reader.newest_versions()
        base = {s for n in order for s in tables[n].sources if s not in tables}
        versions = {n: v.version for n, v in newest.items()}
        versions |= heads.versions(base, lambda *_: None)  # whoever reads what cannot be read says so
        behind: list[TableName] = []
        keys = SourceKeys(self._catalog)
        for name in order:
            frontier = frontiers.get(name, Frontier())
            moved = any(frontier.get(s) != versions.get(s) or s in behind for s in tables[name].sources)
            moved = moved or not damaged.keys().isdisjoint(tables[name].stored)
            if moved or name not in newest or not frontier or self._unsettled(tables[name], keys):
                behind.append(name)
        return behind

    def _unsettled(self, table: StreamTable, keys: SourceKeys) -> bool:
        try:
            return table.status is not Status.ACTIVE or self._engine().creator.outdated(table, keys)
        except UserError:  # functions that cannot be loaded: whoever refreshes the table says so
            return True

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

    def maintain(
        self,
        names: str | Names | None = None,
        *,
        older_than: dt.timedelta = SNAPSHOT_AGE,
        orphans_older_than: dt.timedelta = ORPHAN_AGE,
        dry_run: bool = False,
    ) -> tuple[MaintenanceResult, ...]:
        """Expire snapshots, compact, trim logs, remove orphan files, drop expired generations.

        Whatever a frontier needs is kept.

        Args:
            names: Stream tables or mirrors, one or several; or (None) all, with the files of what was dropped.
            older_than: Snapshots younger than this stay.
            orphans_older_than: Unreferenced files younger than this stay.
            dry_run: Say what would be done.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `INVALID_OPTION`.
        """
        from headrace.api.schedules.project_defaults import defaults_of
        from headrace.config import parse_keep_history
        from headrace.deploy.expired_generations import drop_expired
        from headrace.refresh.maintenance import maintain

        wanted = None if names is None else self._names([names] if isinstance(names, str) else names)
        if not dry_run and wanted is None:
            engine = self._engine()
            drop_expired(self._catalog, engine.creator, engine.refresher.clock.now())
        return maintain(
            self._catalog,
            self._lazy,
            older_than=older_than,
            orphans_older_than=orphans_older_than,
            dry_run=dry_run,
            keep_history=parse_keep_history(self.settings.keep_history),
            names=wanted,
            defaults=defaults_of(self.settings),
        )
