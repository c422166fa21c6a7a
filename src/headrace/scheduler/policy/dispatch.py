"""Chooses which task starts next: a state machine without clock, threads or catalog.

A unit is refreshed by tasks: a group by one for each of its tables, or cycles; anything else is one task of the same
name. Greedy: a task starts the moment its inputs are done and a slot is free. Inputs in other units are done when these
are published, those in its own unit when they are computed. There are no levels to wait for, so a straggler delays only
what reads from it. Among those that may start, the most urgent one goes first, as a rule the one with the longest way
still behind it.

A group begins when all units that it reads have begun, and each of its tables when those that it reads itself have
ended. As what has begun may always go on, a group never holds its leases for anything that might not start at all.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headrace.graph.dag import Dag

Unit = TypeVar("Unit", bound=Hashable)


@dataclass(slots=True)
class _Begun(Generic[Unit]):
    """A unit under way.

    Args:
        unit: The unit.
        inside: Its tasks, and which reads which.
        ready: Those that may start.
        waiting: Those that may not yet, with what they wait for: other tasks, and units.
        awaited: The units that had not ended when it began.
        running: How many run.
        failed: Whether one failed, so that no further one starts.
    """

    unit: Unit
    inside: Dag[Unit]
    ready: set[Unit]
    waiting: dict[Unit, set[Unit]]
    awaited: frozenset[Unit] = frozenset()
    running: int = 0
    failed: bool = False

    @property
    def left(self) -> Iterator[Unit]:
        """Yield the tasks that have not started."""
        yield from self.ready
        yield from self.waiting

    def arrived(self, name: Unit, tasks: Iterable[Unit]) -> Iterator[Unit]:
        """Yield tasks that waited for a task or a unit, and for nothing else any more."""
        for task in tasks:
            missing = self.waiting.get(task, set())
            missing.discard(name)
            if task in self.waiting and not missing:
                del self.waiting[task]
                self.ready.add(task)
                yield task


@dataclass(frozen=True, slots=True, order=True)
class _Entry(Generic[Unit]):
    """A task that may start, in the order of the queue."""

    before: float
    count: int
    task: Unit = field(compare=False)
    unit: Unit = field(compare=False)


class Dispatch(Generic[Unit]):
    """Units that wait and run, and which of their tasks may start.

    Once a group has begun it may always run one task, whatever became of the slots meanwhile: it holds its leases.

    Args:
        slots: How many tasks run at once.
        quotas: How many of a pool run at once; a pool that is missing has no limit of its own.
    """

    def __init__(self, slots: int, quotas: Mapping[str, int] | None = None) -> None:
        self.slots = slots
        self.quotas = dict(quotas or {})
        self._dag: Dag[Unit] = Dag({})
        self._left: dict[Unit, float] = {}
        self._pools: dict[Unit, Sequence[str]] = {}
        self._inside: dict[Unit, Dag[Unit]] = {}
        self._outside: dict[Unit, Collection[Unit]] = {}
        self._waiting: dict[Unit, set[Unit]] = {}
        self._begun: dict[Unit, _Begun[Unit]] = {}
        self._running: dict[Unit, tuple[Unit, Sequence[str]]] = {}
        self._ready: list[_Entry[Unit]] = []
        self._count = 0
        self._busy = Counter[str]()

    def draw(
        self,
        dag: Dag[Unit],
        left: Mapping[Unit, float],
        pools: Mapping[Unit, Sequence[str]] | None = None,
        inside: Mapping[Unit, Dag[Unit]] | None = None,
        outside: Mapping[Unit, Collection[Unit]] | None = None,
        leaving: Collection[Unit] = (),
    ) -> tuple[Unit, ...]:
        """Set the graph of units; waiting ones keep the producers they already wait for.

        Args:
            dag: Who reads whom.
            left: By task, how urgent it is: the seconds from its start to the end of the last one behind it, or more.
            pools: By task, the pools that it counts against; nothing for none.
            inside: By unit, its tasks, and which reads which; one that is missing is a single task.
            outside: By task, the other units that it reads; one that is missing reads all that its unit does.
            leaving: Units that are not to start if they wait.

        Returns:
            What waited and will not start: it leaves, or is no unit any more, as it was dropped or has joined a group.
        """
        self._dag, self._left, self._pools = dag, dict(left), dict(pools or {})
        changed, self._inside, self._outside = self._inside, dict(inside or {}), dict(outside or {})
        gone = tuple(unit for unit in self._waiting if unit not in dag or unit in leaving)
        for unit in gone:
            del self._waiting[unit]
        for unit, missing in self._waiting.items():
            kept = {p for p in missing & set(dag.producers(unit)) if self.knows(p)}
            self._waiting[unit] = kept
            if kept or missing or changed.get(unit) is not self._inside.get(unit):
                self._push_unit(unit)
        once = {entry.task: entry for entry in self._ready if self._may_start(entry)}
        self._ready = [_Entry(-self._left.get(e.task, 0.0), e.count, e.task, e.unit) for e in once.values()]
        heapq.heapify(self._ready)
        return gone

    @property
    def idle(self) -> bool:
        """Return whether nothing waits and nothing runs."""
        return not self._waiting and not self._begun

    @property
    def running(self) -> frozenset[Unit]:
        """Return the running tasks."""
        return frozenset(self._running)

    @property
    def waiting(self) -> int:
        """Return how many tasks wait for a slot, or for others."""
        more = sum(len(tasks) - 1 for unit, tasks in self._inside.items() if unit in self._waiting)
        return len(self._waiting) + more + sum(len(tuple(begun.left)) for begun in self._begun.values())

    @property
    def busy(self) -> tuple[int, dict[str, int]]:
        """Return how many tasks run, over all and by pool.

        For a group under way at least one, also in the pools of its tasks that have not started.
        """
        needed = {pool for begun in self._begun.values() for task in begun.left for pool in self._pools.get(task, ())}
        pools = {pool: max(self._busy[pool], int(pool in needed)) for pool in {*self._busy, *needed}}
        return max(len(self._running), int(bool(self._begun))), pools

    def knows(self, unit: Unit) -> bool:
        """Return whether a unit waits or runs."""
        return unit in self._waiting or unit in self._begun

    def runs(self, unit: Unit) -> bool:
        """Return whether a unit is under way."""
        return unit in self._begun

    def active(self, unit: Unit) -> bool:
        """Return whether a task of a unit under way runs."""
        return self._begun[unit].running > 0

    def unit_of(self, task: Unit) -> Unit:
        """Return the unit of a running task."""
        return self._running[task][0]

    def awaited(self, unit: Unit) -> frozenset[Unit]:
        """Return the units that a unit under way reads and that had not ended when it began."""
        return self._begun[unit].awaited

    def add(self, wanted: Iterable[Unit]) -> None:
        """Queue units, each behind those it reads that wait or run.

        Units already queued or running stay as they are.
        """
        new = [unit for unit in dict.fromkeys(wanted) if not self.knows(unit)]
        self._waiting |= {unit: set() for unit in new}
        for unit in new:
            self._waiting[unit] = {p for p in self._dag.producers(unit) if self.knows(p)}
        for unit in new:
            self._push_unit(unit)

    def start(self, beside: Sequence[str] = ()) -> tuple[Unit, ...]:
        """Take the tasks that may start now; the caller starts them.

        Args:
            beside: Pools in which something else takes a place just now, once for each place.
        """
        started: list[Unit] = []
        held_back = []
        while self._ready and len(self._running) < max(self.slots, 1):
            entry = heapq.heappop(self._ready)
            if not self._may_start(entry):
                continue
            pools = self._pools.get(entry.task, ())
            if not self._has_room(entry.unit, pools, beside):
                held_back.append(entry)
                continue
            begun = self._begin(entry.unit)
            begun.ready.remove(entry.task)
            begun.running += 1
            self._running[entry.task] = entry.unit, pools
            self._busy.update(pools)
            started.append(entry.task)
        for entry in held_back:
            heapq.heappush(self._ready, entry)
        return tuple(started)

    def finish(self, task: Unit) -> tuple[Unit, ...]:
        """Note that a task ended well, so that what waited for it may start.

        Returns:
            Where it was the last to end of a unit that failed: what waited for that, directly or not, and is given up,
            and units under way that wait for it, of which the caller has to `stop` each or let it `go_on`.
        """
        begun = self._leave(task)
        self._arrived(begun, task, begun.inside.consumers(task))
        return self._ended(begun)

    def fail(self, task: Unit) -> tuple[Unit, ...]:
        """Note that a task failed; no further task of its unit starts. Returns as `finish`."""
        return self._failed(self._leave(task))

    def stop(self, unit: Unit) -> tuple[Unit, ...]:
        """Start no further task of a unit under way, which has failed. Returns as `finish`."""
        return self._failed(self._begun[unit])

    def go_on(self, unit: Unit) -> None:
        """Have a unit under way wait no longer for units that have ended, though they failed."""
        begun = self._begun[unit]
        for gone in begun.awaited.difference(self._begun):
            self._arrived(begun, gone, tuple(begun.waiting))

    def clear(self) -> tuple[Unit, ...]:
        """Give up everything that waits; returns it. What is under way goes on."""
        given_up = tuple(self._waiting)
        self._waiting.clear()
        self._ready = [entry for entry in self._ready if entry.unit in self._begun]
        heapq.heapify(self._ready)
        return given_up

    # ---- steps

    def _tasks(self, unit: Unit) -> Dag[Unit]:
        return self._inside.get(unit) or Dag({unit: ()})

    def _push_unit(self, unit: Unit) -> None:
        """Put the tasks of a unit in line with which it may begin, if it may."""
        for task in self._first(unit):
            self._push(task, unit)

    def _first(self, unit: Unit) -> Iterator[Unit]:
        """Yield the tasks with which a unit that waits may begin."""
        missing = self._waiting[unit]
        if all(above in self._begun for above in missing):
            for task in self._inside[unit].roots if unit in self._inside else (unit,):
                if missing.isdisjoint(self._outside.get(task, missing)):
                    yield task

    def _push(self, task: Unit, unit: Unit) -> None:
        self._count += 1
        heapq.heappush(self._ready, _Entry(-self._left.get(task, 0.0), self._count, task, unit))

    def _may_start(self, entry: _Entry[Unit]) -> bool:
        """Return whether an entry of the queue still holds.

        Units may have been given up, added again or cut anew since.
        """
        if (begun := self._begun.get(entry.unit)) is not None:
            return entry.task in begun.ready
        return entry.unit in self._waiting and entry.task in self._first(entry.unit)

    def _has_room(self, unit: Unit, pools: Sequence[str], beside: Sequence[str]) -> bool:
        least = int(unit in self._begun)
        if len(self._running) >= max(self.slots, least):
            return False
        return all(
            self._busy[pool] < max(self.quotas[pool] - beside.count(pool), least)
            for pool in pools
            if pool in self.quotas
        )

    def _begin(self, unit: Unit) -> _Begun[Unit]:
        if unit not in self._begun:
            missing, inside = self._waiting.pop(unit), self._tasks(unit)
            above = {task: missing.intersection(self._outside.get(task, missing)) for task in inside.names}
            waiting = {task: found for task in inside.names if (found := {*inside.producers(task), *above[task]})}
            ready = {task for task in inside.names if task not in waiting}
            self._begun[unit] = _Begun(unit, inside, ready, waiting, frozenset(missing))
            for consumer in self._dag.consumers(unit):  # which may begin as well, if it reads nothing else
                if unit in self._waiting.get(consumer, ()):
                    self._push_unit(consumer)
        return self._begun[unit]

    def _leave(self, task: Unit) -> _Begun[Unit]:
        unit, pools = self._running.pop(task)
        self._busy.subtract(pools)
        begun = self._begun[unit]
        begun.running -= 1
        return begun

    def _ended(self, begun: _Begun[Unit]) -> tuple[Unit, ...]:
        """Forget a unit whose tasks have all ended; return what is given up with it."""
        if begun.running or begun.ready or begun.waiting:
            return ()
        del self._begun[begun.unit]
        if begun.failed:
            return self._given_up(begun.unit)
        for consumer in self._dag.consumers(begun.unit):
            missing = self._waiting.get(consumer)
            if missing is not None and begun.unit in missing:
                missing.discard(begun.unit)
                self._push_unit(consumer)
        for reader in self._awaiting(begun.unit):
            self._arrived(reader, begun.unit, tuple(reader.waiting))
        return ()

    def _awaiting(self, unit: Unit) -> list[_Begun[Unit]]:
        """Return units under way of which tasks wait for a unit."""
        readers = (begun for begun in self._begun.values() if unit in begun.awaited)
        return [begun for begun in readers if any(unit in missing for missing in begun.waiting.values())]

    def _arrived(self, begun: _Begun[Unit], name: Unit, tasks: Iterable[Unit]) -> None:
        for task in begun.arrived(name, tasks):
            self._push(task, begun.unit)

    def _failed(self, begun: _Begun[Unit]) -> tuple[Unit, ...]:
        begun.failed = True
        begun.ready.clear()
        begun.waiting.clear()
        return self._ended(begun)

    def _given_up(self, unit: Unit) -> tuple[Unit, ...]:
        given_up: list[Unit] = []
        queue = [unit]
        while queue:
            gone = queue.pop()
            dependants = [c for c in self._dag.consumers(gone) if gone in self._waiting.get(c, ())]
            for dependant in dependants:
                del self._waiting[dependant]
            given_up += dependants
            queue += dependants
        return (*given_up, *(begun.unit for begun in self._awaiting(unit)))
