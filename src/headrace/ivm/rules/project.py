"""Projection.

Δ(π(R)) = π(ΔR), the weight passing through.
Source: Budiu et al., DBSP, VLDB 2023, section 4 (linear operators).
"""

from __future__ import annotations

from headrace.algebra.relations import Project, Relation
from headrace.algebra.scalar import column
from headrace.ivm.change import Change
from headrace.names import WEIGHT


def delta(project: Project, change: Change) -> Relation:
    """Return the same expressions over the change."""
    return Project(change.of(project.input), (*project.items, (WEIGHT, column(WEIGHT))))
