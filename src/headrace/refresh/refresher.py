"""Refreshes one stream table or a group: gather, choose, run, publish, or put back."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from headrace.catalog import (
    Catalog,
    Definition,
    HistoryEntry,
    Lease,
    Outcome,
    Publication,
    Version,
    resource_of,
)
from headrace.clock import Clock, SystemClock
from headrace.compiler.compiled_view import CompiledView, DeltaProgram
from headrace.cost.mode_choice import Choice, choose, obstacle
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.foreign_caches import look_anew
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Events, GroupPublished, Notice, RefreshFailed, RefreshFinished, RefreshStarted
from headrace.frontier import Frontier
from headrace.ivm.program import Key
from headrace.names import LAKE, TableName
from headrace.physical import stage_planner
from headrace.physical.facts import Facts
from headrace.physical.program_cache import Programs
from headrace.physical.shared_changes import CommonChanges
from headrace.physical.shared_semijoins import collected
from headrace.ports import Runner, Session
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.align_cut import Alignment, aligned_heads, alignment, nothing_agrees, wants_alignment
from headrace.refresh.cut.cut import Cut, Head
from headrace.refresh.definition.refused_queries import as_compiled
from headrace.refresh.execution import Run
from headrace.refresh.fuses.fuse import UNRESOLVED, Resolution
from headrace.refresh.fuses.fuse_guard import guarded
from headrace.refresh.groups.cycle_refresher import Circle, CycleRefresher
from headrace.refresh.groups.cycle_rules import in_cycle, parts
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.held_leases import holding_leases
from headrace.refresh.publication_builder import Finished, published_together, result_of, staged_head
from headrace.refresh.run_context import Outcome as RunOutcome
from headrace.results.refresh_results import Mode, RefreshResult, Status
from headrace.statistics.observations import ProgramNeeds, RefreshBegan, RefreshRan, Strategy
from headrace.statistics.session_statistics import SessionStatistics


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


NOTHING_NEW: Mapping[TableName, Definition] = {}
NOTHING_GONE: Mapping[TableName, tuple[TableName, ...]] = {}

STOPPING = frozenset({"SOURCE_SCHEMA_CHANGED"})
"""Errors that no later refresh can cure by itself; they stop the table."""

OF_VALUES = frozenset(
    {"ARITHMETIC_ERROR", "VALUE_ERROR", "SUBQUERY_TOO_MANY_ROWS", "RAISED_BY_QUERY", "FUNCTION_FAILED"}
)
"""Errors of a query that come of the rows it is computed on."""


class Refresher:
    """Refreshes stream tables of one catalog.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        plans: Compiled views.
        events: Told what happens.
        clock: Tells the time.
        defaults: What the project wants where a stream table says nothing.
    """

    def __init__(
        self,
        catalog: Catalog,
        session: Session,
        plans: CompiledViews,
        events: Events,
        clock: Clock | None = None,
        defaults: Defaults | None = None,
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.plans = plans
        self.events = events
        self.clock = clock or SystemClock()
        self.defaults = defaults or Defaults()
        self.changes = CommonChanges()
        self._recordings: list[dict[TableName, Finished]] = []
        self.statistics, self.programs = SessionStatistics(plans.memory), Programs(plans.memory)
        self._cycles = CycleRefresher(
            catalog, session, plans, events, self.clock, self.defaults, self.changes, self.statistics
        )

    @contextmanager
    def recording(self) -> Iterator[Mapping[TableName, Finished]]:
        """Give the refreshes that are published while the block lasts, as they were planned and run."""
        found: dict[TableName, Finished] = {}
        self._recordings.append(found)
        try:
            yield found
        finally:
            self._recordings = [each for each in self._recordings if each is not found]

    def heads(self) -> Cut:
        """Return a new cut."""
        return Cut(self.catalog, self.session.location)

    def refresh_together(
        self,
        names: Sequence[TableName],
        heads: Cut,
        *,
        full: Collection[TableName] = (),
        group: str | None = None,
        patience: float = 0.0,
        resolved: Mapping[TableName, Resolution] = UNRESOLVED,
    ) -> tuple[RefreshResult, ...]:
        """Move stream tables to the cut and publish them in one transaction, or none of them.

        Args:
            names: The stream tables; what reads another of them comes after it, and reads what is not published yet.
            heads: The cut.
            full: Those to recompute whatever changed.
            group: The group that they are.
            patience: Seconds to wait for others who are refreshing one of them.
            resolved: What was decided about changes that are too large.

        Raises:
            HeadraceError: What went wrong with the first that failed; what was published before stays, everything
                written is put back, and history has the failure.
        """
        trying = names[0]
        attempt = self._attempt()
        try:
            if not full and (unchanged := self._nothing_to_do(names, heads, attempt)):
                return unchanged
            with holding_leases(self.catalog, [resource_of(name) for name in names], patience=patience) as leases:
                done: list[Finished] = []
                states: list[gather_facts.TableState] = []
                results: dict[TableName, RefreshResult] = {}
                try:
                    seen = self._seen_by_all(names, heads)
                    for part in self._parts(names):
                        name = trying = part[0]
                        attempt = attempt if name == names[0] else self._attempt()
                        states = [gather_facts.known(self.catalog, n) for n in part]
                        for state in states:
                            self._recover(state, leases())
                        recompute = not set(part).isdisjoint(full)
                        if len(names) > 1 and not recompute and all(self._is_current(k, heads, seen) for k in states):
                            results |= {
                                k.table.name: self._unchanged(k.table.name, k.frontier, attempt.seconds) for k in states
                            }
                            continue
                        if in_cycle(part, states[0].streams):
                            new = self._prepare_cycle(states, heads, seen, forced=recompute, resolved=resolved)
                        else:
                            how = resolved.get(name)
                            state = states[0]
                            new = [
                                self._prepare(state, None, heads, recompute, attempt, leases, seen=seen, resolved=how)
                            ]
                        done += new
                        seen |= {one.facts.name: head for one in new if (head := staged_head(one))}
                    results |= self._publish(done, leases(), group)
                except BaseException:
                    written = [t for one in done for t in one.outcome.written]
                    self._put_back([*written, *(t for state in states for t in state.table.stored)], leases())
                    raise
                return tuple(results[name] for name in names)
        except HeadraceError as error:
            self._failed(trying, attempt, error)
            raise

    def replace(
        self,
        definition: Definition,
        heads: Cut,
        leases: tuple[Lease, ...],
        gone: tuple[TableName, ...] = (),
        reason: FullReason = FullReason.DEFINITION_CHANGED,
        resolved: Mapping[TableName, Resolution] | None = None,
    ) -> RefreshResult:
        """Recompute a stream table under a new definition; publish both or neither.

        Args:
            definition: The new definition; its new stored tables are in `staging` already.
            heads: The cut.
            leases: Leases of the caller, on the table.
            gone: Stored tables of the former definition that this one has no use for.
            reason: Why it is recomputed.
            resolved: What was decided about changes that are too large; None where a user gave the definition, by
                which nothing is a change.
        """
        attempt, name = self._attempt(), definition.name
        before = gather_facts.known(self.catalog, name)
        state = gather_facts.redefined(before, definition, reason)
        try:
            changed = {} if resolved is None else self._judged(before, self._observe(state, heads, {}), resolved)
            done = self._prepare(state, definition, heads, True, attempt, lambda: leases, gone)
            return self._publish([replace(done, changed=changed)], leases)[name]
        except HeadraceError as error:
            self._failed(definition.name, attempt, error)
            raise

    def replace_cycle(
        self,
        definitions: Mapping[TableName, Definition],
        heads: Cut,
        leases: tuple[Lease, ...],
        gone: Mapping[TableName, tuple[TableName, ...]],
        reason: FullReason = FullReason.DEFINITION_CHANGED,
        resolved: Mapping[TableName, Resolution] | None = None,
    ) -> tuple[RefreshResult, ...]:
        """Recompute a cycle under new definitions; publish all members or none.

        Args:
            definitions: The new definition of every member; their new stored tables are in `staging` already.
            heads: The cut.
            leases: Leases of the caller, on all members.
            gone: By member, stored tables of its former definition that this one has no use for.
            reason: Why they are recomputed.
            resolved: What was decided about changes that are too large; None where a user gave a definition.
        """
        attempt, first = self._attempt(), next(iter(definitions))
        try:
            before = [gather_facts.known(self.catalog, name) for name in definitions]
            if resolved is not None:
                for state in before:
                    read = [s for s in definitions[state.table.name].sources if s not in definitions]
                    self._judged(state, heads.of(read, frozenset(state.streams)), resolved)
            states = [gather_facts.redefined(state, definitions[state.table.name], reason) for state in before]
            done = self._prepare_cycle(states, heads, {}, definitions=definitions, gone=gone)
            return tuple(self._publish(done, leases).values())
        except HeadraceError as error:
            self._failed(first, attempt, error)
            raise

    # ---- steps

    def _parts(self, names: Sequence[TableName]) -> Sequence[tuple[TableName, ...]]:
        """Return the tables in order, members of a cycle in one part."""
        if len(names) == 1:
            return [(names[0],)]
        return parts(names, {t.name: t for t in self.catalog.stream_tables()})

    def _prepare_cycle(
        self,
        states: Sequence[gather_facts.TableState],
        heads: Cut,
        seen: Mapping[TableName, Head],
        *,
        forced: bool = False,
        definitions: Mapping[TableName, Definition] = NOTHING_NEW,
        gone: Mapping[TableName, tuple[TableName, ...]] = NOTHING_GONE,
        resolved: Mapping[TableName, Resolution] = UNRESOLVED,
    ) -> list[Finished]:
        """Run the refresh of a cycle up to, and without, publishing."""
        cycle = {state.table.name for state in states}
        outside = dict.fromkeys(s for state in states for s in state.table.sources if s not in cycle)
        rest = [s for s in outside if s not in seen]
        observed = {**heads.of(rest, frozenset(states[0].streams)), **{s: seen[s] for s in outside if s in seen}}
        for state in states:
            if not definitions:
                self._refuse_stopped(state)
                self._refuse_missing(state)
            self._refuse_overtaken(state, {s: h for s, h in observed.items() if s in state.table.sources})
            self._refuse_apart(state)
        expected = {state.table.name: self._published(state, full=forced or bool(definitions)) for state in states}
        return self._cycles.prepare(Circle(states, observed, expected, forced, definitions, gone, resolved))

    def _attempt(self) -> Attempt:
        return Attempt(self.clock.now(), time.perf_counter())

    def _nothing_to_do(
        self, names: Sequence[TableName], heads: Cut, attempt: Attempt
    ) -> tuple[RefreshResult, ...] | None:
        """Return the results, if all tables stand at the cut already; found out without a lease."""
        frontiers: list[Frontier] = []
        for name in names:
            if self._has_moved(name, heads):
                return None
            state = gather_facts.known(self.catalog, name)
            self._refuse_stopped(state)
            self._refuse_missing(state)
            if not self._is_current(state, heads, {}):
                return None
            frontiers.append(state.frontier)
        return tuple(self._unchanged(n, f, attempt.seconds) for n, f in zip(names, frontiers, strict=True))

    def _has_moved(self, name: TableName, heads: Cut) -> bool:
        """Return whether a cheap look proves that a table's sources moved."""
        with self.catalog.reading() as reader:
            table, frontier = reader.stream_table(name), reader.frontier(name)
        return heads.passed(frontier) and not wants_alignment(table, self.defaults)

    def _seen_by_all(self, names: Sequence[TableName], heads: Cut) -> dict[TableName, Head]:
        """Observe, once for all members, the stream tables outside a group that they read."""
        if len(names) == 1:
            return {}
        newest = self.catalog.newest_versions()
        tables = {t.name: t for t in self.catalog.stream_tables()}
        read = {s for n in names if n in tables for s in tables[n].sources}
        outside = [s for s in sorted(read) if s in tables and s not in names and s in newest]
        return heads.of(outside, frozenset(outside))

    def _observe(
        self, state: gather_facts.TableState, heads: Cut, seen: Mapping[TableName, Head]
    ) -> dict[TableName, Head]:
        rest = [s for s in state.table.sources if s not in seen]
        found = {**heads.of(rest, frozenset(state.streams)), **seen}
        return self._aligned(state, {s: found[s] for s in state.table.sources})

    def _aligned(self, state: gather_facts.TableState, found: dict[TableName, Head]) -> dict[TableName, Head]:
        """Return heads held at versions that agree, where the table asks for alignment.

        Staged heads are of one cut already and stay as they are.
        """
        if not wants_alignment(state.table, self.defaults) or any(head.staged for head in found.values()):
            return found
        name, newest = state.table.name, {s: head.version.version for s, head in found.items()}

        def readable(version: Version) -> bool:
            return replace(found[version.relation], version=version).readable

        with self.catalog.reading() as reader:
            agreed = alignment(reader, name, state.streams, state.frontiers, newest, readable)
            if agreed.versions is None and not state.frontier:
                raise nothing_agrees(name, state.table.sources)
            if agreed.versions is None:  # as the table is, it is right; it waits
                agreed = Alignment(state.frontier, agreed.tops)
            return aligned_heads(found, agreed, reader)

    def _is_current(self, state: gather_facts.TableState, heads: Cut, seen: Mapping[TableName, Head]) -> bool:
        if state.newest is None or state.table.status is not Status.ACTIVE:
            return False
        if any(s in state.streams and state.frontier.get(s) is None for s in state.table.sources):
            return False
        observed = self._observe(state, heads, seen)
        return state.frontier == Frontier({s: h.version.version for s, h in observed.items()})

    def _prepare(
        self,
        state: gather_facts.TableState,
        definition: Definition | None,
        heads: Cut,
        full: bool,
        attempt: Attempt,
        leases: Callable[[], tuple[Lease, ...]],
        gone: tuple[TableName, ...] = (),
        seen: Mapping[TableName, Head] | None = None,
        resolved: Resolution | None = None,
    ) -> Finished:
        """Run a refresh up to, and without, publishing."""
        if definition is None:
            self._refuse_stopped(state)
            self._refuse_missing(state)
        name = state.table.name
        self.plans.memory.keep_only(state.streams)
        observed = self._observe(state, heads, seen or {})
        self._refuse_overtaken(state, observed)
        facts = gather_facts.gather(state, observed, forced=full and definition is None, tag=uuid.uuid4().hex[:8])
        changed = self._guarded(state, facts, resolved) if definition is None else {}
        skipped = sum(changed.values()) if resolved is Resolution.SKIP else 0
        detail = f"{skipped:,} changed rows were skipped"
        expected = self._published(state, full=full and not skipped)
        planned = Planned(facts, Choice(Mode.NO_CHANGE, detail=detail))
        if not skipped:
            planned = self._plan(facts, attempt)
        choice = planned.choice
        self._begun(name, choice, attempt)
        generation = state.table.generation
        try:
            outcome = RunOutcome(jobs=0) if choice.mode is Mode.NO_CHANGE else self._run(planned, attempt)
        except HeadraceError as error:
            if choice.mode is not Mode.DIFFERENTIAL or error.code not in OF_VALUES:
                raise
            # a change has rows that the query never sees, such as those that came and went again since the last refresh
            self.catalog.reset_staging(state.table.stored, held=leases())
            # what was estimated of FULL may have left the companion behind
            why = FullReason.CHANGE_FAILED
            choice = replace(choice, mode=Mode.FULL, reason=why, detail=error.message, full_seconds=None)
            self._begun(name, choice, attempt)
            outcome = self._run(replace(planned, choice=choice), attempt)
        done = Finished(
            planned.facts,
            choice,
            outcome,
            generation,
            expected,
            definition,
            attempt.started,
            self.clock.now(),
            gone,
            self.statistics.warmth(choice.mode),
            attempt.seconds,
            changed,
            skipped,
            planned.program if choice.mode is Mode.DIFFERENTIAL else None,
        )
        if choice.mode is not Mode.NO_CHANGE:
            self.statistics.observe(RefreshRan(choice.mode))
        return done

    def _plan(self, facts: Facts, attempt: Attempt) -> Planned:
        """Choose the mode; the program that was costed is the one that runs."""
        if not (facts.changed or obstacle(facts)) or not facts.details.incremental:
            return Planned(facts, choose(facts, None, None))
        runner = self._ready(attempt).under(facts.details.semantics)
        self.statistics.observe(RefreshBegan(facts.name))
        view = self.plans.view(facts.name, facts.details)
        facts = as_compiled(facts, view)
        if obstacle(facts):
            return Planned(facts, choose(facts, view, None), view if facts.details.incremental else None)
        facts = self._with_common(facts, runner)
        asked = stage_planner.asked(facts, self._off(Strategy.READ_ONCE, facts))
        program = self.programs.delta(facts.name, view, asked)
        return Planned(facts, choose(facts, view, program), view, program)

    def _begun(self, name: TableName, choice: Choice, attempt: Attempt) -> None:
        attempt.mode = choice.mode
        self.events.emit(RefreshStarted(str(name), choice.mode.value, choice.reason and choice.reason.value, ()))

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

    def _judged(
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

    def _run(self, planned: Planned, attempt: Attempt) -> RunOutcome:
        facts, choice, program = planned.facts, planned.choice, planned.program
        runner = self._ready(attempt).under(facts.details.semantics)
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

    def _with_common(self, facts: Facts, runner: Runner) -> Facts:
        """Return the facts, with what is worth to be read together with other stream tables."""
        facts = self.changes.worth_it(facts, runner)
        needs, failed = self.statistics.needs(facts.details.semantics), self._off(Strategy.READ_TOGETHER, facts)
        return replace(
            facts, collected=collected(facts, needs, lambda view: self.changes.is_there(runner, view), failed)
        )

    def _off(self, strategy: Strategy, facts: Facts) -> frozenset[Key]:
        """Return sources and columns with which a strategy is not to be tried in this refresh."""
        off = ((s.name, self.statistics.off(strategy, s.name, by=facts.name)) for s in facts.sources)
        return frozenset((source, columns) for source, each in off for columns in each)

    def _ready(self, attempt: Attempt) -> Runner:
        """Return the session's runner; starting Spark is no part of the time that a refresh takes."""
        begin = time.perf_counter()
        runner = self.session.runner()
        spent = time.perf_counter() - begin
        attempt.clock += spent
        attempt.started += dt.timedelta(seconds=spent)
        return runner

    def _publish(
        self, done: Sequence[Finished], leases: tuple[Lease, ...], group: str | None = None
    ) -> dict[TableName, RefreshResult]:
        begin = time.perf_counter()
        if done:
            self._make_visible(published_together(done, leases, group))
        took = time.perf_counter() - begin
        results = {}
        for one in done:
            one.outcome.seconds["publish"] = round(took, 4)
            if one.outcome.written.keys() != one.published.keys():
                self.catalog.reset_staging(one.outcome.written, held=leases)
            result = result_of(one, one.seconds + took)
            self.events.emit(
                RefreshFinished(
                    result.name, result.mode.value, result.rows_inserted, result.rows_deleted, result.seconds
                )
            )
            results[one.facts.name] = result
            for recording in self._recordings:
                recording[one.facts.name] = one
        if group is not None and done:
            self.events.emit(GroupPublished(group, tuple(str(one.facts.name) for one in done)))
        return results

    def _put_back(self, tables: Sequence[TableName], leases: tuple[Lease, ...]) -> None:
        """Reset the staging pointers of a group that cannot be published."""
        with suppress(HeadraceError):  # whoever refreshes these tables next puts them back first
            self.catalog.reset_staging(tables, held=leases)

    def _make_visible(self, publication: Publication) -> None:
        """Publish; after a lost connection, look up the outcome before failing."""
        try:
            self.catalog.publish(publication)
        except HeadraceError as error:
            if error.code != "PUBLISH_OUTCOME_UNKNOWN" or self.catalog.settle(publication.uuid) is None:
                raise

    # ---- guards

    def _published(self, state: gather_facts.TableState, *, full: bool) -> dict[TableName, str | None]:
        """Return where each stored table's `lake` pointer is; refuses tables somebody else wrote to."""
        stored = state.table.stored
        if not full and (foreign := self.catalog.foreign_writes(stored)):
            raise EnvironmentFault(
                "FOREIGN_WRITER",
                f"{foreign[0].name} was written by somebody else since Headrace published it; nothing was overwritten.",
                hint="Keep those rows elsewhere if you need them, then run "
                f"REFRESH STREAM TABLE {state.table.name} FULL.",
            )
        pointers = self.catalog.pointers(LAKE, stored)
        return {t: pointers[t].metadata_location if t in pointers else None for t in stored}

    def _recover(self, state: gather_facts.TableState, leases: tuple[Lease, ...]) -> None:
        """Put back what an unfinished refresh left in `staging`."""
        if back := self.catalog.reset_staging(state.table.stored, held=leases):
            names = ", ".join(str(t) for t in back)
            self.events.emit(Notice(f"Recovered {names}: an unfinished refresh was put back."))

    @staticmethod
    def _refuse_stopped(state: gather_facts.TableState) -> None:
        table = state.table
        if table.status is Status.STOPPED and table.stopped_code not in STOPPING:
            raise UserError(table.stopped_code or "STOPPED", table.stopped_reason or f"{table.name} is stopped.")

    @staticmethod
    def _refuse_apart(state: gather_facts.TableState) -> None:
        """Two definitions at once closed the cycle, neither of which knew of the other."""
        if not state.table.details.get("cyclic"):
            raise EnvironmentFault(
                "DEFINITION_CHANGED",
                f"{state.table.name} has become part of a cycle and has to be defined again; nothing was changed.",
                hint="Refresh again.",
                retryable=True,
            )

    @staticmethod
    def _refuse_missing(state: gather_facts.TableState) -> None:
        missing = [t for t in state.table.stored if t not in state.locations]
        if missing:
            raise EnvironmentFault(
                "STORED_TABLE_DROPPED",
                f"{missing[0]} was dropped behind Headrace's back.",
                hint=f"Create it again: CREATE OR REPLACE STREAM TABLE {state.table.name} AS …; "
                f"or finish with DROP STREAM TABLE {state.table.name}.",
            )

    @staticmethod
    def _refuse_overtaken(state: gather_facts.TableState, observed: Mapping[TableName, Head]) -> None:
        """Refuse a refresh that saw older sources than the published one; contents never go back."""
        later = [s for s, head in observed.items() if state.frontier.get(s, -1) > head.version.version]
        if later:
            raise EnvironmentFault(
                "CUT_OVERTAKEN",
                f"{state.table.name} reflects a newer {later[0]} than this refresh has seen; nothing was changed.",
                hint="Refresh again.",
                retryable=True,
            )

    def _unchanged(self, name: TableName, frontier: Frontier, seconds: float) -> RefreshResult:
        return RefreshResult(str(name), Mode.NO_CHANGE, None, None, 0, 0, seconds, frontier.as_dict(), {}, 0)

    def _failed(self, name: TableName, attempt: Attempt, error: HeadraceError) -> None:
        if error.code == "LEASE_HELD":
            return  # it never began; of two schedulers that look at one table this happens to one all the time
        self.events.emit(RefreshFailed(str(name), error.code, error.message))
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
