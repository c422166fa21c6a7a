"""Lets nodes rest that gave nothing to a landing, so that they hold up none of the others.

A node of a source that is out of reach is waited for at each landing, and one that adds a key of another is read anew,
with all that it has committed since. So each is tried again after a pause that grows.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from headrace.errors import HeadraceError
from headrace.landing.shared_keys import KEY_ON_TWO_NODES
from headrace.sources.source_kind import OUT_OF_REACH


@dataclass(frozen=True, slots=True)
class _Pauses:
    """The pause after a first failure, in seconds, and the longest that doubling leads to.

    Whether the node itself is what a landing takes long for; else rows of the others may be.
    """

    first: float
    longest: float
    costly: bool = False


_SECOND = 1.0
_SHARE = 4
"""Pauses are as many times as long as the landing that came to nothing, however long that is for a costly node."""

_PAUSES = {
    **dict.fromkeys(OUT_OF_REACH, _Pauses(_SECOND, 60.0)),
    KEY_ON_TWO_NODES: _Pauses(0.0, 300.0, costly=True),  # a row that moves is whole at once, where all there is is read
}


@dataclass(frozen=True, slots=True)
class _Rest:
    error: HeadraceError
    pause: float
    until: float


class RestingNodes:
    """Remembers, of each source, the nodes that are not read for a while.

    Args:
        now: Reads a clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._rests: dict[str, dict[str, _Rest]] = {}

    def of(self, source: str, nodes: Collection[str], *, strict: bool) -> dict[str, HeadraceError]:
        """Return the nodes that rest now, and why.

        Those out of reach rest for the sake of others only, which could be landed without them.

        Args:
            source: The source.
            nodes: All of its nodes.
            strict: None is landed without the others.
        """
        resting = {node: error for node, error in self._resting(source).items() if node in nodes}
        if strict or resting.keys() >= set(nodes):
            resting = {node: error for node, error in resting.items() if error.code not in OUT_OF_REACH}
        return resting

    def read_all(self, source: str) -> bool:
        """Return whether a node is due that had a key of another.

        All there is is read then: of a part of it that may be so again.
        """
        rests, resting = self._rests.get(source, {}), self._resting(source)
        return any(of.error.code == KEY_ON_TWO_NODES for node, of in rests.items() if node not in resting)

    def note(
        self,
        source: str,
        held: Mapping[str, HeadraceError],
        rested: Collection[str],
        seconds: float = 0.0,
        *,
        landed: bool = True,
    ) -> None:
        """Have nodes rest that gave nothing to a landing.

        Args:
            source: The source.
            held: Why nodes gave nothing.
            rested: Those that were not read for it.
            seconds: Time that it took.
            landed: Whether it is known of the others that they give something.
        """
        before = self._rests.get(source, {})
        rests = {node: rest for node, rest in before.items() if node in rested or not landed}
        for node, error in held.items():
            if node in rested:
                continue
            rests.pop(node, None)
            if (pauses := _PAUSES.get(error.code)) is not None:
                former = before.get(node)
                again = former is not None and former.error.code == error.code
                least = seconds * _SHARE
                grown = max(former.pause * 2, least, _SECOND) if former and again else pauses.first
                pause = max(min(grown, pauses.longest), least if again and pauses.costly else 0.0)
                rests[node] = _Rest(error, pause, self._now() + pause)
        self._rests[source] = rests

    def wake(self, source: str) -> None:
        """Have all nodes of a source be read, as somebody asks for it; pauses begin anew."""
        rests = self._rests.get(source, {})
        self._rests[source] = {node: _Rest(rest.error, 0.0, self._now()) for node, rest in rests.items()}

    def _resting(self, source: str) -> dict[str, HeadraceError]:
        now, rests = self._now(), self._rests.get(source, {})
        return {node: copy.copy(rest.error) for node, rest in rests.items() if now < rest.until}
