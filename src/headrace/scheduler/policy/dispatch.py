"""Chooses which unit starts next: a state machine without clock, threads or catalog.

Greedy: a unit starts the moment its inputs are done and a slot is free. There are no levels to wait for, so a straggler
delays only what reads from it. Among those that may start, the most urgent one goes first, as a rule the one with the
longest way still behind it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from headrace.graph.dag import Dag

Unit = TypeVar("Unit", bound=Hashable)


class Dispatch(Generic[Unit]):
    """Units that wait and run, and which of them may start.

    Args:
        slots: How many units run at once.
        quotas: How many of a pool run at once; a pool that is missing has no limit of its own.
    """

    def __init__(self, slots: int, quotas: Mapping[str, int] | None = None) -> None:
        self.slots = slots
        self.quotas = dict(quotas or {})
        self._dag: Dag[Unit] = Dag({})
        self._left: dict[Unit, float] = {}
        self._pools: dict[Unit, str] = {}
        self._waiting: dict[Unit, set[Unit]] = {}
        self._running: dict[Unit, str] = {}
        self._ready: list[tuple[float, int, Unit]] = []
        self._count = 0
        self._busy = Counter[str]()

    def draw(
        self, dag: Dag[Unit], left: Mapping[Unit, float], pools: Mapping[Unit, str] | None = None
    ) -> tuple[Unit, ...]:
        """Set the graph of units; waiting ones keep the producers they already wait for.

        Args:
            dag: Who reads whom.
            left: By unit, how urgent it is: the seconds from its start to the end of the last unit behind it, or more.
            pools: By unit, the pool it belongs to; "" or nothing for none.

        Returns:
            What waited and is no unit any more, because it was dropped or has joined a group: it will not start.
        """
        self._dag, self._left, self._pools = dag, dict(left), dict(pools or {})
        self._ready = [(-self._left.get(unit, 0.0), count, unit) for _, count, unit in self._ready]
        heapq.heapify(self._ready)
        gone = tuple(unit for unit in self._waiting if unit not in dag)
        for unit in gone:
            del self._waiting[unit]
        for unit, missing in self._waiting.items():
            kept = {p for p in missing & set(dag.producers(unit)) if self.knows(p)}
            if missing and not kept:
                self._push(unit)
            self._waiting[unit] = kept
        return gone

    @property
    def idle(self) -> bool:
        """Return whether nothing waits and nothing runs."""
        return not self._waiting and not self._running

    @property
    def running(self) -> frozenset[Unit]:
        """Return the running units."""
        return frozenset(self._running)

    @property
    def busy(self) -> tuple[int, dict[str, int]]:
        """Return how many units run, over all and by pool."""
        return len(self._running), dict(self._busy)

    def knows(self, unit: Unit) -> bool:
        """Return whether a unit waits or runs."""
        return unit in self._waiting or unit in self._running

    def add(self, wanted: Iterable[Unit]) -> None:
        """Queue units, each behind those it reads that wait or run.

        Units already queued or running stay as they are.
        """
        new = [unit for unit in dict.fromkeys(wanted) if not self.knows(unit)]
        self._waiting |= {unit: set() for unit in new}
        for unit in new:
            self._waiting[unit] = {p for p in self._dag.producers(unit) if self.knows(p)}
            if not self._waiting[unit]:
                self._push(unit)

    def start(self) -> tuple[Unit, ...]:
        """Take what may start now; the caller starts it."""
        started: list[Unit] = []
        held_back = []
        while self._ready and len(self._running) < self.slots:
            entry = heapq.heappop(self._ready)
            unit = entry[2]
            if unit not in self._waiting or self._waiting[unit]:  # given up since, and perhaps added again
                continue
            pool = self._pools.get(unit, "")
            if pool in self.quotas and self._busy[pool] >= self.quotas[pool]:
                held_back.append(entry)
                continue
            del self._waiting[unit]
            self._running[unit] = pool
            self._busy[pool] += 1
            started.append(unit)
        for entry in held_back:
            heapq.heappush(self._ready, entry)
        return tuple(started)

    def finish(self, unit: Unit) -> None:
        """Note that a unit ended well, so that what waited for it may start."""
        self._leave(unit)
        for consumer in self._dag.consumers(unit):
            self._release(consumer, unit)

    def fail(self, unit: Unit) -> tuple[Unit, ...]:
        """Return a unit failed: what waits for it, directly or not, is given up; returns that."""
        self._leave(unit)
        given_up: list[Unit] = []
        queue = [unit]
        while queue:
            gone = queue.pop()
            dependants = [waiting for waiting, missing in self._waiting.items() if gone in missing]
            for dependant in dependants:
                del self._waiting[dependant]
            given_up += dependants
            queue += dependants
        return tuple(given_up)

    def clear(self) -> tuple[Unit, ...]:
        """Give up everything that waits; returns it. What runs, runs on."""
        given_up = tuple(self._waiting)
        self._waiting.clear()
        self._ready.clear()
        return given_up

    def _leave(self, unit: Unit) -> None:
        self._busy[self._running.pop(unit)] -= 1

    def _release(self, consumer: Unit, done: Unit) -> None:
        missing = self._waiting.get(consumer)
        if missing is not None and done in missing:
            missing.discard(done)
            if not missing:
                self._push(consumer)

    def _push(self, unit: Unit) -> None:
        self._count += 1
        heapq.heappush(self._ready, (-self._left.get(unit, 0.0), self._count, unit))
