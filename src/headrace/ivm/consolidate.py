"""Consolidation: each row once with the sum of its weights; rows that cancel are dropped.

Source: Budiu et al., DBSP, VLDB 2023, section 2 (Z-sets).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from headrace.algebra.properties.order import is_float, told_apart
from headrace.algebra.relations import Aggregate, AggregateCall, Empty, Filter, Project, Relation
from headrace.algebra.scalar import as_column, column, compose
from headrace.algebra.tree import identity, unweighted
from headrace.algebra.types import followed
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
    return consolidate(exchanged(old, new))


def exchanged(old: Relation, new: Relation) -> Relation:
    """Return the change in which every old row leaves and every new row comes.

    Args:
        old: The rows before.
        new: The rows after, with the same columns.
    """
    return union_all(weigh(new, 1), weigh(old, -1))


def difference_below(old: Relation, new: Relation, exact: Set[str], types: Mapping[str, str]) -> Relation:
    """Return the change from one relation to another, for operators that stand above.

    Those may tell values apart that are equal, such as 0.0 and -0.0 by their texts, so that rows with zeros of both
    signs are not added up, nor any whose values may be equal for another reason.

    Args:
        old: The rows before.
        new: The rows after, with the same columns.
        exact: Names of columns whose equal values are known to be the same.
        types: Types of columns by name, as far as known.
    """
    loose = loose_columns(old.columns, exact, types)
    change = exchanged(old, new)
    return consolidated_apart(change, loose) if all(map(is_float, loose.values())) else change


def loose_columns(columns: Sequence[str], exact: Set[str], types: Mapping[str, str]) -> dict[str, str]:
    """List the columns in which values may be equal and not the same, with their types.

    Args:
        columns: Names of a relation's columns.
        exact: Names of columns whose equal values are known to be the same.
        types: Types of columns by name, as far as known; it is "" for others.
    """
    return {name: types.get(name, "") for name in columns if name not in exact}


def consolidated_apart(change: Relation, loose: Mapping[str, str]) -> Relation:
    """Add up the weights of rows that are the same; equal ones need not be, as 0.0 and -0.0.

    Rows with values that cannot be grouped by, such as variants, or of which that is not known, stay as they are.

    Args:
        change: A weighted relation.
        loose: Columns that may have such values, with their types; "" where one is not known.
    """
    if not loose or isinstance(change, Empty):
        return consolidate(change)
    if not all(type_ and followed(type_) for type_ in loose.values()):
        return change
    # grouping by a zero makes it one without a sign, so that values themselves go beside those that are grouped by
    marks = tuple((_MARK + name, compose(told_apart("{x}", type_), x=column(name))) for name, type_ in loose.items())
    own = tuple((_OWN + name, column(name)) for name in loose)
    marked = Project(change, (*identity(change.columns), *marks, *own))
    keys = (*unweighted(change.columns), *(name for name, _ in marks))
    kept = tuple(AggregateCall(name, "any_value", column(name)) for name, _ in own)
    summed = Filter(Aggregate(marked, keys, (*kept, total(WEIGHT))), CHANGED)
    return Project(summed, tuple((c, column(_OWN + c if c in loose else c)) for c in change.columns))


_MARK, _OWN = f"{RESERVED_PREFIX}mark.", f"{RESERVED_PREFIX}own."
