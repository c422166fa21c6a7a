"""Prepares a refresh: gathers facts, chooses the mode and runs it, up to publishing."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from headrace.catalog import Catalog, Definition
from headrace.clock import Clock
from headrace.compiler.compiled_view import CompiledView, DeltaProgram
from headrace.cost.mode_choice import Choice, choose, obstacle
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.foreign_caches import look_anew
from headrace.errors import HeadraceError
from headrace.events import Events, RefreshStarted
from headrace.names import TableName
from headrace.physical.broadcasts import OF_BROADCASTS
from headrace.physical.facts import Facts, in_few_tasks
from headrace.physical.program_cache import Programs
from headrace.physical.shared_changes import SharedChanges
from headrace.ports import Runner, Session
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut, Head
from headrace.refresh.cut.observe import Observation
from headrace.refresh.definition.refused_queries import as_compiled
from headrace.refresh.execution import Run
from headrace.refresh.fuses.fuse import Resolution
from headrace.refresh.fuses.fuse_guard import guarded
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.guards import published_pointers, refuse_missing, refuse_overtaken, refuse_stopped
from headrace.refresh.held_leases import Held
from headrace.refresh.program_request import program_request, with_broadcasts
from headrace.refresh.publication_builder import Finished
from headrace.refresh.run_context import Outcome
from headrace.results.refresh_results import Mode, RefreshMode
from headrace.statistics.observations import ProgramNeeds, RefreshBegan, RefreshRan, Strategy, StrategyFailed
from headrace.statistics.session_statistics import SessionStatistics

OF_VALUES = frozenset(
    {"ARITHMETIC_ERROR", "VALUE_ERROR", "SUBQUERY_TOO_MANY_ROWS", "RAISED_BY_QUERY", "FUNCTION_FAILED"}
)
"""Errors of a query that come of the rows it is computed on."""

OF_STATEMENTS = frozenset(
    {"COLUMN_AMBIGUOUS", "COLUMN_EXISTS", "COLUMN_NOT_FOUND", "FUNCTION_NOT_FOUND", "QUERY_INVALID", "QUERY_TOO_DEEP"}
    | {"SPARK_UNSUPPORTED", "SYNTAX_ERROR", "TYPE_MISMATCH"}
)
"""Errors of a statement itself, whatever the rows."""


@dataclass(slots=True)
class Attempt:
    """A refresh that is being tried.

    Args:
        started: When it began.
        clock: The same on the monotonic clock, in seconds.
        mode: How it runs, once that is decided.
        stages: Seconds per stage so far.
    """

    started: dt.datetime
    clock: float
    mode: Mode = Mode.FULL
    stages: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.perf_counter() - self.clock


@dataclass(frozen=True, slots=True)
class Planned:
    """A refresh that was decided upon.

    Args:
        facts: What it was planned from, with what is known of the query since it was compiled.
        choice: How it runs.
        view: The query; None where it is not maintained.
        program: How the change is followed, as it was costed; None for FULL, or when nothing can have changed.
    """

    facts: Facts
    choice: Choice
    view: CompiledView | None = None
    program: DeltaProgram | None = None


class Preparation:
    """Runs refreshes up to, and without, publishing.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        plans: Compiled views.
        events: Told what happens.
        clock: Tells the time.
        defaults: What the project wants where a stream table says nothing.
        changes: What is kept of changes that several stream tables read.
        statistics: What earlier refreshes observed.
        observation: Looks at the sources.
    """

    def __init__(
        self,
        catalog: Catalog,
        session: Session,
        plans: CompiledViews,
        events: Events,
        clock: Clock,
        defaults: Defaults,
        changes: SharedChanges,
        statistics: SessionStatistics,
        observation: Observation,
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.plans = plans
        self.events = events
        self.clock = clock
        self.defaults = defaults
        self.changes = changes
        self.statistics = statistics
        self.observation = observation
        self.programs = Programs(plans.memory)

    def attempt(self) -> Attempt:
        """Begin a refresh."""
        return Attempt(self.clock.now(), time.perf_counter())

    def prepare(
        self,
        state: gather_facts.TableState,
        definition: Definition | None,
        heads: Cut,
        full: bool,
        attempt: Attempt,
        leases: Held,
        gone: tuple[TableName, ...] = (),
        seen: Mapping[TableName, Head] | None = None,
        resolved: Resolution | None = None,
    ) -> Finished:
        """Run a refresh up to, and without, publishing."""
        if definition is None:
            refuse_stopped(state)
            refuse_missing(state)
        name = state.table.name
        self.plans.memory.keep_only(state.streams)
        observed = self.observation.of(state, heads, seen or {})
        refuse_overtaken(state, observed)
        facts = gather_facts.gather(state, observed, forced=full and definition is None, tag=uuid.uuid4().hex[:8])
        changed = self._guarded(state, facts, resolved) if definition is None else {}
        skipped = sum(changed.values()) if resolved is Resolution.SKIP else 0
        detail = f"{skipped:,} changed rows were skipped"
        expected = published_pointers(self.catalog, state, full=full and not skipped)
        planned = Planned(facts, Choice(Mode.NO_CHANGE, detail=detail))
        if not skipped:
            planned = self._plan(facts, attempt)
        choice = planned.choice
        self._begun(name, choice, attempt)
        generation = state.table.generation
        outcome = Outcome(jobs=0) if choice.mode is Mode.NO_CHANGE else None
        while outcome is None:
            try:
                outcome = self._run(planned, attempt)
            except HeadraceError as error:
                other = self._otherwise(planned, error)
                if other is None:
                    raise
                self.catalog.reset_staging(state.table.stored, held=leases())
                planned, choice = other, other.choice
                self._begun(name, choice, attempt)
        done = Finished(
            facts=planned.facts,
            choice=choice,
            outcome=outcome,
            generation=generation,
            expected=expected,
            definition=definition,
            started=attempt.started,
            ended=self.clock.now(),
            gone=gone,
            session=self.statistics.warmth(choice.mode),
            seconds=attempt.seconds,
            changed=changed,
            skipped=skipped,
            program=planned.program if choice.mode is Mode.DIFFERENTIAL else None,
        )
        if choice.mode is not Mode.NO_CHANGE:
            self.statistics.observe(RefreshRan(choice.mode))
        return done

    def _otherwise(self, planned: Planned, error: HeadraceError) -> Planned | None:
        """Return how a refresh that failed may succeed; None where it may not."""
        facts, choice = planned.facts, planned.choice
        if choice.mode is not Mode.DIFFERENTIAL:
            return None
        if error.code in OF_BROADCASTS and facts.broadcast:  # few changed rows may have very many partners
            self.statistics.observe(StrategyFailed(Strategy.BROADCAST, facts.name, ()))
            return replace(planned, facts=replace(facts, broadcast=False))
        if error.code in OF_VALUES:
            # a change has rows that the query never sees, such as those that came and went again since the last refresh
            why, detail = FullReason.CHANGE_FAILED, error.message
        elif error.code in OF_STATEMENTS and facts.refresh_mode is RefreshMode.AUTO:
            # the statements are ours; where the query itself is refused, FULL, which runs it, says so
            why, detail = FullReason.STATEMENT_REFUSED, f"{FullReason.STATEMENT_REFUSED.sentence}: {error.message}"
        else:
            return None
        # what was estimated of FULL may have left the companion behind
        return replace(planned, choice=replace(choice, mode=Mode.FULL, reason=why, detail=detail, full_seconds=None))

    def judged(
        self, state: gather_facts.TableState, heads: Mapping[TableName, Head], resolved: Mapping[TableName, Resolution]
    ) -> dict[TableName, int]:
        """Apply the fuse to a table defined again because its old definition no longer holds.

        Args:
            state: What the catalog says of it as it was.
            heads: Heads of what it is going to read.
            resolved: What was decided about changes that are too large.
        """
        was = gather_facts.still_read(state, heads)
        facts = gather_facts.gather(was, heads, forced=False, tag=uuid.uuid4().hex[:8])
        return self._guarded(was, facts, resolved.get(state.table.name))

    def _plan(self, facts: Facts, attempt: Attempt) -> Planned:
        """Choose the mode; the program that was costed is the one that runs."""
        if not (facts.changed or obstacle(facts)) or not facts.details.incremental:
            return Planned(facts, choose(facts, None, None))
        runner = self._ready(attempt).under(facts.details.semantics)
        self.statistics.observe(RefreshBegan(facts.name))
        view = self.plans.view(facts.name, facts.details)
        facts = as_compiled(facts, view)
        facts = with_broadcasts(facts, self.statistics)
        if obstacle(facts):
            return Planned(facts, choose(facts, view, None), view if facts.details.incremental else None)
        facts, asked = program_request(facts, self.statistics, partial(self.changes.is_there, runner))
        program = self.programs.delta(facts.name, view, asked)
        return Planned(facts, choose(facts, view, program), view, program)

    def _begun(self, name: TableName, choice: Choice, attempt: Attempt) -> None:
        attempt.mode = choice.mode
        self.events.emit(RefreshStarted(str(name), choice.mode.value, choice.reason and choice.reason.value))

    def _guarded(
        self, state: gather_facts.TableState, facts: Facts, resolved: Resolution | None = None
    ) -> dict[TableName, int]:
        """Return how many rows changed, by source; stops at a blown fuse."""
        return guarded(
            state,
            facts,
            self.defaults.fuse,
            catalog=self.catalog,
            session=self.session,
            events=self.events,
            resolved=resolved,
        )

    def _run(self, planned: Planned, attempt: Attempt) -> Outcome:
        facts, choice, program = planned.facts, planned.choice, planned.program
        runner = self._ready(attempt).under(facts.details.semantics)
        if choice.mode is Mode.FULL and facts.details.deployment and (tasks := runner.tasks_beside) is not None:
            facts = in_few_tasks(facts, tasks)  # or public tables would wait for as long as one of its tasks runs
        look_anew((s.name for s in facts.sources), runner)
        run = Run(facts, runner, self.catalog, self.events, self.session.catalogs, self.changes, self.statistics)
        attempt.stages = run.outcome.seconds
        try:
            with runner.jobs(f"refresh {facts.name}") as counted:
                if choice.mode is Mode.FULL:
                    run.full(planned.view, companion=not choice.leaves_companion)
                elif program is not None:
                    self.statistics.observe(ProgramNeeds(facts.name, facts.details.semantics, program.needs))
                    run.differential(program)
            run.outcome.jobs = _sum(run.outcome.jobs, counted.jobs)
        except HeadraceError as error:
            if choice.mode is Mode.DIFFERENTIAL and error.place is not None:
                # a line and a column of SQL that we wrote mean nothing to who wrote the query; the expression does
                error.detail = f"{error.detail or ''} While computing: {error.place.text.strip()}".strip()
                error.place = None
            raise
        finally:
            run.close()
        return run.outcome

    def _ready(self, attempt: Attempt) -> Runner:
        """Return the session's runner; starting Spark is no part of the time that a refresh takes."""
        begin = time.perf_counter()
        runner = self.session.runner()
        spent = time.perf_counter() - begin
        attempt.clock += spent
        attempt.started += dt.timedelta(seconds=spent)
        return runner


def _sum(parallel: int | None, own: int | None) -> int | None:
    return None if own is None else own + (parallel or 0)
