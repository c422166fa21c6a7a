"""Ways through a graph, for stream tables that hold them."""

from __future__ import annotations

from collections.abc import Set

Edge = tuple[int, int]


def ways(edges: Set[Edge]) -> tuple[set[Edge], set[Edge]]:
    """Ways of odd and of even length, by where they begin and end."""
    odd: set[Edge] = set()
    even: set[Edge] = set()
    while True:
        more = odd | edges | {(s, d) for s, m in edges for n, d in even if m == n}
        more_even = even | {(s, d) for s, m in edges for n, d in odd if m == n}
        if (more, more_even) == (odd, even):
            return odd, even
        odd, even = more, more_even
