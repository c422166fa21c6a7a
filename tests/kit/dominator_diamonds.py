"""All diamonds of a graph, one after the other: slow, and by another way than `headrace.graph.meeting_ways`.

A name `top` and a name `bottom` make a diamond exactly when, seen from `bottom`, the immediate dominator of `top` is
`bottom` itself. Dominators are found in one pass per bottom, backwards (Cooper, Harvey, Kennedy: A Simple, Fast
Dominance Algorithm, 2001; one pass suffices without cycles).
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.graph.dag import Dag, Name
from headrace.graph.diamonds import Diamond


def diamonds(dag: Dag[Name]) -> tuple[Diamond[Name], ...]:
    """All diamonds, by bottom in topological order, then by top."""
    place = {name: part[-1] for part in dag.parts for name in part}
    whole = {part[-1]: part for part in dag.parts}
    reads = {p[-1]: {place[above] for name in p for above in dag.producers(name)} - {p[-1]} for p in dag.parts}
    condensed = Dag(reads) if dag.cycle() else dag
    found: list[Diamond[Name]] = []
    for bottom in condensed.order():
        if len(condensed.producers(bottom)) > 1:
            found += _meeting_at(condensed, bottom)
    return tuple(
        Diamond(d.top, d.bottom, inside, any(map(dag.component, (d.top, *inside))))
        for d in found
        for inside in [tuple(n for b in d.between for n in whole[b])]
    )


def _meeting_at(dag: Dag[Name], bottom: Name) -> Iterator[Diamond[Name]]:
    above = dag.upstream(bottom)
    inside = {bottom, *above}
    dominator: dict[Name, Name] = {bottom: bottom}
    depth: dict[Name, int] = {bottom: 0}
    tops = []
    for name in reversed(above):
        readers = [reader for reader in dag.consumers(name) if reader in inside]
        joined = readers[0]
        for reader in readers[1:]:
            joined = _common(joined, reader, dominator, depth)
        dominator[name], depth[name] = joined, depth[joined] + 1
        if joined == bottom and len(readers) > 1:
            tops.append(name)
    for top in sorted(tops, key=str):
        below = {top, *dag.downstream(top)}
        yield Diamond(top, bottom, tuple(name for name in above if name in below and name != top))


def _common(one: Name, other: Name, dominator: dict[Name, Name], depth: dict[Name, int]) -> Name:
    """Return the nearest name that lies on all ways from both to the bottom."""
    while one != other:
        if depth[one] >= depth[other]:
            one = dominator[one]
        else:
            other = dominator[other]
    return one
