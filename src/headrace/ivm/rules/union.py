"""Bag union.

Δ(R ⊎ S) = ΔR ⊎ ΔS.
Source: Budiu et al., DBSP, VLDB 2023, section 4 (linear operators).
"""

from __future__ import annotations

from headrace.algebra.relations import Empty, Project, Relation, Union
from headrace.algebra.scalar import column
from headrace.ivm.change import Change, union_all
from headrace.names import WEIGHT


def delta(union: Union, change: Change) -> Relation:
    """Return the changes of the branches that changed, named after the first branch."""
    names = union.columns
    return union_all(*(_named(change.of(branch), branch.columns, names) for branch in union.branches))


def _named(term: Relation, columns: tuple[str, ...], names: tuple[str, ...]) -> Relation:
    if columns == names or isinstance(term, Empty):
        return term
    pairs = zip((*names, WEIGHT), (*columns, WEIGHT), strict=True)
    return Project(term, tuple((name, column(old)) for name, old in pairs))
