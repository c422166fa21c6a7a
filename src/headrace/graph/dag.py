"""A directed graph of names and what they read.

Generic over hashable names, pure, and deterministic: where the graph leaves a choice, names come in the order of their
text, so that plans and drawings do not change from run to run.

Names on a common cycle make a cyclic component. Everything that has an order takes a component for one place: its
members stand together, after what any of them reads from outside and before what reads any of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
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
        read = {name: frozenset(above) for name, above in producers.items()}
        names = _sorted(dict.fromkeys(chain(read, *read.values())))
        number = {name: i for i, name in enumerate(names)}
        # by numbers: pipelines are read at every look around, and hashing a name takes longer than adding one
        self._arrange(names, [sorted(map(number.__getitem__, read.get(name, ()))) for name in names])

    def contracted(self, unit_of: Mapping[Name, Name]) -> Dag[Name]:
        """Return the graph of units: one reads another where a member of it does.

        Args:
            unit_of: By name, its unit, which is called after one of its members; names without one are left out.
        """
        own = list(map(unit_of.get, self._producers))
        units = [name for name, unit in zip(self._producers, own, strict=True) if name is unit or name == unit]
        number: dict[Name | None, int] = {None: -1, **{name: i for i, name in enumerate(units)}}
        places = list(map(number.__getitem__, own))
        reads: list[set[int]] = [set() for _ in units]
        for place, above in zip(places, self._above, strict=True):
            if place >= 0:
                reads[place].update(map(places.__getitem__, above))
        found = Dag.__new__(Dag)
        found._arrange(units, [sorted(others - {-1, i}) for i, others in enumerate(reads)])
        return found

    def _arrange(self, names: Sequence[Name], above: Sequence[Sequence[int]]) -> None:
        """Become a graph.

        Args:
            names: All names, sorted by their text.
            above: By place among them, the places of those that a name reads, sorted.
        """
        below: list[list[int]] = [[] for _ in names]
        for consumer, numbers in enumerate(above):
            for producer in numbers:
                below[producer].append(consumer)
        self._above = above
        self._producers = {name: tuple(map(names.__getitem__, above[i])) for i, name in enumerate(names)}
        self._consumers = {name: tuple(map(names.__getitem__, below[i])) for i, name in enumerate(names)}
        self._component: dict[Name, tuple[Name, ...]] = {}
        parts = _by_rank(above, below)
        if sum(map(len, parts)) < len(names):
            cycles = [tuple(sorted(found)) for found in components(dict(enumerate(above)))]
            for cycle in cycles:
                members = tuple(names[i] for i in cycle)
                self._component |= dict.fromkeys(members, members)
            parts = _by_rank(above, below, cycles)
        self._parts = tuple(tuple(names[i] for i in part) for part in parts)
        self._order = tuple(name for part in self._parts for name in part)

    @cached_property
    def _places(self) -> Mapping[Name, int]:
        return {name: place for place, name in enumerate(self._order)}

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
        wanted = {name for name in names if name in self._places}
        return tuple(sorted(wanted, key=self._places.__getitem__))

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


def _by_rank(
    above: Sequence[Sequence[int]], below: Sequence[Sequence[int]], cycles: Iterable[tuple[int, ...]] = ()
) -> list[tuple[int, ...]]:
    """Sort components by Kahn's algorithm, the smallest ready number first.

    What depends on an unknown cycle is left out.
    """
    inside = {number: cycle for cycle in cycles for number in cycle}
    missing = [len(read) for read in above]  # of a cycle, by its first number
    for number, cycle in inside.items():
        apart = sum(1 for producer in above[number] if producer not in cycle)
        missing[number] = apart if number == cycle[0] else 0
        missing[cycle[0]] += 0 if number == cycle[0] else apart
    ready = [number for number, count in enumerate(missing) if not count and inside.get(number, (number,))[0] == number]
    order: list[tuple[int, ...]] = []
    while ready:
        first = heapq.heappop(ready)
        part = inside.get(first, (first,))
        order.append(part)
        for number in part:
            for consumer in below[number]:
                if consumer in inside:
                    if consumer in part:
                        continue
                    consumer = inside[consumer][0]
                missing[consumer] -= 1
                if not missing[consumer]:
                    heapq.heappush(ready, consumer)
    return order


def _sorted(names: Iterable[Name]) -> tuple[Name, ...]:
    return tuple(sorted(names, key=str))


def cycle_error(path: tuple[Name, ...], *, of_greens: bool = False) -> UserError:
    """Return the refusal of a definition that would close a cycle, given as a path.

    Args:
        path: The cycle.
        of_greens: Whether a deployment would close it, which none may.
    """
    return UserError(
        "CYCLE",
        f"{path[0]} would depend on itself: {' reads '.join(str(name) for name in path)}.",
        hint="Change one of these queries so that the circle is broken; deployments bring no cycles."
        if of_greens
        else "Change one of these queries so that the circle is broken; or, if it is meant, set allow_cycles = true in "
        "headrace.toml.",
    )
