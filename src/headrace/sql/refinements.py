"""Refinements: what is written into a query's ORDER BY, so that no rows tie.

A query that cuts between ties, or numbers them, has several results that SQL allows. Ordered further by what tells its
rows apart it has one of them, a function of its sources. The user's text stays; refinements are kept beside it and
put into it wherever it is run or read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refinement:
    """One place of a query's text at which its order is refined.

    Args:
        at: Offset in the text.
        removed: How many characters are replaced from there.
        text: What is put there.
        construct: Whose order it is, in SQL words: `LIMIT`, `row_number() OVER`.
        by: What it is ordered by further, in SQL.
    """

    at: int
    removed: int
    text: str
    construct: str
    by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.construct}: ties are ordered by {', '.join(self.by)}"


def refined(query: str, refinements: Iterable[Refinement]) -> str:
    """Return a query with its orders refined."""
    for each in sorted(refinements, key=lambda each: each.at, reverse=True):
        query = query[: each.at] + each.text + query[each.at + each.removed :]
    return query
