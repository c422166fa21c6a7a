"""Runs the stages of one refresh."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from headrace.algebra.relations import Scan, Stored
from headrace.algebra.schema import Column
from headrace.algebra.types import followed
from headrace.catalog import Catalog
from headrace.compiler.compiled_view import CompiledView
from headrace.errors import InternalError
from headrace.events import Events, StageFinished, StageStarted
from headrace.ivm.change import union_all, weigh
from headrace.ivm.consolidate import difference
from headrace.ivm.program import DeltaProgram, Key, TableChange
from headrace.lake.apply_change import (
    MEASURES,
    Change,
    Method,
    Target,
    change_of,
    commits,
    measures,
    plan_apply,
    plan_log,
    rows_grown,
    run_apply,
)
from headrace.lake.compare import incomparable
from headrace.lake.metadata import TableMeta
from headrace.names import LAKE, STAGING, WEIGHT, TableName, quote
from headrace.physical import stage_planner
from headrace.physical.dead_steps import Needless
from headrace.physical.facts import Common, Facts
from headrace.physical.key_ranges import WITHIN, condition, gaps_sql
from headrace.physical.scan_reduction import ScanReduction
from headrace.physical.shared_changes import FEW_CHANGED, About, CommonChanges, view_of
from headrace.physical.stages import Compute, ReadChange, Stage, Write
from headrace.physical.step_runs import Policy, StepRun
from headrace.ports import Runner
from headrace.refresh.groups.cycle_fixpoint import Fixpoint
from headrace.refresh.staging_tables import only_ours, somebody_elses, staged, untouched
from headrace.sources.lakehouse.changes_sql import rows_sql
from headrace.sql.lower import lower
from headrace.statistics.observations import StepCounted, Strategy, StrategyFailed
from headrace.statistics.session_statistics import SessionStatistics

Beside = Callable[[Callable[[], object]], None]
"""Has something done in another thread while this one goes on."""

_TABLES = 3
"""As many stored tables as one refresh writes: state, companion and log."""


@dataclass(slots=True)
class Outcome:
    """What a run has done so far.

    Args:
        written: Stored tables that were written, by `lake` name, with their metadata in `staging` now.
        inserted: Rows that appear in the state.
        deleted: Rows that disappear.
        seconds: Seconds per stage, by title.
        jobs: Spark jobs run, where the session can tell.
        compared: Whether `inserted` and `deleted` count what really differs, not whole contents.
        shared: Seconds by which it would have taken longer had all readers of what is common computed a part of it;
            negative for who computed it for others.
        steps: What became of each physical step, in the order in which they ended.
    """

    written: dict[TableName, TableMeta] = field(default_factory=dict)
    inserted: int = 0
    deleted: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    jobs: int | None = None
    compared: bool = False
    shared: float = 0.0
    steps: list[StepRun] = field(default_factory=list)


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
        changes: CommonChanges,
        statistics: SessionStatistics,
    ) -> None:
        self.facts = facts
        self.runner = runner
        self.catalog = catalog
        self.events = events
        self.catalogs = catalogs
        self.changes = changes
        self.statistics = statistics
        self.outcome = Outcome()
        self._views: list[str] = []
        self._common: list[str] = []
        self._texts: dict[str, str] = {}
        self._large: int | None = None

    def close(self) -> None:
        """Free temporary results."""
        for name in reversed(self._views):
            self.runner.release(name)
        for name in self._common:
            self.changes.leave(self.runner, name, self.facts.name)

    # ---- the two ways

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
        names = tuple(c.name for c in columns)
        found = fixpoint.contents(facts.name)
        if not onwards and (facts.forced or facts.obstacle is not None or facts.first_load):
            listed = ", ".join(map(quote, names))
            return self._overwrite((stage_planner.overwrite(facts.state, f"SELECT {listed} FROM {quote(found)}"),))
        self.outcome.compared = True
        sql = fixpoint.gains(facts.name) if onwards else self._compared(found, names)
        if sql is None:
            return None
        stage = Compute("change", stage_planner.view_name(facts, stage_planner.STATE_CHANGE), sql)
        with self._timed(stage):
            change = self._measured(stage, columns)
        self.outcome.inserted, self.outcome.deleted = change.inserted, change.deleted
        self._apply(facts.name, columns, None, facts.state_rows, change)
        if facts.log is not None and change.rows:
            self._append_log(change)
        return None

    def _compared(self, found: str, names: tuple[str, ...]) -> str:
        """The change from what is published to what a view has."""
        at = {stage_planner.OLD_ROWS: self.facts.state_at or "", stage_planner.NEW_ROWS: quote(found)}
        relation = difference(Stored(stage_planner.OLD_ROWS, names), Stored(stage_planner.NEW_ROWS, names))
        return lower(relation, lambda leaf: at[_stored_name(leaf)])

    def _overwrite(self, stages: Sequence[Stage]) -> None:
        facts, (*first, state) = self.facts, stages
        with self._side_by_side() as beside:
            for stage in first:
                if isinstance(stage, Compute):
                    with self._timed(stage):
                        self._keep(stage.view, stage.sql)
                elif isinstance(first[0], Compute):  # what is written next is read from memory
                    beside(partial(self._write, stage))
                else:
                    self._write(stage)
            before = self._write(state)
        after = self.outcome.written[facts.name]
        old_rows = before.row_count
        if facts.log is None or facts.first_load:
            self.outcome.inserted, self.outcome.deleted = after.row_count or 0, old_rows or 0
            return
        change = self._difference(before, after)
        self.outcome.inserted, self.outcome.deleted, self.outcome.compared = change.inserted, change.deleted, True
        if change.rows:
            self._append_log(change)

    def differential(self, program: DeltaProgram) -> None:
        """Compute the change, then apply it; the companion's as soon as it is known."""
        self._large = stage_planner.large(self.facts)
        with self._side_by_side() as beside:
            state, found = self._compute(program, beside)
            if stage_planner.is_direct(self.facts, program):
                return self._gain(stage_planner.append_stage(self.facts, program))
            change = state or stage_planner.counted_change(self.facts, stage_planner.STATE_CHANGE, found)
            self.outcome.inserted, self.outcome.deleted = change.inserted, change.deleted
            if self.facts.log is not None and change.rows:
                beside(lambda: self._append_log(change))
            return self._follow_state(program, change)

    def _gain(self, stage: Write) -> None:
        """Write the rows that a table gains, and learn from the table how many they were."""
        before = self._write(replace(stage, sqls=tuple(map(self._spliced, stage.sqls))))
        self.outcome.inserted = rows_grown(before, self.outcome.written[self.facts.name])

    def _follow_state(self, program: DeltaProgram, change: Change) -> None:
        facts = self.facts
        self._apply(facts.name, facts.details.output, program.state.key, facts.state_rows, change)

    def _follow_companion(self, companion: TableChange, stage: Compute, found: Mapping[str, Any]) -> None:
        facts = self.facts
        columns = facts.details.companion or ()
        if stage.kept:
            with self._timed(stage):
                change = self._measured(stage, columns)
        else:
            change = stage_planner.counted_change(facts, stage_planner.COMPANION_CHANGE, found)
        if facts.companion is not None:
            self._apply(facts.companion, columns, companion.key, None, change)

    @contextmanager
    def _side_by_side(self) -> Iterator[Beside]:
        """Write independent tables side by side: small commits wait for files and locks more than for a processor."""
        futures: list[Future[int | None]] = []

        def counted(write: Callable[[], object]) -> int | None:
            with self.runner.jobs(f"refresh {self.facts.name}") as group:
                write()
            return group.jobs

        with ThreadPoolExecutor(_TABLES, thread_name_prefix="headrace-write") as pool:
            yield lambda write: futures.append(pool.submit(counted, write))
        if futures:
            jobs = [future.result() for future in futures]
            self.outcome.jobs = None if None in jobs else sum(j for j in jobs if j is not None)

    # ---- stages

    def _compute(self, program: DeltaProgram, beside: Beside) -> tuple[Change | None, Mapping[str, Any]]:
        """Run the first half: the change of the state, if it was measured, and what was counted along the way.

        Args:
            program: What to compute.
            beside: Has the companion written in another thread.
        """
        wanted = stage_planner.changed_view(self.facts, program)
        found: dict[str, Any] = {}
        state: Change | None = None
        needless = Needless(program)
        for stage in stage_planner.compute_stages(self.facts, program):
            if isinstance(stage, Compute) and stage.name in needless.steps and stage.common is None:
                # what is common is computed for others, too
                stage = replace(stage, sql=_no_rows(stage.sql), only_if=None, sparing=ScanReduction())
            if (
                isinstance(stage, Compute)
                and program.companion is not None
                and stage.name == stage_planner.COMPANION_CHANGE
            ):
                if not stage.kept:
                    self._texts[quote(stage.view)] = self._spliced(stage.sql)
                beside(partial(self._follow_companion, program.companion, stage, found))
                continue
            with self._timed(stage):
                if isinstance(stage, ReadChange):
                    self._read(stage)
                elif isinstance(stage, Compute) and not stage.kept:
                    self._texts[quote(stage.view)] = text = self._needed(stage)
                    if text.endswith(_NEVER):
                        needless.note_empty(stage.name)
                elif isinstance(stage, Compute) and stage.near is not None and stage.common is not None:
                    self._collected(stage, stage.near, stage.common)
                elif isinstance(stage, Compute) and stage.near is not None:
                    self._near(stage, stage.near)
                elif isinstance(stage, Compute) and stage.view == wanted:
                    looked_for = () if program.state.gains else self.facts.details.output
                    state = self._measured(stage, looked_for)
                elif isinstance(stage, Compute):
                    found |= self._keep(stage.view, self._needed(stage), dict(stage.measures))
            if isinstance(stage, Compute) and self.runner.kept_count(stage.view) == 0:
                needless.note_empty(stage.name)
        return state, found

    def _read(self, stage: ReadChange) -> None:
        if stage.common is not None:
            self._common.append(stage.view)
            with self._expecting(stage.source, "change", stage.view) as few:
                self._in_common(stage.source, stage.common, few=few)
        elif stage.shared:
            self._keep(stage.view, stage.sql)
        else:
            self._texts[quote(stage.view)] = self._spliced(stage.sql)

    def _in_common(
        self,
        about: About,
        common: Common,
        measures: Mapping[str, str] | None = None,
        *,
        few: bool,
        sql: Callable[[], str] | None = None,
    ) -> Mapping[str, Any]:
        """Read what others read as well; whoever comes first computes it, and everybody bears a part of that."""
        begun = time.perf_counter()
        read = self.changes.read(self.runner, about, common, measures=measures, few=few, sql=sql)
        self.outcome.shared += read.seconds - (time.perf_counter() - begun)
        return read.measures

    def _collected(self, stage: Compute, near: Key, common: Common) -> None:
        """Read what is collected for several; where that is much of the source, each collects its own next time."""
        source, columns = near
        self._common.append(common.view)

        def least() -> str:
            return self._least(stage.sparing, near, common.sql, columns)

        with self._expecting(source, f"near by {', '.join(columns)}", common.view) as few:
            found = self._in_common(near, common, {"rows": "count(*)"}, few=few, sql=least)
        self._texts[quote(stage.view)] = f"SELECT * FROM {quote(common.view)}"
        self._note_much(near, found["rows"], Strategy.READ_TOGETHER)

    def _near(self, stage: Compute, near: Key) -> None:
        """Keep the rows near a change; where they are much of the source, it is read as needed next time."""
        sql = self._least(stage.sparing, near, self._spliced(stage.sql), (*near[1], str(self.facts.name)))
        found = self._keep(stage.view, sql, {"rows": "count(*)"})
        self._note_much(near, found["rows"], Strategy.READ_ONCE)

    def _least(self, sparing: ScanReduction, near: Key, sql: str, asked_as: tuple[str, ...]) -> str:
        """The statement that collects rows near a change and reads the least.

        Args:
            sparing: What may make it read less.
            near: The source, and the columns by which its rows are near.
            sql: The statement.
            asked_as: Under which name it is remembered of the source that not all of them had changed.
        """
        spans = WITHIN
        if sparing.numbers is not None:
            column, keys = sparing.numbers
            spans = condition(column, self.runner.run(gaps_sql(self._spliced(keys)))[0])
        source = self.facts.by_name[near[0]]
        if sparing.enclosed is not None and asked_as not in self._off(Strategy.READ_CHANGE_ONLY, source.name):
            question, instead = map(self._spliced, sparing.enclosed)
            if self.runner.run(question.replace(WITHIN, spans))[0][0]:
                return instead
            self.statistics.observe(StrategyFailed(Strategy.READ_CHANGE_ONLY, source.name, asked_as))
        return sql.replace(WITHIN, spans)

    def _note_much(self, near: Key, rows: int, strategy: Strategy) -> None:
        source, columns = near
        if rows > stage_planner.MUCH * (self.facts.by_name[source].rows or 0):
            self.statistics.observe(StrategyFailed(strategy, source, columns))

    def _off(self, strategy: Strategy, subject: TableName) -> frozenset[tuple[str, ...]]:
        return self.statistics.off(strategy, subject, by=self.facts.name)

    def _spliced(self, sql: str) -> str:
        """A statement with the queries in it that nothing is kept of.

        Each is read by few statements. As a temporary view it would have Spark analyse it once more and then look
        through all that is kept when it is dropped: 45 ms, of the 860 that a small aggregate takes to follow.
        """
        for name, text in tuple(self._texts.items()):  # another thread may add to them
            sql = sql.replace(name, f"({text})")
        return sql

    def _needed(self, stage: Compute) -> str:
        """The statement; one without rows when what the step is for does not occur."""
        sql = self._spliced(stage.sql)
        if stage.only_if is None or self.runner.run(f"SELECT 1 FROM ({self._spliced(stage.only_if)}) LIMIT 1"):
            return sql
        return _no_rows(sql)

    def _measured(self, stage: Compute, columns: tuple[Column, ...]) -> Change:
        found = self._keep(stage.view, self._needed(stage), measures(columns))
        return change_of(stage.view, found, columns)

    def _keep(self, name: str, sql: str, aggregates: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        self._views.append(name)
        table, step = self.facts.name, stage_planner.stem(self.facts, name)
        if self._large is None:
            with self._expecting(table, step, name) as few:
                return self.runner.materialize(name, sql, aggregates, few=few)
        most = self.statistics.at_most(table, step, self._large)
        found = self.runner.materialize(name, sql, aggregates, few=most is not None and most <= FEW_CHANGED)
        rows = self.runner.kept_count(name)
        if rows is not None and not sql.endswith(_NEVER):  # a step that is not needed tells nothing
            self.statistics.observe(StepCounted(table, step, self._large, rows))
        return found

    @contextmanager
    def _expecting(self, table: TableName, stem: str, view: str) -> Iterator[bool]:
        """Return whether few rows are to be expected under a name: not where they were more the last times."""
        few = stage_planner.is_few(self.facts) and (stem,) not in self._off(Strategy.LOCAL_ROWS, table)
        yield few
        if few and self.runner.literal_count(view) is None:
            self.statistics.observe(StrategyFailed(Strategy.LOCAL_ROWS, table, (stem,)))

    def _apply(
        self,
        table: TableName,
        columns: tuple[Column, ...],
        key: tuple[str, ...] | None,
        rows: int | None,
        change: Change,
    ) -> None:
        if rows is None:
            rows = self._staged(table).row_count
        unique = self.facts.details.keys if table == self.facts.name else ()
        rebuild = f"headrace refresh {self.facts.name} --full"
        failed = self._off(Strategy.DELETE_BY_COLUMNS, table)
        target = Target(table.within(STAGING), columns, key, rows, unique, failed, rebuild)
        applied = plan_apply(target, change)
        if applied.method is Method.NOTHING:
            return
        if applied.method in (Method.OVERWRITE, Method.APPEND):
            applied = replace(applied, statements=tuple(map(self._spliced, applied.statements)))
        elif text := self._texts.get(quote(change.view)):
            # which rows a delete finds is a question that Spark takes apart: it is asked of a view
            self._views.append(change.view)
            self.runner.view(change.view, text)
        stage = Write(target.table, applied.method.value.lower(), applied.statements, change.inserted - change.deleted)
        with self._timed(stage):
            before = self._before(table)
            with somebody_elses(table, before, lambda: self._staged(table), commits(applied)):
                after = run_apply(
                    applied,
                    self.runner,
                    lambda: self._staged(table),
                    lambda columns: self.statistics.observe(StrategyFailed(Strategy.DELETE_BY_COLUMNS, table, columns)),
                )
        only_ours(table, before, after, commits(applied))
        self.outcome.written[table] = after

    def _write(self, stage: Stage) -> TableMeta:
        """Run what writes a table; gives what the table was before."""
        if not isinstance(stage, Write):
            raise InternalError("PLAN_INVALID", f"Stage '{stage.title}' cannot be written.")
        table = stage.table
        with self._timed(stage):
            before = self._before(table)
            for sql in stage.sqls:
                self.runner.run(sql)
        after = self._staged(table)
        only_ours(table, before, after, len(stage.sqls))
        self.outcome.written[table.within(LAKE)] = after
        return before

    def _append_log(self, change: Change) -> None:
        facts = self.facts
        if facts.log is None:
            return
        log = facts.log.within(STAGING)
        sql = self._spliced(plan_log(log, facts.details.output, change, facts.next_version))
        self._write(Write(log, "log", (sql,)))
        if facts.readers and facts.version is not None:
            view = view_of(self.outcome.written[facts.log], facts.version, facts.next_version)
            listed = ", ".join(
                (*(quote(c.name) for c in facts.details.output), f"CAST({WEIGHT} AS BIGINT) AS {WEIGHT}")
            )
            rows = self._spliced(f"SELECT {listed} FROM {quote(change.view)}")
            self.changes.hand_over(self.runner, facts.name, view, rows, facts.details.output, facts.readers)

    def _difference(self, before: TableMeta, after: TableMeta) -> Change:
        facts = self.facts
        names = tuple(c.name for c in facts.details.output)
        rows = {
            stage_planner.OLD_ROWS: rows_sql(facts.name, before, before.current_snapshot_id),
            stage_planner.NEW_ROWS: rows_sql(facts.state, after, after.current_snapshot_id),
        }
        old, new = Stored(stage_planner.OLD_ROWS, names), Stored(stage_planner.NEW_ROWS, names)
        # of what cannot be compared, such as a variant, everything leaves and everything comes
        output = facts.details.output
        every = bool(incomparable(output)) or not all(followed(c.type) for c in output)
        relation = union_all(weigh(new, 1), weigh(old, -1)) if every else difference(old, new)
        view = stage_planner.view_name(facts, "difference")
        stage = Compute("difference", view, lower(relation, lambda leaf: rows[_stored_name(leaf)]))
        with self._timed(stage):
            return change_of(view, self._keep(view, stage.sql, MEASURES))

    # ---- helpers

    def _staged(self, table: TableName) -> TableMeta:
        return staged(self.catalog, table)

    def _before(self, table: TableName) -> TableMeta:
        """A table that is about to be written."""
        written = self.outcome.written.get(table.within(LAKE))
        return untouched(self.catalog, table) if written is None else written

    @contextmanager
    def _timed(self, stage: Stage) -> Iterator[None]:
        table = str(self.facts.name)
        self.events.emit(StageStarted(table, stage.title))
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.outcome.seconds[stage.title] = round(self.outcome.seconds.get(stage.title, 0.0) + seconds, 4)
        self.events.emit(StageFinished(table, stage.title, seconds))
        if isinstance(stage, Write):
            self.outcome.steps.append(StepRun(stage.title, Policy.STORED, writes=stage.table, seconds=seconds))
        elif isinstance(stage, Compute | ReadChange):
            policy = Policy.INLINE if quote(stage.view) in self._texts else Policy.MATERIALIZE
            step, reads = (stage.name, None) if isinstance(stage, Compute) else ("", stage.source)
            rows = self.runner.kept_count(stage.view)
            self.outcome.steps.append(
                StepRun(stage.title, policy, step, reads=reads, rows=rows, seconds=round(seconds, 4))
            )


_NEVER = " WHERE false"


def _no_rows(sql: str) -> str:
    """A statement as one that has the columns, and of which Spark computes nothing."""
    return f"SELECT * FROM ({sql}){_NEVER}"


def _stored_name(leaf: Scan | Stored) -> str:
    if isinstance(leaf, Scan):
        raise InternalError("PLAN_INVALID", f"A comparison of stored rows reads {leaf.source}.")
    return leaf.name
