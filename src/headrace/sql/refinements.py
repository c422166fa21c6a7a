"""Refinements: what is written into a query's text, so that it is a function of its sources.

A query that cuts between ties, or numbers them, has several results that SQL allows. Ordered further by what tells its
rows apart it has one of them, a function of its sources. The user's text stays; refinements are kept beside it and
put into it wherever it is run or read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

FLOATS = " of floats"
"""Suffix of the names of constructs whose result depends on the order of addition."""


INTEGERS = " of integers"
"""Suffix of the names of averages whose sums are added up as whole numbers."""

LONG_INTEGERS = " of long integers"
"""Suffix of the names of averages whose sums are added up as decimals."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """One place of a query's text that is refined.

    Args:
        at: Offset in the text.
        removed: How many characters are replaced from there.
        text: What is put there.
        construct: What is refined, in SQL words: `LIMIT`, `row_number() OVER`, `avg() of integers`.
        by: What it is ordered by further, or what is added up, in SQL; nothing where it reads the time of the refresh.
    """

    at: int
    removed: int
    text: str
    construct: str
    by: tuple[str, ...]

    @property
    def of_time(self) -> bool:
        """Return whether it reads the time of the refresh, and no order is refined."""
        return not self.by

    @property
    def of_floats(self) -> bool:
        """Return whether it says in which order floats are added up."""
        return self.construct.endswith(FLOATS)

    @property
    def of_integers(self) -> bool:
        """Return whether it says that integers are added up exactly."""
        return self.construct.endswith((INTEGERS, LONG_INTEGERS))

    @property
    def how(self) -> str:
        """Return what becomes of it, in words."""
        if self.of_time:
            return "the time of the refresh, which is part of the frontier"
        if self.of_integers:
            numbers = "decimals" if self.construct.endswith(LONG_INTEGERS) else "whole numbers"
            return f"added up as {numbers}: {', '.join(self.by)}"
        return f"{'added up in the order of' if self.of_floats else 'ordered by'} {', '.join(self.by)}"

    def __str__(self) -> str:
        ties = "" if self.of_time or self.of_floats or self.of_integers else "ties are "
        return f"{self.construct}: {ties}{self.how}"


def refined(query: str, refinements: Iterable[Refinement]) -> str:
    """Return a query with its refinements in it."""
    for each in sorted(refinements, key=lambda each: each.at, reverse=True):
        query = query[: each.at] + each.text + query[each.at + each.removed :]
    return query


def composed(first: Sequence[Refinement], second: Iterable[Refinement]) -> tuple[Refinement, ...]:
    """Return what has the effect of refining a query twice.

    Args:
        first: Refinements of the query.
        second: Those of its text refined by `first`; none overlaps with what that put there.
    """
    shifts: list[tuple[int, int]] = []
    moved = 0
    for each in sorted(first, key=lambda each: each.at):
        moved += len(each.text) - each.removed
        shifts.append((each.at + each.removed + moved, moved))
    back = (replace(e, at=e.at - max((m for m in shifts if m[0] <= e.at), default=(0, 0))[1]) for e in second)
    return (*first, *back)
