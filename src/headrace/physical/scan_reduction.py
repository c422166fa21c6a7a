"""How rows near a change are collected without reading all of a large source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.algebra.relations import Relation
from headrace.ivm.program import DeltaCoverage
from headrace.names import quote

WORTH_ASKING = 3_000_000
"""In a smaller source, asking by keys whether there is anything to read costs as much as reading it."""


@dataclass(frozen=True, slots=True)
class ScanReduction:
    """What may make a statement that collects rows near a change read less.

    Args:
        numbers: One of the key's columns that is a whole number, and the query of its values, where the statement is
            to read only what lies within their spans.
        enclosed: A query of one value, whether all these rows are in the source's own change; and the statement that
            does instead if they are.
    """

    numbers: tuple[str, str] | None = None
    enclosed: tuple[str, str] | None = None

    @property
    def titled(self) -> tuple[tuple[str, str], ...]:
        """What may be run for it: what it is, as a person sees it, and the statement."""
        keys = (("keys", self.numbers[1]),) if self.numbers is not None else ()
        if self.enclosed is None:
            return keys
        question, instead = self.enclosed
        return (*keys, ("whether the change has all of it", question), ("if it has", instead))


def enclosed_sql(enclosure: DeltaCoverage, lower: Callable[[Relation], str]) -> tuple[str, str]:
    """What `ScanReduction.enclosed` is for an enclosure.

    Args:
        enclosure: The relations.
        lower: Gives the statement of one.
    """
    near = f"SELECT count(*) FROM ({lower(enclosure.near)})"
    added = f"SELECT coalesce(sum({quote(enclosure.times)}), 0) FROM ({lower(enclosure.added)})"
    return f"SELECT ({near}) = ({added})", lower(enclosure.instead)
