"""Finds what somebody may have meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return `Did you mean x? ` with the nearest of some names; "" where none is near.

    Args:
        given: The name.
        known: Names that exist.
    """
    from difflib import get_close_matches

    names = {name.lower(): name for name in sorted(known)}
    meant = get_close_matches(given.lower(), names, n=1, cutoff=0.7)
    if not meant:  # `revenue` for `shop.revenue`
        tails = {name.rpartition(".")[2]: name for name in names}
        meant = [tails[tail] for tail in get_close_matches(given.lower().rpartition(".")[2], tails, n=1, cutoff=0.8)]
    return f"Did you mean {names[meant[0]]}? " if meant and names[meant[0]] != given else ""
