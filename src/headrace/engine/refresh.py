"""Refreshes one stream table: gather, choose, run, publish; on any error put everything back."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.catalog import (
    Catalog,
    Definition,
    HistoryEntry,
    Lease,
    Outcome,
    Publication,
    resource_of,
)
from headrace.clock import Clock, SystemClock
from headrace.engine import gather, plan
from headrace.engine.choose import Choice, choose
from headrace.engine.common import CommonChanges
from headrace.engine.facts import Facts
from headrace.engine.heads import Heads
from headrace.engine.held import held
from headrace.engine.plans import Plans
from headrace.engine.ports import Runner, Session
from headrace.engine.publishing import Finished, publication_of, result_of
from headrace.engine.results import Mode, RefreshResult, Status
from headrace.engine.run import Outcome as RunOutcome
from headrace.engine.run import Run
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Events, Notice, RefreshFailed, RefreshFinished, RefreshStarted
from headrace.frontier import Frontier
from headrace.names import LAKE, TableName
from headrace.reasons import FullReason


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


STOPPING = frozenset({"SOURCE_SCHEMA_CHANGED"})
"""Errors that no later refresh can cure by itself; they stop the table."""


class Refresher:
    """Refreshes stream tables of one catalog.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        plans: Compiled views.
        events: Told what happens.
        clock: Tells the time.
    """

    def __init__(
        self, catalog: Catalog, session: Session, plans: Plans, events: Events, clock: Clock | None = None
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.plans = plans
        self.events = events
        self.clock = clock or SystemClock()
        self.changes = CommonChanges()
        self._ran = Counter[Mode]()

    def heads(self) -> Heads:
        """A new cut."""
        return Heads(self.catalog, self.session.location)

    def refresh(self, name: TableName, heads: Heads, *, full: bool = False) -> RefreshResult:
        """Move a stream table to the cut.

        Args:
            name: The stream table.
            heads: The cut.
            full: Recompute whatever changed.

        Raises:
            HeadraceError: What went wrong; what was published before stays, and history has the failure.
        """
        attempt = Attempt(self.clock.now(), time.perf_counter())
        know = gather.known(self.catalog, name)
        try:
            self._refuse_stopped(know)
            self._refuse_missing(know)
            observed = heads.of(know.table.sources, frozenset(know.streams))
            target = Frontier({s: h.version.version for s, h in observed.items()})
            if know.frontier == target and know.newest is not None and know.table.status is Status.ACTIVE and not full:
                return self._unchanged(name, target, attempt.seconds)
            with held(self.catalog, [resource_of(name)]) as leases:
                return self._under_lease(name, heads, full, leases(), attempt)
        except HeadraceError as error:
            self._failed(know.table.name, attempt, error)
            raise

    def replace(
        self,
        definition: Definition,
        heads: Heads,
        leases: tuple[Lease, ...],
        gone: tuple[TableName, ...] = (),
        reason: FullReason = FullReason.DEFINITION_CHANGED,
    ) -> RefreshResult:
        """Recompute a stream table under a new definition; both are published together, or neither is.

        Args:
            definition: The new definition; its new stored tables are in `staging` already.
            heads: The cut.
            leases: Leases of the caller, on the table.
            gone: Stored tables of the former definition that this one has no use for.
            reason: Why it is recomputed.
        """
        attempt = Attempt(self.clock.now(), time.perf_counter())
        know = gather.redefined(gather.known(self.catalog, definition.name), definition, reason)
        try:
            return self._move(know, definition, heads, True, leases, attempt, gone)
        except HeadraceError as error:
            self._failed(definition.name, attempt, error)
            raise

    # ---- steps

    def _under_lease(
        self, name: TableName, heads: Heads, full: bool, leases: tuple[Lease, ...], attempt: Attempt
    ) -> RefreshResult:
        know = gather.known(self.catalog, name)
        self._recover(know, leases)
        return self._move(know, None, heads, full, leases, attempt)

    def _move(
        self,
        know: gather.Known,
        definition: Definition | None,
        heads: Heads,
        full: bool,
        leases: tuple[Lease, ...],
        attempt: Attempt,
        gone: tuple[TableName, ...] = (),
    ) -> RefreshResult:
        name = know.table.name
        observed = heads.of(know.table.sources, frozenset(know.streams))
        facts = gather.gather(know, observed, forced=full and definition is None, tag=uuid.uuid4().hex[:8])
        choice = choose(facts)
        attempt.mode = choice.mode
        self.events.emit(RefreshStarted(str(name), choice.mode.value, choice.reason and choice.reason.value, ()))
        expected = self._published(know, full=choice.mode is Mode.FULL and full)
        generation = know.table.generation
        nothing = RunOutcome(jobs=0)
        outcome = nothing if choice.mode is Mode.NO_CHANGE else self._run(facts, choice, attempt)
        ended = self.clock.now()
        done = Finished(
            facts,
            choice,
            outcome,
            generation,
            expected,
            definition,
            attempt.started,
            ended,
            gone,
            self._ran[choice.mode],
        )
        self._ran[choice.mode] += 1
        return self._publish(done, leases, attempt)

    def _run(self, facts: Facts, choice: Choice, attempt: Attempt) -> RunOutcome:
        runner = self._ready(attempt).under(facts.details.semantics)
        catalogs = self.session.catalogs()
        for source in facts.sources:
            if source.name.catalog != LAKE:
                runner.run(f"REFRESH TABLE {source.name.sql}")  # other catalogs may keep tables in a cache
        facts = self.changes.worth_it(facts, runner)
        run = Run(facts, runner, self.catalog, self.events, catalogs, self.changes)
        attempt.stages = run.outcome.seconds
        try:
            with runner.jobs(f"refresh {facts.name}") as counted:
                view = self.plans.view(facts.name, facts.details) if facts.details.incremental else None
                program = plan.delta(facts, view) if view and choice.mode is Mode.DIFFERENTIAL else None
                if choice.mode is Mode.FULL:
                    run.full(view)
                elif program is not None:
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
        """The session's runner; starting Spark is no part of the time that a refresh takes."""
        begin = time.perf_counter()
        runner = self.session.runner()
        attempt.clock += time.perf_counter() - begin
        return runner

    def _publish(self, done: Finished, leases: tuple[Lease, ...], attempt: Attempt) -> RefreshResult:
        begin = time.perf_counter()
        self._make_visible(publication_of(done, leases))
        done.outcome.seconds["publish"] = round(time.perf_counter() - begin, 4)
        if done.outcome.written.keys() != done.published.keys():
            self.catalog.reset_staging(done.outcome.written, held=leases)
        result = result_of(done, attempt.seconds)
        self.events.emit(
            RefreshFinished(result.name, result.mode.value, result.rows_inserted, result.rows_deleted, result.seconds)
        )
        return result

    def _make_visible(self, publication: Publication) -> None:
        """Publish; when the connection broke at the end, ask what became of it before calling it a failure."""
        try:
            self.catalog.publish(publication)
        except HeadraceError as error:
            if error.code != "PUBLISH_OUTCOME_UNKNOWN" or self.catalog.settle(publication.uuid) is None:
                raise

    # ---- care

    def _published(self, know: gather.Known, *, full: bool) -> dict[TableName, str | None]:
        """Where each stored table's `lake` pointer is; refuses tables somebody else wrote to."""
        stored = know.table.stored
        if not full and (foreign := self.catalog.foreign_writes(stored)):
            raise EnvironmentFault(
                "FOREIGN_WRITER",
                f"{foreign[0].name} was written by somebody else since Headrace published it; nothing was overwritten.",
                hint="Keep those rows elsewhere if you need them, then run "
                f"REFRESH STREAM TABLE {know.table.name} FULL.",
            )
        pointers = self.catalog.pointers(LAKE, stored)
        return {t: pointers[t].metadata_location if t in pointers else None for t in stored}

    def _recover(self, know: gather.Known, leases: tuple[Lease, ...]) -> None:
        """Put back what an unfinished refresh left in `staging`."""
        if back := self.catalog.reset_staging(know.table.stored, held=leases):
            names = ", ".join(str(t) for t in back)
            self.events.emit(Notice(f"Recovered {names}: an unfinished refresh was put back."))

    @staticmethod
    def _refuse_stopped(know: gather.Known) -> None:
        table = know.table
        if table.status is Status.STOPPED and table.stopped_code not in STOPPING:
            raise UserError(table.stopped_code or "STOPPED", table.stopped_reason or f"{table.name} is stopped.")

    @staticmethod
    def _refuse_missing(know: gather.Known) -> None:
        missing = [t for t in know.table.stored if t not in know.locations]
        if missing:
            raise EnvironmentFault(
                "STORED_TABLE_DROPPED",
                f"{missing[0]} was dropped behind Headrace's back.",
                hint=f"Make it anew: CREATE OR REPLACE STREAM TABLE {know.table.name} AS …; "
                f"or finish with DROP STREAM TABLE {know.table.name}.",
            )

    def _unchanged(self, name: TableName, frontier: Frontier, seconds: float) -> RefreshResult:
        return RefreshResult(str(name), Mode.NO_CHANGE, None, None, 0, 0, seconds, frontier.as_dict(), {}, 0)

    def _failed(self, name: TableName, attempt: Attempt, error: HeadraceError) -> None:
        self.events.emit(RefreshFailed(str(name), error.code, error.message))
        if error.code == "LEASE_HELD":
            return
        try:
            self.catalog.record_failure(
                HistoryEntry(
                    stream=name,
                    started_at=attempt.started,
                    finished_at=self.clock.now(),
                    mode=attempt.mode,
                    outcome=Outcome.FAILED,
                    stages=dict(attempt.stages),
                    error_code=error.code,
                    error_message=str(error),
                )
            )
            if error.code in STOPPING:
                self.catalog.stop(name, error.code, f"{error.message} {error.hint or ''}".strip())
            table = self.catalog.find_stream_table(name)
            if table is not None:
                self.catalog.reset_staging(table.stored)
        except HeadraceError:
            return  # the catalog itself is the trouble; the error that is already on its way says so


def _sum(parallel: int | None, own: int | None) -> int | None:
    return None if own is None else own + (parallel or 0)
