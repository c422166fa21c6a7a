"""Runs one refresh: FULL, DIFFERENTIAL, or what a cycle has settled on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Relation, Stored
from headrace.algebra.schema import Column
from headrace.algebra.types import followed
from headrace.catalog import Catalog
from headrace.compiler.compiled_view import CompiledView
from headrace.errors import InternalError
from headrace.events import Events
from headrace.ivm.consolidate import consolidated_apart, difference, exchanged
from headrace.ivm.program import DeltaProgram, TableChange
from headrace.lake.apply_change import MEASURES, Change, change_of, rows_grown
from headrace.lake.compare import incomparable
from headrace.lake.metadata import TableMeta
from headrace.names import quote
from headrace.physical import stage_planner
from headrace.physical.facts import Facts
from headrace.physical.leaves import Leaves, View
from headrace.physical.plan_sql import PlanSql
from headrace.physical.shared_changes import SharedChanges
from headrace.physical.stage_planner import COMPANION_CHANGE, NEW_ROWS, OLD_ROWS, STATE_CHANGE
from headrace.physical.stages import Compute, Stage, Write
from headrace.physical.view_names import view_name
from headrace.ports import Runner
from headrace.refresh.groups.cycle_fixpoint import Fixpoint
from headrace.refresh.run_context import Outcome, RunContext
from headrace.refresh.step_execution import StepExecution
from headrace.refresh.table_writes import TableWrites
from headrace.refresh.temporary_results import TemporaryResults
from headrace.sources.lakehouse.changes_sql import rows_sql
from headrace.statistics.session_statistics import SessionStatistics

Beside = Callable[[Callable[[], object]], None]
"""Has something done in another thread while this one goes on."""

_TABLES = 3
"""As many stored tables as one refresh writes: state, companion and log."""


class Run:
    """One refresh under way.

    Args:
        facts: What it was planned from.
        runner: Runs Spark SQL under the definition's semantics.
        catalog: Where the `staging` pointers are.
        events: Told of each stage.
        catalogs: Gives the catalogs the session knows; asking Spark takes 30 ms.
        changes: What is kept of changes that several stream tables read.
        statistics: What earlier refreshes observed; this one reports to it.
    """

    def __init__(
        self,
        facts: Facts,
        runner: Runner,
        catalog: Catalog,
        events: Events,
        catalogs: Callable[[], frozenset[str]],
        changes: SharedChanges,
        statistics: SessionStatistics,
    ) -> None:
        self.facts = facts
        self.catalogs = catalogs
        self._context = RunContext(facts, runner, catalog, events, changes, statistics, PlanSql(facts))
        self._results = TemporaryResults(self._context)
        self._steps = StepExecution(self._context, self._results)
        self._tables = TableWrites(self._context, self._results)

    @property
    def outcome(self) -> Outcome:
        """Return what it has done so far."""
        return self._context.outcome

    def close(self) -> None:
        """Free temporary results."""
        self._results.close()

    # ---- the ways

    def full(self, view: CompiledView | None, *, companion: bool = True) -> None:
        """Recompute; consumers still receive only the difference.

        Args:
            view: The query; None where it is not maintained.
            companion: Whether the companion, if there is one, is written, too, or left behind.
        """
        self._overwrite(stage_planner.full_stages(self.facts, view, self.catalogs(), companion=companion))

    def settled(self, fixpoint: Fixpoint, *, onwards: bool) -> None:
        """Store what the table holds at the fixed point of its cycle.

        Args:
            fixpoint: The cycle, iterated.
            onwards: Whether it went on from what the table holds; else it began with nothing.
        """
        facts, columns = self.facts, self.facts.details.output
        found = fixpoint.contents(facts.name)
        if not onwards and (facts.forced or facts.obstacle is not None or facts.first_load):
            listed = ", ".join(quote(c.name) for c in columns)
            stage = stage_planner.overwrite_state(facts, f"SELECT {listed} FROM {quote(found)}", found)
            return self._overwrite((stage,))
        self.outcome.compared = True
        moved = self._gained(fixpoint) if onwards else self._compared(found)
        if moved is None:
            return None
        target = self._tables.state()
        change = self._steps.measured(moved, target)
        self.outcome.inserted, self.outcome.deleted = change.inserted, change.deleted
        self._tables.apply(target, change)
        if change.rows:
            self._tables.append_log(change)
        return None

    def taken_over(self, rows: str) -> None:
        """Store rows from elsewhere; consumers receive the difference.

        Args:
            rows: Table expression of the rows.
        """
        facts, columns = self.facts, self.facts.details.output
        found = f"SELECT {', '.join(quote(c.name) for c in columns)} FROM {rows}"
        if incomparable(columns) or not all(followed(c.type) for c in columns):
            return self._overwrite((stage_planner.overwrite_state(facts, found),))
        self.outcome.compared = True
        leaves: Leaves = {OLD_ROWS: facts.state_at or "", NEW_ROWS: rows}
        moved = self._stage(STATE_CHANGE, _difference(columns), leaves)
        target = self._tables.state()
        change = self._steps.measured(moved, target)
        self.outcome.inserted, self.outcome.deleted = change.inserted, change.deleted
        if change.rows:  # written as they are: of equal rows, merging might keep what was there
            self._tables.apply(target, replace(change, contents=found))
            self._tables.append_log(change)
        return None

    def differential(self, program: DeltaProgram) -> None:
        """Compute the change, then apply it; the companion's as soon as it is known."""
        facts, direct = self.facts, stage_planner.is_direct(self.facts, program)
        with self._side_by_side() as beside:

            def on_companion(stage: Compute, measured: Mapping[str, Any]) -> None:
                if program.companion is not None:
                    beside(partial(self._follow_companion, program.companion, stage, measured))

            state = self._tables.state(program.state.key, append_only=program.state.insert_only)
            found = self._steps.run(program, state, on_companion)
            if direct:
                return self._gain(stage_planner.append_stage(facts, program, self._context.sql))
            change = found.state or stage_planner.counted_change(facts, STATE_CHANGE, found.measured)
            self.outcome.inserted, self.outcome.deleted = change.inserted, change.deleted
            if facts.log is not None and change.rows:
                beside(lambda: self._tables.append_log(change))
            return self._tables.apply(state, self._with_contents(STATE_CHANGE, program.state, change))

    # ---- FULL

    def _overwrite(self, stages: Sequence[Stage]) -> None:
        facts, (*first, state) = self.facts, stages
        with self._side_by_side() as beside:
            for stage in first:
                if isinstance(stage, Compute):
                    self._keep(stage)
                elif isinstance(first[0], Compute):  # what is written next is read from memory
                    beside(partial(self._write, stage))
                else:
                    self._write(stage)
            before = self._write(state)
        after = self.outcome.written[facts.name]
        if facts.log is None or facts.first_load:
            self.outcome.inserted, self.outcome.deleted = after.row_count or 0, before.row_count or 0
            return
        change = self._difference(before, after)
        self.outcome.inserted, self.outcome.deleted, self.outcome.compared = change.inserted, change.deleted, True
        if change.rows:
            self._tables.append_log(change)

    def _write(self, stage: Stage) -> TableMeta:
        if not isinstance(stage, Write):
            raise InternalError("PLAN_INVALID", f"Stage '{stage.title}' cannot be written.")
        return self._tables.write(stage)

    def _keep(self, stage: Compute, aggregates: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        sql = self._context.sql.query(stage)
        with self._context.timed(stage) as run:
            return self._results.keep(stage.view, sql, aggregates, stem=stage.name, run=run)

    def _difference(self, before: TableMeta, after: TableMeta) -> Change:
        facts, output = self.facts, self.facts.details.output
        leaves: Leaves = {
            OLD_ROWS: rows_sql(facts.name, before, before.current_snapshot_id),
            NEW_ROWS: rows_sql(facts.state, after, after.current_snapshot_id),
        }
        stage = self._stage("difference", _difference(output), leaves)
        return change_of(stage.view, self._keep(stage, MEASURES))

    # ---- DIFFERENTIAL

    def _gain(self, stage: Write) -> None:
        """Write the rows that a table gains, and learn from the table how many they were."""
        before = self._tables.write(stage)
        self.outcome.inserted = rows_grown(before, self.outcome.written[self.facts.name])

    def _follow_companion(self, companion: TableChange, stage: Compute, measured: Mapping[str, Any]) -> None:
        facts = self.facts
        if facts.companion is None:
            return
        target = self._tables.companion(facts.companion, companion.key)
        if stage.materialized:
            change = self._steps.measured(stage, target)
        else:
            change = stage_planner.counted_change(facts, COMPANION_CHANGE, measured)
        self._tables.apply(target, self._with_contents(COMPANION_CHANGE, companion, change))

    def _with_contents(self, name: str, table: TableChange, change: Change) -> Change:
        stage = stage_planner.contents(self.facts, name, table)
        return change if stage is None else replace(change, contents=self._context.sql.query(stage))

    @contextmanager
    def _side_by_side(self) -> Iterator[Beside]:
        """Write independent tables in parallel, as small commits mostly wait for files and locks."""
        futures: list[Future[int | None]] = []

        def counted(write: Callable[[], object]) -> int | None:
            with self._context.runner.jobs(f"refresh {self.facts.name}") as group:
                write()
            return group.jobs

        with ThreadPoolExecutor(_TABLES, thread_name_prefix="headrace-write") as pool:
            yield lambda write: futures.append(pool.submit(counted, write))
        if futures:
            jobs = [future.result() for future in futures]
            self.outcome.jobs = None if None in jobs else sum(j for j in jobs if j is not None)

    # ---- cycles

    def _compared(self, found: str) -> Compute:
        """Plan the change from what is published to what a view has."""
        names = tuple(c.name for c in self.facts.details.output)
        leaves: Leaves = {OLD_ROWS: self.facts.state_at or "", NEW_ROWS: View(found)}
        return self._stage(STATE_CHANGE, difference(Stored(OLD_ROWS, names), Stored(NEW_ROWS, names)), leaves)

    def _gained(self, fixpoint: Fixpoint) -> Compute | None:
        """Plan what a member of a cycle gained; None where it gained nothing."""
        gains = fixpoint.gains(self.facts.name)
        if gains is None:
            return None
        relation, views = gains
        return self._stage(STATE_CHANGE, relation, {view: View(view) for view in views})

    def _stage(self, name: str, relation: Relation, leaves: Leaves) -> Compute:
        reads = frozenset(at.name for at in leaves.values() if isinstance(at, View))
        return Compute(name, view_name(self.facts, name), relation, reads, leaves=leaves)


def _difference(columns: tuple[Column, ...]) -> Relation:
    """Return the change from a table's old rows to its new ones.

    Of what cannot be compared, such as a variant, everything leaves and everything comes. Values that are equal and
    not the same are told apart: rows stored before those had one form only may have been read in the other.

    Args:
        columns: The table's columns.
    """
    names = tuple(c.name for c in columns)
    change = exchanged(Stored(OLD_ROWS, names), Stored(NEW_ROWS, names))
    if incomparable(columns) or not all(followed(c.type) for c in columns):
        return change
    return consolidated_apart(change, {c.name: c.type for c in columns if not equal_means_same(c.type)})
