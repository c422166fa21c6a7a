"""Refreshes stream tables that are published together, in one publication or none.

What makes a member move does not matter: changes of its sources, a new definition, or its first load.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from headrace.catalog import Catalog, Publication, StreamTable, resource_of
from headrace.catalog.relations import not_found
from headrace.definitions.details import from_json
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut, Head
from headrace.refresh.cut.observe import Observation
from headrace.refresh.definition.redefinition import NO_REDEFINITIONS, Redefine, Redefinition, Redefinitions
from headrace.refresh.definition.source_keys import SourceKeys, lost_keys
from headrace.refresh.fuses.fuse import UNRESOLVED, Resolution
from headrace.refresh.groups.cycle_refresher import Circle, CycleRefresher
from headrace.refresh.groups.cycle_rules import in_cycle, parts
from headrace.refresh.groups.lost_rows import computed_again
from headrace.refresh.guards import (
    published_pointers,
    refuse_apart,
    refuse_missing,
    refuse_overtaken,
    refuse_stopped,
)
from headrace.refresh.held_leases import Held, holding_leases
from headrace.refresh.preparation import Attempt, Preparation
from headrace.refresh.publication_builder import Finished, staged_head
from headrace.refresh.publishing import Publishing
from headrace.refresh.repair import Restored, lost_files, restore
from headrace.results.refresh_results import Mode, RefreshResult

LEASE_HELD = "LEASE_HELD"
NOT_READY = "INPUT_NOT_READY"
"""Code of the error that gives up a group because of what it reads; no member of it has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Stream tables to refresh together.

    Args:
        names: The stream tables; what reads another of them comes after it.
        heads: The cut.
        full: Those to recompute whatever changed.
        group: All members of the group that they are; () for a table alone, or a part of a group.
        patience: Seconds to wait for others who are refreshing one of them.
        resolved: What was decided about changes that are too large.
        redefine: Makes new definitions of some of them; None where all hold.
        aligned: Whether the table, one alone, reads versions that agree, whatever it asks for.
        held: Leases that the caller holds, of these tables or others; only the rest is taken.
        staged: Heads of other stream tables that are published along, as the caller has written them.
        awaited: The members of each unit that they read and that is not published yet. A member that reads one is
            prepared when it is.
        given_up: Whether nobody wants it any more, so that it does not wait for others.
    """

    names: Sequence[TableName]
    heads: Cut
    full: Collection[TableName] = ()
    group: tuple[TableName, ...] = ()
    patience: float = 0.0
    resolved: Mapping[TableName, Resolution] = field(default_factory=dict)
    redefine: Redefine | None = None
    aligned: bool = False
    held: Held = tuple
    staged: Mapping[TableName, Head] = field(default_factory=dict)
    awaited: Sequence[Sequence[TableName]] = ()
    given_up: Callable[[], bool] = lambda: False


class GroupRefresh:
    """One refresh of stream tables that are published together, under way.

    Args:
        catalog: The catalog.
        preparation: Runs the refresh of a member up to publishing.
        cycles: The same for cycles.
        publishing: Publishes, or puts back.
        observation: Looks at the sources.
        order: What to refresh.
    """

    def __init__(
        self,
        catalog: Catalog,
        preparation: Preparation,
        cycles: CycleRefresher,
        publishing: Publishing,
        observation: Observation,
        order: Order,
    ) -> None:
        self._catalog = catalog
        self._preparation = preparation
        self._cycles = cycles
        self._publishing = publishing
        self._observation = observation
        self._order = order
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._first = (order.names[0], preparation.attempt())
        self._blamed = self._first
        self._seen: Mapping[TableName, Head] = {}
        self._done: list[Finished] = []
        self._results: dict[TableName, RefreshResult] = {}
        self._begun: list[gather_facts.TableState] = []
        self._anew: Redefinitions = NO_REDEFINITIONS
        self._tables: dict[TableName, StreamTable] = {}
        self._reordered = False
        self._leases: Held = tuple
        self._holds = False

    def run(self) -> tuple[RefreshResult, ...]:
        """Refresh all members, and publish them in one transaction, or none of them.

        Raises:
            HeadraceError: What went wrong with the first that failed; what was published before stays, everything
                written is put back, and history has the failure.
        """
        try:
            if (unchanged := self.begin()) is not None:
                return unchanged
            for part in self.parts:
                self.prepare(part)
            return self.publish()
        except BaseException as error:
            self.give_up(error)
            raise

    def begin(self) -> tuple[RefreshResult, ...] | None:
        """Take the leases and make new definitions; return results if nothing is to be done."""
        order = self._order
        if order.awaited and order.redefine is not None:
            raise _not_ready(f"{order.names[-1]} or another one of its group is defined anew, over what that is then.")
        settled = not (order.full or order.staged or order.awaited) and order.redefine is None
        if settled and (unchanged := self._nothing_to_do()):
            return unchanged
        self._leases = self._stack.enter_context(self._holding())
        self._holds = True
        self._restore()
        if order.redefine is not None:
            for name in order.names:
                self._publishing.recover(gather_facts.known(self._catalog, name), self._leases())
            self._anew = order.redefine(self._leases, self._blame)
            self._blamed = self._first
        tables = {t.name: t for t in self._catalog.stream_tables()}
        for name in order.names:
            if name not in tables:  # dropped while its lease was waited for
                raise not_found(name)
        reading = {n: replace(tables[n], sources=one.definition.sources) for n, one in self._anew.items()}
        self._reordered = any(self._inside(reading[name]) != self._inside(tables[name]) for name in reading)
        self._tables = tables | reading
        awaited = [name for unit in order.awaited for name in unit]
        seen = self._observation.seen_by_all(order.names, order.heads, self._tables, later=awaited)
        self._seen = {**seen, **order.staged}
        self._refuse_lost_keys()
        return None

    def _refuse_lost_keys(self) -> None:
        """Refuse plans that rest on a key which a stream table outside has lost.

        Definitions were looked at before the leases were waited for, and take none on what they read.

        Raises:
            EnvironmentFault: `CUT_OVERTAKEN`; the definition is looked at again then.
        """
        inside = {*self._order.names, *self._order.staged}
        for name in self._order.names:
            stored = self._anew[name].definition.details if name in self._anew else self._tables[name].details
            if not stored.get("rests_on_keys"):
                continue
            details = from_json(stored)
            for source in details.source_keys.keys() & self._tables.keys() - inside:
                now = self._catalog.find_stream_table(source)  # it may be another one than a moment ago
                if now is not None and set(details.source_keys[source]) <= set(from_json(now.details).keys):
                    continue
                if source in lost_keys(details, SourceKeys(self._catalog)):
                    raise EnvironmentFault(
                        "CUT_OVERTAKEN",
                        f"{source} was defined anew, without a key that {name} is computed by; nothing was changed.",
                        hint="Refresh again.",
                        retryable=True,
                    )

    def _restore(self) -> None:
        """Undo what others wrote to tables that are computed as a whole.

        Their readers are given the difference to what was published, never to what somebody else made of it.

        Raises:
            EnvironmentFault: `FOREIGN_WRITER` where the published files are gone, too.
        """
        order = self._order
        names = order.names if order.redefine is not None else [n for n in order.names if n in order.full]
        stored = [t for name in names for t in self._catalog.stream_table(name).stored]
        restored = restore(self._catalog, stored, self._leases) if stored else Restored()
        self._publishing.restored(restored.back)
        if restored.lost and order.redefine is None:
            raise lost_files(restored.lost)

    @contextmanager
    def _holding(self) -> Iterator[Held]:
        """Hold the leases of all members, as far as the caller does not."""
        order, held = self._order, {lease.resource for lease in self._order.held()}
        missing = [resource for name in order.names if (resource := resource_of(name)) not in held]
        with holding_leases(self._catalog, missing, patience=order.patience, given_up=order.given_up) as leases:
            yield lambda: (*order.held(), *leases())

    @property
    def reordered(self) -> bool:
        """Return whether members that are defined anew read other members than before."""
        return self._reordered

    def _inside(self, table: StreamTable) -> frozenset[TableName]:
        """Return the members that a table reads."""
        return frozenset(self._order.names).intersection(table.sources)

    @property
    def parts(self) -> tuple[tuple[TableName, ...], ...]:
        """Return the members in order, those of a cycle in one part; known once it has begun."""
        return parts(self._order.names, self._tables)

    def prepare(self, part: tuple[TableName, ...]) -> None:
        """Run the refresh of a member, or of a cycle, up to publishing; after what it reads.

        Several threads may do that at once.
        """
        attempt = self._first[1] if part[0] == self._first[0] else self._preparation.attempt()
        try:
            self._see_published(part)
            self._prepare(part, attempt)
        except HeadraceError:
            with self._lock:
                if self._blamed is self._first:
                    self._blamed = (part[0], attempt)
            raise

    def publish(self, along: Publication | None = None) -> tuple[RefreshResult, ...]:
        """Publish all members in one transaction, and end.

        Args:
            along: What else becomes visible with them.
        """
        self._results |= self._publishing.publish(self._done, self._leases(), self._order.group, along)
        self._stack.close()
        return tuple(self._results[name] for name in self._order.names)

    def give_up(self, error: BaseException) -> None:
        """Put back everything that was written, and end; history has the failure.

        Args:
            error: What went wrong.
        """
        if self._tables:  # else nothing of it was written
            written = [table for one in self._done for table in one.outcome.written]
            begun = [table for state in self._begun for table in state.table.stored]
            anew = [table for one in self._anew.values() for table in one.stored]
            self._publishing.put_back([*written, *begun, *anew], self._leases())
        self._stack.close()
        told = isinstance(error, HeadraceError) and error.code not in (NOT_READY, LEASE_HELD)
        failed = self._blamed[0] if told else None  # whose failure is its end
        if self._holds:  # else what runs of these tables is the refresh of somebody else, who has their leases
            self._publishing.tell_given_up([name for name in self._order.names if name != failed])
        if isinstance(error, HeadraceError) and error.code == NOT_READY:
            self._publishing.given_up(self._done, error)
        elif isinstance(error, HeadraceError):
            self._publishing.failed(*self._blamed, error, self._done)
            if len(self._order.names) > 1:
                _name(error, self._blamed[0], len(self._order.names))

    # ---- before

    def _blame(self, name: TableName) -> None:
        """Note which member it is about should something go wrong."""
        self._blamed = (name, self._first[1])

    def _nothing_to_do(self) -> tuple[RefreshResult, ...] | None:
        """Return the results, if all tables stand at the cut already; found out without a lease."""
        frontiers: list[Frontier] = []
        for name in self._order.names:
            if self._observation.has_moved(name, self._order.heads):
                return None
            state = gather_facts.known(self._catalog, name)
            refuse_stopped(state)
            refuse_missing(state)
            if not self._observation.is_current(state, self._order.heads, {}):
                return None
            frontiers.append(state.frontier)
        seconds = self._first[1].seconds
        return tuple(_unchanged(n, f, seconds) for n, f in zip(self._order.names, frontiers, strict=True))

    # ---- members

    def _see_published(self, part: tuple[TableName, ...]) -> None:
        """Look at what a member reads and what was not published yet when the group began.

        Once for all members, and at all members of a unit at one moment: it is published again, maybe, before another
        member of this group reads from it.

        Raises:
            EnvironmentFault: `INPUT_NOT_READY` where it was defined anew in between.
        """
        read = {source for name in part for source in self._tables[name].sources}
        with self._lock:
            new = [unit for unit in self._order.awaited if any(n in read and n not in self._seen for n in unit)]
            if not new:
                return
            now = {t.name: t for t in self._catalog.stream_tables()}
            for name in (name for unit in new for name in unit):
                known = self._tables.get(name)
                if name not in now or known is None or now[name].generation != known.generation:
                    raise _not_ready(f"{name}, which {part[0]} reads, was defined anew meanwhile.")
            earlier = [name for unit in self._order.awaited if unit not in new for name in unit]
            order = self._order
            found = self._observation.seen_by_all(order.names, order.heads, self._tables, later=earlier)
            self._seen = {**found, **self._seen}

    def _prepare(self, part: tuple[TableName, ...], attempt: Attempt) -> None:
        states = [self._state(name) for name in part]
        with self._lock:
            self._begun += states
        full = not set(part).isdisjoint(self._order.full)
        if not full and len(self._order.names) > 1 and self._are_current(states):
            self._results |= {k.table.name: _unchanged(k.table.name, k.frontier, attempt.seconds) for k in states}
            return

        def compute() -> list[Finished]:
            if in_cycle(part, self._tables):
                return self._cycle(states, full=full)
            return [self._single(states[0], attempt, full=full)]

        new = computed_again(compute, lambda error: self._put_back_lost(states, error))
        with self._lock:
            self._done += new
            self._seen = {**self._seen, **{one.facts.name: head for one in new if (head := staged_head(one))}}

    def _put_back_lost(self, states: Sequence[gather_facts.TableState], error: HeadraceError) -> None:
        """Put back what members have written whose rows were lost with an executor of Spark.

        Raises:
            HeadraceError: The error itself, where one of them is defined anew: its tables are in `staging` only.
        """
        self._preparation.changes.distrust()
        if not self._anew.keys().isdisjoint(state.table.name for state in states):
            raise error
        for state in states:
            self._catalog.reset_staging(state.table.stored, held=self._leases())
        self._publishing.begun_again(tuple(state.table.name for state in states), error)

    def _state(self, name: TableName) -> gather_facts.TableState:
        """Return what the catalog says of a member; put back what an unfinished refresh left of it."""
        state = gather_facts.known(self._catalog, name)
        if self._order.redefine is None:
            self._publishing.recover(state, self._leases())
        if not self._anew:
            return state
        return gather_facts.among(state, {n: one.definition for n, one in self._anew.items() if n != name})

    def _are_current(self, states: Sequence[gather_facts.TableState]) -> bool:
        if any(state.table.name in self._anew for state in states):
            return False
        return all(self._observation.is_current(state, self._order.heads, self._seen) for state in states)

    def _single(self, state: gather_facts.TableState, attempt: Attempt, *, full: bool) -> Finished:
        name, heads = state.table.name, self._order.heads
        how = self._order.resolved.get(name)
        new = self._anew.get(name)
        if new is None:
            seen = self._agreeing(state)
            return self._preparation.prepare(state, None, heads, full, attempt, self._leases, seen=seen, resolved=how)
        anew = gather_facts.redefined(state, new.definition, new.reason)
        seen = self._agreeing(anew)
        observed = self._observation.of(anew, heads, seen)
        refuse_overtaken(state, _still_read(state, observed))
        judged = {} if new.by_user else self._preparation.judged(state, observed, self._order.resolved)
        done = self._preparation.prepare(anew, new.definition, heads, True, attempt, self._leases, new.gone, seen=seen)
        return replace(done, changed=judged, remade=new.remade)

    def _agreeing(self, state: gather_facts.TableState) -> Mapping[TableName, Head]:
        """Return the heads that are settled before a table looks at its sources."""
        if not self._order.aligned:
            return self._seen
        return self._observation.of(state, self._order.heads, self._seen, aligned=True)

    def _cycle(self, states: Sequence[gather_facts.TableState], *, full: bool) -> list[Finished]:
        """Run the refresh of a cycle up to, and without, publishing."""
        names = {state.table.name for state in states}
        anew = {name: self._anew[name] for name in names if name in self._anew}
        before = states
        if anew:
            states = [_redefined(state, anew[state.table.name]) for state in states]
        outside = dict.fromkeys(s for state in states for s in state.table.sources if s not in names)
        rest = [s for s in outside if s not in self._seen]
        observed = self._order.heads.of(rest, frozenset(states[0].streams))
        observed |= {s: self._seen[s] for s in outside if s in self._seen}
        for state in before:
            if not anew:
                refuse_stopped(state)
                refuse_missing(state)
                refuse_apart(state)
            refuse_overtaken(state, _still_read(state, observed))
            if anew and not anew[state.table.name].by_user:
                self._preparation.judged(state, observed, self._order.resolved)
        expected = {
            state.table.name: published_pointers(self._catalog, state, full=full or bool(anew)) for state in states
        }
        definitions = {name: one.definition for name, one in anew.items()}
        gone = {name: one.gone for name, one in anew.items()}
        resolved = UNRESOLVED if anew else self._order.resolved
        done = self._cycles.prepare(Circle(states, observed, expected, full, definitions, gone, resolved))
        return [replace(one, remade=one.facts.name in anew and anew[one.facts.name].remade) for one in done]


def _not_ready(why: str) -> EnvironmentFault:
    return EnvironmentFault(
        NOT_READY,
        f"A group had begun before all that it reads was published, and begins anew: {why}",
        hint="Nothing is to be done: schedulers refresh it again.",
        retryable=True,
    )


def _redefined(state: gather_facts.TableState, new: Redefinition) -> gather_facts.TableState:
    return gather_facts.redefined(state, new.definition, new.reason)


def _still_read(state: gather_facts.TableState, observed: Mapping[TableName, Head]) -> dict[TableName, Head]:
    """Return heads of what a table read before and reads yet.

    Those that are held back for alignment may well be older.
    """
    return {name: head for name, head in observed.items() if name in state.table.sources and not head.aligned}


def _name(error: HeadraceError, name: TableName, count: int) -> None:
    """Name in an error the member that it is about; its caller may have asked for another."""
    if str(name) not in error.message:
        where = f"It is about {name}, one of {count} stream tables that are published together."
        error.detail = f"{error.detail} {where}" if error.detail else where


def _unchanged(name: TableName, frontier: Frontier, seconds: float) -> RefreshResult:
    return RefreshResult(str(name), Mode.NO_CHANGE, None, None, 0, 0, seconds, frontier.as_dict(), {}, 0)
