"""Ways to compute a semi-join of a large source with a change without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.algebra.relations import Relation
from headrace.ivm.program import DeltaCoverage

WORTH_ASKING = 3_000_000
"""In a smaller source, asking by keys whether there is anything to read costs as much as reading it."""


@dataclass(frozen=True, slots=True)
class ScanReduction:
    """Ways for a semi-join stage to read less of its source; decided while it runs.

    Args:
        keys: A whole-number column of the source, and a relation of one column with all values that are looked for: the
            source is then read within the ranges of these values only. None: it is read whole.
        coverage: Tells whether all these rows are in the source's own change, and what is computed instead if they
            are. None: that is not asked.
    """

    keys: tuple[str, Relation] | None = None
    coverage: DeltaCoverage | None = None

    @property
    def relations(self) -> Iterator[Relation]:
        """Yield the relations that may be computed for it."""
        if self.keys is not None:
            yield self.keys[1]
        if self.coverage is not None:
            yield from (self.coverage.semijoin, self.coverage.added, self.coverage.instead)


NO_REDUCTION = ScanReduction()
