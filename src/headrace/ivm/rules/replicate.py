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
    """Return the change, each weight multiplied by how often its row counts."""
    return multiplied(change.of(replicate.input), replicate.copies)


def multiplied(change: Relation, copies: str) -> Project:
    """Multiply the weights of a change by one of its columns, and drop that column.

    Args:
        change: A weighted relation.
        copies: The column that says how often each row counts; a negative number counts as 0.
    """
    weight = compose(
        "CAST({w} * GREATEST({n}, 0) AS bigint)",
        w=column(WEIGHT),
        n=column(copies),
    )
    kept = tuple(name for name in change.columns if name not in (copies, WEIGHT))
    return Project(change, (*identity(kept), (WEIGHT, weight)))
