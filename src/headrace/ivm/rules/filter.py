"""Selection.

Δ(σ(R)) = σ(ΔR).
Source: Budiu et al., DBSP, VLDB 2023, section 4 (linear operators).
"""

from __future__ import annotations

from headrace.algebra.relations import Filter, Relation
from headrace.ivm.change import Change


def delta(filter_: Filter, change: Change) -> Relation:
    """Return the same condition over the change."""
    return Filter(change.of(filter_.input), filter_.condition)
