"""Rows multiplied by a number that they carry.

Δ(R × n) = ΔR × n: a row with weight w and number n counts w·n times, whatever else is there. A number below one is
none.
Source: Budiu et al., DBSP, VLDB 2023, section 4 (linear operators).
"""

from __future__ import annotations

from headrace.algebra.relations import Project, Relation, Replicate
from headrace.algebra.scalar import column, compose
from headrace.algebra.tree import identity
from headrace.ivm.change import Change
from headrace.names import WEIGHT


def delta(replicate: Replicate, change: Change) -> Relation:
    """Return the change with its weights multiplied."""
    return multiplied(change.of(replicate.input), replicate.copies)


def multiplied(change: Relation, copies: str) -> Project:
    """Return a weighted relation without the column that says how often each of its rows counts."""
    weight = compose(
        "CAST({w} * GREATEST({n}, 0) AS bigint)",
        w=column(WEIGHT),
        n=column(copies),
    )
    kept = tuple(name for name in change.columns if name not in (copies, WEIGHT))
    return Project(change, (*identity(kept), (WEIGHT, weight)))
