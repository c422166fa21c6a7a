"""Alignment: choose versions of sources that agree on everything they have in common.

Where ways part at a relation `top` and meet again at a table, its sources may reflect different versions of `top`. With
`diamond_consistency = 'aligned'` the table reads, of each source, the newest version such that all of them reflect one
version of every top. Agreeing on the tops of its diamonds is agreeing on every common source: what lies above is seen
through them.

A version of a stream table stays the same while its frontier moves over changes that did not concern it. So it
reflects several versions of what it reads, each of which counts: there are several ways to understand it.

The search begins at the newest versions. Nobody can reflect a later version of a top than the oldest of those that the
sources reflect at most; that bounds the ways to understand each, which lowers what they reflect of other tops, and so
on, until all agree. As no way that agrees is ever excluded, that ends at the newest versions that agree (the greatest
consistent cut; as in Garg, Elements of Distributed Computing, 2002, chapter 7: the least cut is found by advancing
whoever is forbidden, and the greatest alike). It needs ways of which one is the newest: frontiers only go forward, so
of two ways the later version of every top is a way, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.frontier import Frontier
from headrace.names import TableName

Reflected = dict[TableName, int]
"""Versions of tops."""


@dataclass(frozen=True, slots=True)
class State:
    """The version and frontier of a stream table after a refresh.

    Args:
        version: Its version.
        frontier: Its frontier.
    """

    version: int
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class Past:
    """Earlier states of stream tables, as far as the catalog keeps them.

    Args:
        tops: Where ways part that meet at the table in question.
        states: Of the stream tables that lie on these ways, oldest first.
    """

    tops: frozenset[TableName]
    states: Mapping[TableName, Sequence[State]]
    _known: dict[object, Reflected | None] = field(default_factory=dict)

    def reflected(self, name: TableName, version: int, bounds: Reflected) -> Reflected | None:
        """Return the newest versions of tops, within bounds, that a version reflects.

        None for a version of which nothing is known, or which mixes versions of a top, or reflects later ones only.
        """
        key = (name, version, frozenset(bounds.items()))
        if key not in self._known:
            self._known[key] = self._reflected(name, version, bounds)
        return self._known[key]

    def _reflected(self, name: TableName, version: int, bounds: Reflected) -> Reflected | None:
        own = {name: version} if name in self.tops else {}
        if version > bounds.get(name, version):
            return None
        if name not in self.states:
            return own
        for state in reversed(self.states[name]):
            if state.version == version:
                cut = _cut(self, {source: (at,) for source, at in state.frontier.items()}, bounds)
                if cut is not None:
                    return cut[1] | own
        return None


def aligned(past: Past, candidates: Mapping[TableName, Sequence[int]]) -> dict[TableName, int] | None:
    """Return the newest versions that agree.

    Args:
        past: What earlier states reflect.
        candidates: By source, the versions that may be read, oldest first.

    Returns:
        A version of each source; None when no versions agree.
    """
    cut = _cut(past, candidates, {})
    return None if cut is None else cut[0]


def _cut(
    past: Past, candidates: Mapping[TableName, Sequence[int]], bounds: Reflected
) -> tuple[dict[TableName, int], Reflected] | None:
    """Return the newest versions that agree within bounds, and what they reflect together."""
    left = {name: list(versions) for name, versions in candidates.items()}
    while True:
        ways: list[Reflected] = []
        for name, versions in left.items():
            way = _newest(past, name, versions, bounds)
            if way is None:
                return None
            ways.append(way)
        together: Reflected = {}
        for way in ways:
            together |= {top: min(version, together.get(top, version)) for top, version in way.items()}
        if all(together[top] == version for way in ways for top, version in way.items()):
            return {name: versions[-1] for name, versions in left.items()}, together
        bounds = bounds | together


def _newest(past: Past, name: TableName, versions: list[int], bounds: Reflected) -> Reflected | None:
    """Return what the newest possible version within bounds reflects; drop the impossible."""
    while versions:
        way = past.reflected(name, versions[-1], bounds)
        if way is not None:
            return way
        versions.pop()
    return None
