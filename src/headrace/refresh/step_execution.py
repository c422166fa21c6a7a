"""Runs the steps of a DIFFERENTIAL refresh, and decides adaptively while they run.

A step of which nothing can come is not computed, a conditional one only where its condition has rows; a source is read
within the ranges of a change's keys, or not at all; few rows are held as literal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace.ivm.program import DeltaProgram, Key
from headrace.lake.apply_change import Change, Target, change_for, measures_for
from headrace.physical import stage_planner
from headrace.physical.dead_steps import DeadSteps
from headrace.physical.facts import Common
from headrace.physical.key_ranges import ranges_of
from headrace.physical.stages import Compute, Policy, ReadChange
from headrace.physical.step_runs import Skipped, StepRun
from headrace.physical.view_names import view_name
from headrace.refresh.run_context import RunContext
from headrace.refresh.temporary_results import TemporaryResults
from headrace.statistics.observations import Strategy, StrategyFailed

COUNT: Mapping[str, str] = {"rows": "count(*)"}

OnCompanion = Callable[[Compute, Mapping[str, Any]], None]
"""Is handed the stage that computes the companion's change, when it can begin, and what was counted so far."""


@dataclass(slots=True)
class Computed:
    """The results of a refresh's steps.

    Args:
        measured: What was counted along the way, by name.
        state: The change of the state, if it was measured; None: it was counted along with what it follows from.
    """

    measured: dict[str, Any] = field(default_factory=dict)
    state: Change | None = None


class StepExecution:
    """Runs the steps of one program.

    Args:
        context: The refresh.
        results: Keeps what steps compute.
    """

    def __init__(self, context: RunContext, results: TemporaryResults) -> None:
        self._context = context
        self._results = results
        self._large: int | None = None

    def run(self, program: DeltaProgram, state: Target, on_companion: OnCompanion) -> Computed:
        """Compute up to the change of the state.

        Args:
            program: What to compute.
            state: The table whose change it is.
            on_companion: Goes on with the companion, in another thread.
        """
        facts, found, dead = self._context.facts, Computed(), DeadSteps(program)
        self._large = stage_planner.large(facts)
        wanted = stage_planner.changed_view(facts, program)
        for stage in stage_planner.compute_stages(facts, program):
            match stage:
                case ReadChange():
                    self._read(stage)
                case Compute(name=stage_planner.COMPANION_CHANGE):
                    if not stage.materialized:
                        self._inline(stage)
                    on_companion(stage, found.measured)
                case Compute():
                    self._step(stage, dead, found, state if stage.view == wanted else None)
        return found

    def measured(self, stage: Compute, target: Target) -> Change:
        """Compute a change of a stored table, and measure it.

        Args:
            stage: Computes it.
            target: The table.
        """
        with self._context.timed(stage) as run:
            return self._measured(stage, target, run)

    # ---- stages

    def _read(self, stage: ReadChange) -> None:
        with self._context.timed(stage, stage.policy) as run:
            if stage.common is not None:
                self._results.read_common(stage.source, stage.common, stem="change", run=run)
            elif stage.policy is Policy.MATERIALIZE:
                self._keep(stage.view, stage.sql, None, run)
            else:
                sql = self._context.sql
                sql.inline(stage.view, stage.sql)

    def _inline(self, stage: Compute, *, empty: bool = False) -> None:
        sql = self._context.sql
        sql.inline(stage.view, sql.query(stage, empty=empty))

    def _step(self, stage: Compute, dead: DeadSteps, found: Computed, state: Target | None) -> None:
        """Run a step of the program; with `state` it is the change of that."""
        with self._context.timed(stage, stage.policy) as run:
            if stage.semijoin is not None and stage.common is not None:  # computed for others, too
                self._read_shared_semijoin(stage, stage.semijoin, stage.common, run)
            else:
                run.skipped = Skipped.DEAD if stage.name in dead.steps else self._needless(stage)
                if not stage.materialized:
                    self._inline(stage, empty=run.skipped is not None)
                elif stage.semijoin is not None:
                    self._keep_semijoin(stage, stage.semijoin, run)
                elif state is not None:
                    found.state = self._measured(stage, state, run)
                else:
                    found.measured |= self._keep(stage.view, self._query(stage, run), dict(stage.measures), run)
        if run.skipped is not None or run.rows == 0:
            dead.note_empty(stage.name)

    def _needless(self, stage: Compute) -> Skipped | None:
        """Ask for the condition of a step, if it has one."""
        context = self._context
        if stage.only_if is None or context.runner.run(context.sql.condition(stage, stage.only_if)):
            return None
        return Skipped.CONDITION

    def _query(self, stage: Compute, run: StepRun) -> str:
        return self._context.sql.query(stage, empty=run.skipped is not None)

    def _measured(self, stage: Compute, target: Target, run: StepRun) -> Change:
        found = self._keep(stage.view, self._query(stage, run), measures_for(target), run)
        return change_for(target, stage.view, found)

    def _keep(self, view: str, sql: str, aggregates: Mapping[str, str] | None, run: StepRun) -> Mapping[str, Any]:
        stem = view.removeprefix(view_name(self._context.facts, ""))
        return self._results.keep(view, sql, aggregates, stem=stem, large=self._large, run=run)

    # ---- semi-joins with a change

    def _keep_semijoin(self, stage: Compute, key: Key, run: StepRun) -> None:
        """Keep a semi-join with a change; stop doing so when it covers much of the source."""
        if run.skipped is None:
            sql = self._least(stage, key, (*key[1], str(self._context.facts.name)), run)
        else:
            sql = self._query(stage, run)
        found = self._keep(stage.view, sql, COUNT, run)
        self._note_much(key, found["rows"], Strategy.READ_ONCE)

    def _read_shared_semijoin(self, stage: Compute, key: Key, common: Common, run: StepRun) -> None:
        """Read a shared semi-join; stop sharing it when it covers much of the source."""
        least = partial(self._least, stage, key, key[1], run)
        stem = f"semijoin by {', '.join(key[1])}"
        found = self._results.read_common(key, common, COUNT, stem=stem, sql=least, run=run)
        sql = self._context.sql
        sql.inline(stage.view, f"SELECT * FROM {sql.table(common.view)}")
        self._note_much(key, found["rows"], Strategy.READ_TOGETHER)

    def _least(self, stage: Compute, key: Key, asked_as: tuple[str, ...], run: StepRun) -> str:
        """Write the statement that computes a semi-join and reads the least.

        Args:
            stage: Computes it.
            key: The source, and its columns that have the keys.
            asked_as: Under which name it is remembered of the source that its change did not have all of them.
            run: The stage's record.
        """
        context, reduction, ranges = self._context, stage.reduction, None
        if reduction.keys is not None:
            column, keys = reduction.keys
            found = ranges_of(column, context.runner.run(context.sql.gaps(stage, keys))[0])
            run.key_ranges, ranges = len(found.ranges), found.condition
        coverage, source = reduction.coverage, key[0]
        if coverage is not None and asked_as not in context.off(Strategy.READ_CHANGE_ONLY, source):
            run.covered = bool(context.runner.run(context.sql.is_covered(stage, coverage, ranges=ranges))[0][0])
            if run.covered:
                return context.sql.covered(stage, coverage)
            context.statistics.observe(StrategyFailed(Strategy.READ_CHANGE_ONLY, source, asked_as))
        return context.sql.query(stage, ranges=ranges)

    def _note_much(self, key: Key, rows: int, strategy: Strategy) -> None:
        source, columns = key
        if rows > stage_planner.MUCH * (self._context.facts.by_name[source].rows or 0):
            self._context.statistics.observe(StrategyFailed(strategy, source, columns))
