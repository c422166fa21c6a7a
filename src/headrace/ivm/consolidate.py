"""Consolidation: each row once with the sum of its weights; rows that cancel are dropped.

Source: Budiu et al., DBSP, VLDB 2023, section 2 (Z-sets).
"""

from __future__ import annotations

from collections.abc import Set

from headrace.algebra.relations import Aggregate, Empty, Filter, Project, Relation
from headrace.algebra.scalar import as_column, cast, column, compose
from headrace.algebra.tree import identity, unweighted
from headrace.ivm.change import total, union_all, weigh
from headrace.names import RESERVED_PREFIX, WEIGHT

CHANGED = compose("{w} <> 0", w=column(WEIGHT))
"""The weight is not zero."""


def consolidate(change: Relation) -> Relation:
    """Add up the weights of equal rows and drop zeros; the weight comes last."""
    if isinstance(change, Empty) or (change.columns[-1] == WEIGHT and _consolidated(change)):
        return change
    return Filter(Aggregate(change, unweighted(change.columns), (total(WEIGHT),)), CHANGED)


def _consolidated(change: Relation) -> bool:
    """Return whether rows were consolidated, and only renamed since."""
    if isinstance(change, Project):
        renamed = {as_column(scalar): name for name, scalar in change.items}
        whole = len(renamed) == len(change.items) and set(change.input.columns) == renamed.keys()
        return whole and renamed[WEIGHT] == WEIGHT and _consolidated(change.input)
    if not isinstance(change, Filter) or change.condition != CHANGED or not isinstance(change.input, Aggregate):
        return False
    return change.input.columns == (*change.input.keys, WEIGHT)


def difference(old: Relation, new: Relation) -> Relation:
    """Return the change from one relation to another: new rows minus old rows.

    Args:
        old: The rows before.
        new: The rows after, with the same columns.
    """
    return consolidate(union_all(weigh(new, 1), weigh(old, -1)))


def difference_below(old: Relation, new: Relation, exact: Set[str]) -> Relation:
    """Return the change from one relation to another, for operators that stand above.

    Those may tell values apart that are equal, such as 0.0 and -0.0 by their texts, so that rows which may have such
    values are not added up here.

    Args:
        old: The rows before.
        new: The rows after, with the same columns.
        exact: Names of columns whose equal values are known to be the same.
    """
    if exact >= set(old.columns):
        return difference(old, new)
    return union_all(weigh(new, 1), weigh(old, -1))


def shown_change(change: Relation, exact: Set[str]) -> Relation:
    """Add up the weights of rows that are the same: what may be inexact is compared by text too.

    Args:
        change: A weighted relation.
        exact: Names of columns whose equal values are known to be the same.

    Returns:
        A relation that has a row where the change has one that is not cancelled, with columns of its own.
    """
    kept = unweighted(change.columns)
    texts = tuple((f"{RESERVED_PREFIX}text.{c}", cast(column(c), "STRING")) for c in kept if c not in exact)
    return consolidate(Project(change, (*identity(kept), *texts, (WEIGHT, column(WEIGHT)))) if texts else change)
