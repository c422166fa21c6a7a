"""A directed graph over names, meant to be acyclic: who reads whom.

Generic over hashable names, pure, and deterministic: where the graph leaves a choice, names come in the order of their
text, so that plans and drawings do not change from run to run.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from headrace.errors import UserError

Name = TypeVar("Name", bound=Hashable)


class Dag(Generic[Name]):
    """An immutable graph of producers and consumers.

    Args:
        producers: For each name, the names it reads; names that are only read need no entry.

    A graph with a cycle can be made, so that `cycle` can name it; everything that needs an order raises `CYCLE` then.
    """

    def __init__(self, producers: Mapping[Name, Iterable[Name]]) -> None:
        inputs: dict[Name, tuple[Name, ...]] = {name: _sorted(set(read)) for name, read in producers.items()}
        for read in tuple(inputs.values()):
            for name in read:
                inputs.setdefault(name, ())
        self._producers = {name: inputs[name] for name in _sorted(inputs)}
        outputs: dict[Name, list[Name]] = {name: [] for name in self._producers}
        for name, read in self._producers.items():
            for producer in read:
                outputs[producer].append(name)
        self._consumers = {name: tuple(readers) for name, readers in outputs.items()}
        self._sorted, self._stuck = self._sort()

    @property
    def names(self) -> tuple[Name, ...]:
        """Every name, sorted by its text."""
        return tuple(self._producers)

    def cycle(self) -> tuple[Name, ...]:
        """A cycle as a path that ends where it begins; () when there is none."""
        return self._find_cycle() if self._stuck else ()

    @property
    def _order(self) -> tuple[Name, ...]:
        if self._stuck:
            raise _cycle_error(self._find_cycle())
        return self._sorted

    @property
    def edges(self) -> tuple[tuple[Name, Name], ...]:
        """Pairs (producer, consumer)."""
        return tuple((producer, name) for name in self._order for producer in self._producers[name])

    def __contains__(self, name: object) -> bool:
        return name in self._producers

    def __len__(self) -> int:
        return len(self._producers)

    def producers(self, name: Name) -> tuple[Name, ...]:
        """What a name reads directly; nothing for an unknown name."""
        return self._producers.get(name, ())

    def consumers(self, name: Name) -> tuple[Name, ...]:
        """What reads a name directly; nothing for an unknown name."""
        return self._consumers.get(name, ())

    def upstream(self, *names: Name) -> tuple[Name, ...]:
        """Everything the names depend on, without the names themselves, producers first."""
        return self._reached(names, self._producers)

    def downstream(self, *names: Name) -> tuple[Name, ...]:
        """Everything that depends on the names, without the names themselves, producers first."""
        return self._reached(names, self._consumers)

    def order(self, names: Iterable[Name] | None = None) -> tuple[Name, ...]:
        """Topological order of all names, or of the given ones: producers before consumers.

        Raises:
            UserError: `CYCLE`, with the cycle as a path.
        """
        if names is None:
            return self._order
        wanted = set(names)
        return tuple(name for name in self._order if name in wanted)

    def levels(self) -> tuple[tuple[Name, ...], ...]:
        """Names by their distance from the sources; names of one level do not depend on each other."""
        level: dict[Name, int] = {}
        for name in self._order:
            level[name] = 1 + max((level[producer] for producer in self._producers[name]), default=-1)
        found: list[list[Name]] = [[] for _ in range(1 + max(level.values(), default=-1))]
        for name in self._producers:
            found[level[name]].append(name)
        return tuple(tuple(names) for names in found)

    def restricted(self, names: Iterable[Name]) -> Dag[Name]:
        """The graph of the given names alone, with the edges between them."""
        kept = set(names)
        return Dag({name: [p for p in read if p in kept] for name, read in self._producers.items() if name in kept})

    def with_producers(self, name: Name, producers: Iterable[Name]) -> Dag[Name]:
        """The graph after a definition is added or changed.

        Raises:
            UserError: `CYCLE`, when the definition would depend on itself.
        """
        changed = Dag({**self._producers, name: producers})
        if cycle := changed.cycle():
            raise _cycle_error(cycle)
        return changed

    def _reached(self, names: tuple[Name, ...], edges: Mapping[Name, tuple[Name, ...]]) -> tuple[Name, ...]:
        seen: set[Name] = set()
        waiting = [reached for name in names for reached in edges.get(name, ())]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(edges[name])
        return self.order(seen.difference(names))

    def _sort(self) -> tuple[tuple[Name, ...], frozenset[Name]]:
        """Kahn's algorithm, the smallest ready name first; the order, and the names a cycle keeps out of it."""
        missing = {name: len(read) for name, read in self._producers.items()}
        by_rank = tuple(self._producers)
        rank = {name: i for i, name in enumerate(by_rank)}
        ready = [rank[name] for name, count in missing.items() if not count]
        heapq.heapify(ready)
        order: list[Name] = []
        while ready:
            name = by_rank[heapq.heappop(ready)]
            order.append(name)
            for consumer in self._consumers[name]:
                missing[consumer] -= 1
                if not missing[consumer]:
                    heapq.heappush(ready, rank[consumer])
        return tuple(order), frozenset(name for name, count in missing.items() if count)

    def _find_cycle(self) -> tuple[Name, ...]:
        """Walk from a stuck name to a producer that is stuck too, until one repeats."""
        name = next(n for n in self._producers if n in self._stuck)
        path: list[Name] = []
        while name not in path:
            path.append(name)
            name = next(producer for producer in self._producers[name] if producer in self._stuck)
        cycle = path[path.index(name) :]
        first = min(range(len(cycle)), key=lambda i: str(cycle[i]))
        return (*cycle[first:], *cycle[:first], cycle[first])


def _sorted(names: Iterable[Name]) -> tuple[Name, ...]:
    return tuple(sorted(names, key=str))


def _cycle_error(path: tuple[Name, ...]) -> UserError:
    return UserError(
        "CYCLE",
        f"{path[0]} would depend on itself: {' reads '.join(str(name) for name in path)}.",
        hint="Change one of these queries so that the circle is broken.",
    )
