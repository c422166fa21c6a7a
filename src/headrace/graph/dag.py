"""A directed graph of names and what they read.

Generic over hashable names, pure, and deterministic: where the graph leaves a choice, names come in the order of their
text, so that plans and drawings do not change from run to run.

Names on a common cycle make a cyclic component. Everything that has an order takes a component for one place: its
members stand together, after what any of them reads from outside and before what reads any of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from headrace.errors import UserError
from headrace.graph.components import components

Name = TypeVar("Name", bound=Hashable)


class Dag(Generic[Name]):
    """An immutable graph of producers and consumers.

    Args:
        producers: For each name, the names it reads; names that are only read need no entry.
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
        self._component: dict[Name, tuple[Name, ...]] = {}
        self._parts = self._sort()
        if sum(map(len, self._parts)) < len(self._producers):
            for found in components(self._producers):
                self._component |= dict.fromkeys(found, _sorted(found))
            self._parts = self._sort()
        self._order = tuple(name for part in self._parts for name in part)

    @property
    def names(self) -> tuple[Name, ...]:
        """Return every name, sorted by its text."""
        return tuple(self._producers)

    @property
    def parts(self) -> tuple[tuple[Name, ...], ...]:
        """Return all names in topological order, the members of each cycle in one part."""
        return self._parts

    @property
    def roots(self) -> tuple[Name, ...]:
        """Return names that read nothing; of a cycle that reads nothing else, its first one."""
        return tuple(p[0] for p in self._parts if all(o in p for name in p for o in self._producers[name]))

    def component(self, name: Name) -> tuple[Name, ...]:
        """Return the cyclic component that a name belongs to, sorted; () for a name on no cycle."""
        return self._component.get(name, ())

    def cycle(self, through: Name | None = None) -> tuple[Name, ...]:
        """Return a cycle as a path that ends where it begins; () when there is none.

        Args:
            through: A name that must lie on it; it then begins there.
        """
        if through is not None:
            return self._shortest_cycle(through) if through in self._component else ()
        return self._shortest_cycle(_sorted(self._component)[0]) if self._component else ()

    @property
    def edges(self) -> tuple[tuple[Name, Name], ...]:
        """Return pairs (producer, consumer)."""
        return tuple((producer, name) for name in self._order for producer in self._producers[name])

    def __contains__(self, name: object) -> bool:
        return name in self._producers

    def __len__(self) -> int:
        return len(self._producers)

    def producers(self, name: Name) -> tuple[Name, ...]:
        """Return the names that one reads directly; none for an unknown name."""
        return self._producers.get(name, ())

    def consumers(self, name: Name) -> tuple[Name, ...]:
        """Return the names that read one directly; none for an unknown name."""
        return self._consumers.get(name, ())

    def upstream(self, *names: Name) -> tuple[Name, ...]:
        """Return everything the names depend on, without the names themselves, producers first."""
        return self._reached(names, self._producers)

    def downstream(self, *names: Name) -> tuple[Name, ...]:
        """Return everything that depends on the names, producers first, without themselves."""
        return self._reached(names, self._consumers)

    def order(self, names: Iterable[Name] | None = None) -> tuple[Name, ...]:
        """Return names in topological order, all or the given ones; cycles stay together."""
        if names is None:
            return self._order
        wanted = set(names)
        return tuple(name for name in self._order if name in wanted)

    def levels(self) -> tuple[tuple[Name, ...], ...]:
        """Return names by their distance from the sources.

        Names of one level do not depend on each other, save on cycles.
        """
        level: dict[Name, int] = {}
        for part in self._parts:
            above = (level[p] for name in part for p in self._producers[name] if p in level)
            level |= dict.fromkeys(part, 1 + max(above, default=-1))
        found: list[list[Name]] = [[] for _ in range(1 + max(level.values(), default=-1))]
        for name in self._producers:
            found[level[name]].append(name)
        return tuple(tuple(names) for names in found)

    def _reached(self, names: tuple[Name, ...], edges: Mapping[Name, tuple[Name, ...]]) -> tuple[Name, ...]:
        seen: set[Name] = set()
        waiting = [reached for name in names for reached in edges.get(name, ())]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(edges[name])
        return self.order(seen.difference(names))

    def _sort(self) -> tuple[tuple[Name, ...], ...]:
        """Sort components by Kahn's algorithm, the smallest ready name first.

        What depends on an unknown cycle is left out.
        """
        by_rank = tuple(self._producers)
        rank = {name: i for i, name in enumerate(by_rank)}
        part_of = {name: self._component.get(name, (name,)) for name in by_rank}
        missing = dict.fromkeys(by_rank, 0)  # by the first name of each part
        for name, read in self._producers.items():
            missing[part_of[name][0]] += sum(1 for p in read if p not in self._component.get(name, ()))
        ready = [rank[name] for name, count in missing.items() if not count and name == part_of[name][0]]
        heapq.heapify(ready)
        order: list[tuple[Name, ...]] = []
        while ready:
            part = part_of[by_rank[heapq.heappop(ready)]]
            order.append(part)
            for consumer in (c for name in part for c in self._consumers[name] if c not in part):
                first = part_of[consumer][0]
                missing[first] -= 1
                if not missing[first]:
                    heapq.heappush(ready, rank[first])
        return tuple(order)

    def _shortest_cycle(self, start: Name) -> tuple[Name, ...]:
        """Find the shortest cycle through a name, breadth first over producers."""
        reader: dict[Name, Name] = {}
        waiting = [start]
        for name in waiting:
            for producer in self._producers[name]:
                if producer == start:
                    path = [start, name]
                    while path[-1] != start:
                        path.append(reader[path[-1]])
                    return tuple(reversed(path))
                if producer not in reader and producer in self._component[start]:
                    reader[producer] = name
                    waiting.append(producer)
        return ()


def _sorted(names: Iterable[Name]) -> tuple[Name, ...]:
    return tuple(sorted(names, key=str))


def cycle_error(path: tuple[Name, ...]) -> UserError:
    """Return the refusal of a definition that would close a cycle, given as a path."""
    return UserError(
        "CYCLE",
        f"{path[0]} would depend on itself: {' reads '.join(str(name) for name in path)}.",
        hint="Change one of these queries so that the circle is broken; or, if it is meant, set allow_cycles = true in "
        "headrace.toml (docs/cycles.md).",
    )
