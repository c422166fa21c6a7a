"""Refreshes one stream table or a group: gather, choose, run, publish, or put back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from headrace.catalog import Catalog, Definition, Lease, resource_of
from headrace.clock import Clock, SystemClock
from headrace.definitions.compiled_views import CompiledViews
from headrace.errors import HeadraceError
from headrace.events import Events
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.physical.shared_changes import CommonChanges
from headrace.ports import Session
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut, Head
from headrace.refresh.cut.observe import Observation
from headrace.refresh.fuses.fuse import UNRESOLVED, Resolution
from headrace.refresh.groups.cycle_refresher import Circle, CycleRefresher
from headrace.refresh.groups.cycle_rules import in_cycle, parts
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.guards import (
    published_pointers,
    refuse_apart,
    refuse_missing,
    refuse_overtaken,
    refuse_stopped,
)
from headrace.refresh.held_leases import holding_leases
from headrace.refresh.preparation import Attempt, Preparation
from headrace.refresh.publication_builder import Finished, staged_head
from headrace.refresh.publishing import Publishing
from headrace.results.refresh_results import Mode, RefreshResult
from headrace.statistics.session_statistics import SessionStatistics

NOTHING_NEW: Mapping[TableName, Definition] = {}
NOTHING_GONE: Mapping[TableName, tuple[TableName, ...]] = {}


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
        self._observation = Observation(catalog, self.defaults)
        self._publishing = Publishing(catalog, events, self.clock)
        self.statistics = statistics = SessionStatistics(plans.memory)
        self._preparation = Preparation(
            catalog,
            session,
            plans,
            events,
            self.clock,
            self.defaults,
            self.changes,
            statistics,
            self._observation,
        )
        self._cycles = CycleRefresher(
            catalog, session, plans, events, self.clock, self.defaults, self.changes, statistics
        )

    @contextmanager
    def recording(self) -> Iterator[Mapping[TableName, Finished]]:
        """Give the refreshes that are published while the block lasts, as they were planned and run."""
        with self._publishing.recording() as found:
            yield found

    def heads(self) -> Cut:
        """Return a new cut."""
        return Cut(self.catalog, self.session.location)

    def refresh_together(
        self,
        names: Sequence[TableName],
        heads: Cut,
        *,
        full: Collection[TableName] = (),
        group: tuple[TableName, ...] = (),
        patience: float = 0.0,
        resolved: Mapping[TableName, Resolution] = UNRESOLVED,
    ) -> tuple[RefreshResult, ...]:
        """Move stream tables to the cut and publish them in one transaction, or none of them.

        Args:
            names: The stream tables; what reads another of them comes after it, and reads what is not published yet.
            heads: The cut.
            full: Those to recompute whatever changed.
            group: All members of the group that they are; () for a table alone.
            patience: Seconds to wait for others who are refreshing one of them.
            resolved: What was decided about changes that are too large.

        Raises:
            HeadraceError: What went wrong with the first that failed; what was published before stays, everything
                written is put back, and history has the failure.
        """
        trying = names[0]
        attempt = self._preparation.attempt()
        done: list[Finished] = []
        try:
            if not full and (unchanged := self._nothing_to_do(names, heads, attempt)):
                return unchanged
            with holding_leases(self.catalog, [resource_of(name) for name in names], patience=patience) as leases:
                states: list[gather_facts.TableState] = []
                results: dict[TableName, RefreshResult] = {}
                try:
                    seen = self._observation.seen_by_all(names, heads)
                    for part in self._parts(names):
                        name = trying = part[0]
                        attempt = attempt if name == names[0] else self._preparation.attempt()
                        states = [gather_facts.known(self.catalog, n) for n in part]
                        for state in states:
                            self._publishing.recover(state, leases())
                        recompute = not set(part).isdisjoint(full)
                        if (
                            len(names) > 1
                            and not recompute
                            and all(self._observation.is_current(k, heads, seen) for k in states)
                        ):
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
                                self._preparation.prepare(
                                    state, None, heads, recompute, attempt, leases, seen=seen, resolved=how
                                )
                            ]
                        done += new
                        seen |= {one.facts.name: head for one in new if (head := staged_head(one))}
                    results |= self._publishing.publish(done, leases(), group)
                except BaseException:
                    written = [t for one in done for t in one.outcome.written]
                    self._publishing.put_back(
                        [*written, *(t for state in states for t in state.table.stored)], leases()
                    )
                    raise
                return tuple(results[name] for name in names)
        except HeadraceError as error:
            self._publishing.failed(trying, attempt, error, done)
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
        attempt, name = self._preparation.attempt(), definition.name
        before = gather_facts.known(self.catalog, name)
        state = gather_facts.redefined(before, definition, reason)
        try:
            changed = (
                {}
                if resolved is None
                else self._preparation.judged(before, self._observation.of(state, heads, {}), resolved)
            )
            done = self._preparation.prepare(state, definition, heads, True, attempt, lambda: leases, gone)
            return self._publishing.publish([replace(done, changed=changed)], leases)[name]
        except HeadraceError as error:
            self._publishing.failed(definition.name, attempt, error)
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
        attempt, first = self._preparation.attempt(), next(iter(definitions))
        try:
            before = [gather_facts.known(self.catalog, name) for name in definitions]
            if resolved is not None:
                for state in before:
                    read = [s for s in definitions[state.table.name].sources if s not in definitions]
                    self._preparation.judged(state, heads.of(read, frozenset(state.streams)), resolved)
            states = [gather_facts.redefined(state, definitions[state.table.name], reason) for state in before]
            done = self._prepare_cycle(states, heads, {}, definitions=definitions, gone=gone)
            return tuple(self._publishing.publish(done, leases).values())
        except HeadraceError as error:
            self._publishing.failed(first, attempt, error)
            raise

    # ---- steps

    def _parts(self, names: Sequence[TableName]) -> Sequence[tuple[TableName, ...]]:
        """Return the tables in order, members of a cycle in one part."""
        if len(names) == 1:
            return [(names[0],)]
        return parts(names, {t.name: t for t in self.catalog.stream_tables()})

    def _nothing_to_do(
        self, names: Sequence[TableName], heads: Cut, attempt: Attempt
    ) -> tuple[RefreshResult, ...] | None:
        """Return the results, if all tables stand at the cut already; found out without a lease."""
        frontiers: list[Frontier] = []
        for name in names:
            if self._observation.has_moved(name, heads):
                return None
            state = gather_facts.known(self.catalog, name)
            refuse_stopped(state)
            refuse_missing(state)
            if not self._observation.is_current(state, heads, {}):
                return None
            frontiers.append(state.frontier)
        return tuple(self._unchanged(n, f, attempt.seconds) for n, f in zip(names, frontiers, strict=True))

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
                refuse_stopped(state)
                refuse_missing(state)
            refuse_overtaken(state, {s: h for s, h in observed.items() if s in state.table.sources})
            refuse_apart(state)
        expected = {
            state.table.name: published_pointers(self.catalog, state, full=forced or bool(definitions))
            for state in states
        }
        return self._cycles.prepare(Circle(states, observed, expected, forced, definitions, gone, resolved))

    @staticmethod
    def _unchanged(name: TableName, frontier: Frontier, seconds: float) -> RefreshResult:
        return RefreshResult(str(name), Mode.NO_CHANGE, None, None, 0, 0, seconds, frontier.as_dict(), {}, 0)
