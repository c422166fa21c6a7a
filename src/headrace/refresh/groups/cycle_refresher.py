"""Refreshes a cycle up to, and without, publishing: gather, choose, iterate, store."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from headrace.catalog import Catalog, Definition
from headrace.clock import Clock
from headrace.compiler.compiled_view import CompiledView
from headrace.cost.mode_choice import Choice
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.foreign_caches import look_anew
from headrace.errors import InternalError
from headrace.events import Events, RefreshStarted, StagesTold
from headrace.names import WEIGHT, TableName, quote
from headrace.physical.facts import Facts, SourceFacts
from headrace.physical.shared_changes import SharedChanges, worth
from headrace.physical.stage_planner import fits_local_relation
from headrace.ports import Runner, Session
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Head
from headrace.refresh.definition.refused_queries import refuse_unmaintained
from headrace.refresh.execution import Run
from headrace.refresh.fuses.fuse import Resolution, changed_rows
from headrace.refresh.fuses.fuse_guard import guarded
from headrace.refresh.groups.cycle_fixpoint import Fixpoint, Member, Outside
from headrace.refresh.groups.cycle_rules import choose_cycle, may_go_on
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.publication_builder import Finished
from headrace.refresh.run_context import Outcome
from headrace.results.refresh_results import Mode
from headrace.statistics.observations import RefreshBegan
from headrace.statistics.session_statistics import SessionStatistics

ITERATE = "iterate"
"""Title of the stage in which all members are iterated, to which the number of rounds is added; the first member's."""


@dataclass(frozen=True, slots=True)
class Circle:
    """A cycle that is about to be refreshed.

    Args:
        states: What the catalog says of each member.
        observed: Heads of everything that members read outside of the cycle.
        expected: By member, where the `lake` pointers of its stored tables are.
        forced: The user asked for FULL.
        definitions: What is defined anew with it.
        gone: By member, stored tables of a former definition that go.
        resolved: What was decided about changes that are too large.
    """

    states: Sequence[gather_facts.TableState]
    observed: Mapping[TableName, Head]
    expected: Mapping[TableName, Mapping[TableName, str | None]]
    forced: bool
    definitions: Mapping[TableName, Definition]
    gone: Mapping[TableName, tuple[TableName, ...]]
    resolved: Mapping[TableName, Resolution]

    @property
    def names(self) -> tuple[TableName, ...]:
        """Return the members."""
        return tuple(state.table.name for state in self.states)


@dataclass(slots=True)
class CycleRefresher:
    """Refreshes cycles of one catalog.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        plans: Compiled views.
        events: Told what happens.
        clock: Tells the time.
        defaults: What the project wants.
        changes: What is kept of changes that several stream tables read.
        statistics: What refreshes of the session observed.
    """

    catalog: Catalog
    session: Session
    plans: CompiledViews
    events: Events
    clock: Clock
    defaults: Defaults
    changes: SharedChanges
    statistics: SessionStatistics

    def prepare(self, circle: Circle) -> list[Finished]:
        """Refresh the members up to, and without, publishing.

        Raises:
            UserError: `CYCLE_NOT_SETTLED`, `SOURCE_SCHEMA_CHANGED`.
            HeadraceError: What went wrong.
        """
        started, begin = self.clock.now(), time.perf_counter()
        tag = uuid.uuid4().hex[:8]
        facts = [self._facts(circle, state, f"{tag}{i}") for i, state in enumerate(circle.states)]
        changed = [self._changed(circle, state, own) for state, own in zip(circle.states, facts, strict=True)]
        skipped = sum(sum(rows.values()) for rows in changed) if Resolution.SKIP in circle.resolved.values() else 0
        views = {own.name: self.plans.view(own.name, own.details) for own in facts}
        for own in facts:
            refuse_unmaintained(own.name, views[own.name])
        done: list[Finished] = []
        with self._handed(facts, wanted=not skipped and may_go_on(facts)) as facts:
            choice = self._choice(facts, views, skipped)
            for own in facts:
                reason = choice.reason and choice.reason.value
                self.events.emit(RefreshStarted(str(own.name), choice.mode.value, reason))
            outcomes = self._outcomes(facts, views, choice, tag)
        for state, own, rows in zip(circle.states, facts, changed, strict=True):
            outcome, seconds = outcomes[own.name]
            since = started if not done else done[-1].ended
            done.append(
                Finished(
                    facts=own,
                    choice=choice,
                    outcome=outcome,
                    generation=state.table.generation,
                    expected=circle.expected[own.name],
                    definition=circle.definitions.get(own.name),
                    started=since,
                    ended=since + dt.timedelta(seconds=seconds),
                    gone=circle.gone.get(own.name, ()),
                    seconds=seconds,
                    changed=rows,
                    skipped=skipped,
                )
            )
        spent = time.perf_counter() - begin - sum(one.seconds for one in done)
        first = replace(done[0], seconds=done[0].seconds + max(spent, 0.0))
        return _closed([first, *done[1:]])

    # ---- before

    def _facts(self, circle: Circle, state: gather_facts.TableState, tag: str) -> Facts:
        outside = gather_facts.outside(state, circle.names)
        observed = {s: circle.observed[s] for s in outside.table.sources}
        facts = gather_facts.gather(outside, observed, forced=circle.forced, tag=tag)
        return replace(facts, readers=facts.readers.difference(circle.names))

    def _changed(self, circle: Circle, state: gather_facts.TableState, facts: Facts) -> dict[TableName, int]:
        if circle.definitions or facts.name in circle.resolved:
            return changed_rows(facts.sources, state.frontier, state.at_frontier)
        fuse = self.defaults.fuse
        return guarded(state, facts, fuse, catalog=self.catalog, session=self.session, events=self.events)

    @contextmanager
    def _handed(self, facts: Sequence[Facts], *, wanted: bool) -> Iterator[list[Facts]]:
        """Yield facts in which shared changes are kept in memory while the block runs.

        Args:
            facts: Of each member.
            wanted: Whether changes are going to be read.
        """
        if not wanted or not any(s.common for own in facts for s in own.sources):
            yield list(facts)
            return
        runner, read = self._runner(facts), list[tuple[str, TableName]]()
        look_anew((s.name for own in facts for s in own.sources), runner)
        try:
            yield [self._reading(own, runner, read) for own in facts]
        finally:
            for view, name in read:
                self.changes.leave(runner, view, name)

    def _reading(self, own: Facts, runner: Runner, read: list[tuple[str, TableName]]) -> Facts:
        """Return one member's facts, over what is kept.

        What it has to leave again is added to `read`.
        """
        sources = []
        for source in worth(own, partial(self.changes.is_there, runner)).sources:
            if source.common is not None:
                read.append((source.common.view, own.name))
                self.changes.read(runner, source.name, source.common, local=fits_local_relation(own))
                source = replace(source, change=source.common.own)
            sources.append(source)
        return replace(own, sources=tuple(sources))

    def _runner(self, facts: Sequence[Facts]) -> Runner:
        """Return the runner of the semantics that all members share."""
        return self.session.runner().under(facts[0].details.semantics)

    def _choice(self, facts: Sequence[Facts], views: Mapping[TableName, CompiledView], skipped: int) -> Choice:
        if skipped:
            return Choice(Mode.NO_CHANGE, detail=f"{skipped:,} changed rows were skipped")

        def only_gained(source: SourceFacts) -> bool:
            query = f"SELECT 1 FROM ({source.change}) WHERE {quote(WEIGHT)} < 0 LIMIT 1"
            return not self._runner(facts).run(query)

        return choose_cycle(facts, views, only_gained)

    # ---- running

    def _outcomes(
        self, facts: Sequence[Facts], views: Mapping[TableName, CompiledView], choice: Choice, tag: str
    ) -> dict[TableName, tuple[Outcome, float]]:
        """Run the refresh of each member; return outcomes and seconds.

        The first member's seconds include the iteration.
        """
        if choice.mode is Mode.NO_CHANGE:
            return {own.name: (Outcome(jobs=0), 0.0) for own in facts}
        for own in facts:
            self.statistics.observe(RefreshBegan(own.name))
        runner = self._runner(facts)
        look_anew((s.name for own in facts for s in own.sources), runner)
        onwards, first = choice.mode is Mode.DIFFERENTIAL, str(facts[0].name)
        rounds = StagesTold(self.events, first)
        fixpoint = Fixpoint(
            {own.name: _member(own, views[own.name], onwards=onwards) for own in facts},
            runner,
            tag=tag,
            limit=self.defaults.max_cycle_rounds,
            tell=lambda number: rounds.tell(f"{ITERATE}, round {number}"),
        )
        begin = time.perf_counter()
        try:
            with runner.jobs(f"refresh {first}") as counted, rounds:
                fixpoint.onwards() if onwards else fixpoint.from_nothing()
            iterated = time.perf_counter() - begin
            stored = {own.name: self._stored(own, fixpoint, runner, onwards=onwards) for own in facts}
        finally:
            fixpoint.close()
        outcome, seconds = stored[facts[0].name]
        outcome.seconds = {f"{ITERATE} ({fixpoint.rounds} rounds)": round(iterated, 4), **outcome.seconds}
        outcome.jobs = None if outcome.jobs is None or counted.jobs is None else outcome.jobs + counted.jobs
        return stored | {facts[0].name: (outcome, seconds + iterated)}

    def _stored(self, facts: Facts, fixpoint: Fixpoint, runner: Runner, *, onwards: bool) -> tuple[Outcome, float]:
        begin = time.perf_counter()
        run = Run(facts, runner, self.catalog, self.events, self.session.catalogs, self.changes, self.statistics)
        try:
            with runner.jobs(f"refresh {facts.name}") as counted:
                run.settled(fixpoint, onwards=onwards)
        finally:
            run.close()
        run.outcome.jobs = counted.jobs
        return run.outcome, time.perf_counter() - begin


def _member(facts: Facts, view: CompiledView, *, onwards: bool) -> Member:
    if not onwards:
        return Member(view, {s.name: Outside(s.after) for s in facts.sources})
    outside = {s.name: Outside(s.after, s.before, s.change, s.change_rows) for s in facts.sources}
    return Member(view, outside, facts.state_at)


def _closed(done: Sequence[Finished]) -> list[Finished]:
    """Return refreshes whose frontiers have the versions members read of each other."""
    reached = {one.facts.name: one.facts.next_version if one.moved else one.facts.version for one in done}
    found = []
    for one in done:
        inside = [use.name for use in one.facts.details.sources if use.name in reached]
        sources = tuple(_read_at(name, reached[name]) for name in inside)
        found.append(replace(one, facts=replace(one.facts, sources=(*one.facts.sources, *sources))))
    return found


def _read_at(name: TableName, version: int | None) -> SourceFacts:
    if version is None:
        raise InternalError("PLAN_INVALID", f"{name} was iterated and has no version.")
    return SourceFacts(name, None, name.sql, version)
