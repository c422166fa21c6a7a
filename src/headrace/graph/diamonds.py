"""Diamonds: where ways that part at one name meet again at another, which can then see its inputs at different ages.

A name `top` and a name `bottom` make a diamond when two ways lead from `top` to `bottom` that have nothing else in
common. That is so exactly when every way has left `top` by several consumers and no single name lies on all of them:
when, seen from `bottom`, the immediate dominator of `top` is `bottom` itself. Dominators are found in one pass per
bottom, backwards (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001; one pass suffices without cycles).

Ways from two different tops make no diamond: without a common source there is nothing to disagree about.
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
    """

    top: Name
    bottom: Name
    between: tuple[Name, ...]


def diamonds(dag: Dag[Name]) -> tuple[Diamond[Name], ...]:
    """All diamonds, by bottom in topological order, then by top.

    Where the ways of several tops are the same, such as two sources that one table joins, each top makes a diamond.
    """
    found: list[Diamond[Name]] = []
    for bottom in dag.order():
        if len(dag.producers(bottom)) > 1:
            found += _meeting_at(dag, bottom)
    return tuple(found)


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
    """The nearest name that lies on all ways from both to the bottom."""
    while one != other:
        if depth[one] >= depth[other]:
            one = dominator[one]
        else:
            other = dominator[other]
    return one
