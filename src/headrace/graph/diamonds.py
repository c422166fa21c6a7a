"""Diamonds: paths that part at one name and meet at another, perhaps at different ages.

A name `top` and a name `bottom` make a diamond when two ways lead from `top` to `bottom` that have nothing else in
common. That is so exactly when every way has left `top` by several consumers and no single name lies on all of them:
when, seen from `bottom`, the immediate dominator of `top` is `bottom` itself. Dominators are found in one pass per
bottom, backwards (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001; one pass suffices without cycles).

Ways from two different tops make no diamond: without a common source there is nothing to disagree about.

The members of a cyclic component are published together whatever else is wanted, so ways inside it count for nothing:
a component is one place, that stands under the name of its last member.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

from headrace.graph.dag import Dag, Name


@dataclass(frozen=True, slots=True)
class Diamond(Generic[Name]):
    """Ways that part and meet again.

    Args:
        top: Where they part: a source or a stream table.
        bottom: Where they meet.
        between: What lies on them, producers first, without both ends.
        cyclic: Whether members of a cycle are where they part, or lie on them.
    """

    top: Name
    bottom: Name
    between: tuple[Name, ...]
    cyclic: bool = False


def diamonds(dag: Dag[Name]) -> tuple[Diamond[Name], ...]:
    """Return all diamonds, by bottom in topological order, then by top.

    Where the ways of several tops are the same, such as two sources that one table joins, each top makes a diamond.
    """
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
