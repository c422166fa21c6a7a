"""Finds the names of a graph on a common cycle: its strongly connected components.

Source: Tarjan, Depth-First Search and Linear Graph Algorithms, SIAM J. Comput. 1 (1972); without recursion, as
pipelines may be deeper than Python recurses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def components(edges: Mapping[Name, Sequence[Name]]) -> list[tuple[Name, ...]]:
    """Return cyclic components: maximal sets of names that all reach each other.

    Single names only where they reach themselves.

    Args:
        edges: For each name, the names it leads to; all of them have an entry.
    """
    number: dict[Name, int] = {}
    low: dict[Name, int] = {}
    path: list[Name] = []
    open_: set[Name] = set()
    found: list[tuple[Name, ...]] = []

    def enter(name: Name) -> tuple[Name, Iterator[Name]]:
        number[name] = low[name] = len(number)
        path.append(name)
        open_.add(name)
        return name, iter(edges[name])

    for root in edges:
        waiting = [enter(root)] if root not in number else []
        while waiting:
            name, rest = waiting[-1]
            for other in rest:
                if other not in number:
                    waiting.append(enter(other))
                    break
                if other in open_:
                    low[name] = min(low[name], number[other])
            else:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    low[above] = min(low[above], low[name])
                if low[name] == number[name]:
                    start = len(path) - 1
                    while path[start] != name:
                        start -= 1
                    members = tuple(path[start:])
                    del path[start:]
                    open_.difference_update(members)
                    if len(members) > 1 or name in edges[name]:
                        found.append(members)
    return found
