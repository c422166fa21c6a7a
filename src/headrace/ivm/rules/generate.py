"""Generators: several rows for one, as `explode` gives them.

Δ(γ(R)) = γ(ΔR): what a row generates depends on that row alone, and each of it counts as often as the row.
Source: Budiu et al., DBSP, VLDB 2023, section 4 (linear operators).
"""

from __future__ import annotations

from headrace.algebra.relations import Generate, Relation
from headrace.ivm.change import Change, arrange


def delta(generate: Generate, change: Change) -> Relation:
    """Return the same generator over the change."""
    return arrange(generate.with_inputs(change.of(generate.input)), generate.columns)
