"""Alignment: which versions of its sources a stream table reads so that they agree on everything they have in common.

Where ways part at a relation `top` and meet again at a table, its sources may reflect different versions of `top`. With
`diamond_consistency = 'aligned'` the table reads, of each source, the newest version such that all of them reflect one
version of every top. Agreeing on the tops of its diamonds is agreeing on every common source: what lies above is seen
through them.

A version of a stream table stays the same while its frontier moves over changes that did not concern it. So it
reflects several versions of what it reads, each of which counts.

The search starts at the newest versions and goes back: whoever reflects only later versions of a top than somebody else
can be at all, cannot agree with him before going back. That ends at the newest versions that agree (the greatest
consistent cut; as in Garg, Elements of Distributed Computing, 2002, chapter 7: the least cut is found by advancing
whoever is forbidden, and the greatest alike).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.frontier import Frontier
from headrace.names import TableName

MOST = 64
"""So many ways to understand a version are looked at, the newest ones."""

Reflected = dict[TableName, int]
"""Versions of tops."""


@dataclass(frozen=True, slots=True)
class State:
    """What a stream table was after a refresh.

    Args:
        version: Its version.
        frontier: Its frontier.
    """

    version: int
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of earlier states.

    Args:
        tops: Where ways part that meet at the table in question.
        states: Of the stream tables that lie on these ways, oldest first.
    """

    tops: frozenset[TableName]
    states: Mapping[TableName, Sequence[State]]
    _known: dict[tuple[TableName, int], tuple[Reflected, ...]] = field(default_factory=dict)

    def reflected(self, name: TableName, version: int) -> tuple[Reflected, ...]:
        """The versions of tops that a version of a relation reflects; each element is one way to understand it.

        Nothing for a version of which nothing is known, or which itself mixes versions of a top.
        """
        if (name, version) not in self._known:
            found = self._through(name, version) if name in self.states else ({},)
            own = {name: version} if name in self.tops else {}
            self._known[name, version] = tuple(one | own for one in found)
        return self._known[name, version]

    def _through(self, name: TableName, version: int) -> tuple[Reflected, ...]:
        found: list[Reflected] = []
        for state in reversed(self.states[name]):
            if state.version == version:
                for one in joined(self.reflected(source, at) for source, at in state.frontier.items()):
                    if one not in found:
                        found.append(one)
        return tuple(found[:MOST])


def joined(parts: Iterable[Sequence[Reflected]]) -> tuple[Reflected, ...]:
    """All combinations that agree on what they have in common."""
    found: list[Reflected] = [{}]
    for part in parts:
        found = [one | other for one in found for other in part if _agree(one, other)][:MOST]
    return tuple(found)


def _agree(one: Reflected, other: Reflected) -> bool:
    return all(one[top] == version for top, version in other.items() if top in one)


def aligned(past: Past, candidates: Mapping[TableName, Sequence[int]]) -> dict[TableName, int] | None:
    """The newest versions that agree.

    Args:
        past: What earlier states reflect.
        candidates: By source, the versions that may be read, oldest first.

    Returns:
        A version of each source; None when no versions agree.
    """
    at = {name: len(versions) - 1 for name, versions in candidates.items()}
    while all(place >= 0 for place in at.values()):
        chosen = {name: candidates[name][place] for name, place in at.items()}
        reflected = {name: past.reflected(name, version) for name, version in chosen.items()}
        if joined(reflected.values()):
            return chosen
        for name in _too_new(reflected):
            at[name] -= 1
    return None


def _too_new(reflected: Mapping[TableName, Sequence[Reflected]]) -> set[TableName]:
    """Sources that must go back: such as reflect nothing known, or of a top only what is newer than others can be.

    Where no single top tells, those that reflect several tops, of which one must be the reason.
    """
    if unknown := {name for name, ways in reflected.items() if not ways}:
        return unknown
    for top in sorted({top for ways in reflected.values() for one in ways for top in one}):
        seen = {name: [one[top] for one in ways if top in one] for name, ways in reflected.items()}
        if late := _later_than_possible([(name, versions) for name, versions in seen.items() if versions]):
            return late
    return {name for name, ways in reflected.items() if any(len(one) > 1 for one in ways)}


def _later_than_possible(seen: Sequence[tuple[TableName, Sequence[int]]]) -> set[TableName]:
    """Of versions of one top, by source: who has none that is as old as the newest that another one has."""
    bound = min(max(versions) for _, versions in seen)
    while True:
        if late := {name for name, versions in seen if min(versions) > bound}:
            return late
        lower = min(max(v for v in versions if v <= bound) for _, versions in seen)
        if lower == bound:
            return set()
        bound = lower
