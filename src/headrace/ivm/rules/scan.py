"""Source.

Δ(R) is the change itself.
Source: Budiu et al., DBSP, VLDB 2023, section 3 (streams and their differentiation).
"""

from __future__ import annotations

from headrace.algebra.relations import Moment, Relation, Scan
from headrace.ivm.change import Change


def delta(scan: Scan, change: Change) -> Relation:
    """Return the source's own change."""
    return Scan(scan.source, scan.fields, Moment.CHANGE)
