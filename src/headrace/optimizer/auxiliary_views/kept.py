"""The auxiliary views of a query: what its companion keeps besides the result."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.algebra.relations import Recursive
from headrace.ivm.query_root import Root


@dataclass(frozen=True, slots=True)
class AuxiliaryViews:
    """Parts of the companion besides the root aggregate's accumulators.

    Args:
        groups: The aggregate below ORDER BY … LIMIT at the root, all of whose groups are kept.
        buffer: Whether more of the first rows are kept than ORDER BY … LIMIT at the root shows.
        recursion: The recursion below other operators whose rows are kept.
        aggregates: The aggregates below other operators whose groups are kept, inner ones first.
    """

    groups: Root | None = None
    buffer: bool = False
    recursion: Recursive | None = None
    aggregates: tuple[Root, ...] = ()
