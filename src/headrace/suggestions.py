"""Finds what somebody may have meant by a name that does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from headrace.errors import HeadraceError


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


@contextmanager
def suggesting_tables(known: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Have an error of Spark's about a table that does not exist name the one that may be meant.

    Args:
        known: Returns the names of tables that exist.
    """
    try:
        yield
    except HeadraceError as error:
        if error.code == "TABLE_NOT_FOUND" and (named := re.search(r"`[^`]+`(?:\.`[^`]+`)*", error.message)):
            given = named[0].replace("`", "").removeprefix("lake.")
            error.hint = did_you_mean(given, known()).strip() or error.hint
        raise
