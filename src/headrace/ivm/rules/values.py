"""Literal rows.

Δ(c) = ∅ for a constant c.
Source: Budiu et al., DBSP, VLDB 2023, section 3.
"""

from __future__ import annotations

from headrace.algebra.relations import Relation, Values
from headrace.ivm.change import Change, empty


def delta(values: Values, change: Change) -> Relation:
    """Return no rows: literal rows never change."""
    return empty(values)
