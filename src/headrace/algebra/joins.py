"""Trees of inner joins as inputs and conditions."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.relations import Aggregate, Filter, Join, Project, Relation
from headrace.algebra.scalar import Scalar, conjuncts


def flatten(relation: Relation) -> tuple[tuple[Relation, ...], tuple[Scalar, ...]]:
    """Return the inputs of nested inner joins, left to right, and all their conjuncts."""
    if not isinstance(relation, Join):
        return (relation,), ()
    left, left_conditions = flatten(relation.left)
    right, right_conditions = flatten(relation.right)
    own = conjuncts(relation.condition) if relation.condition is not None else ()
    return left + right, left_conditions + right_conditions + own


def connected(start: Relation, others: Sequence[Relation], conditions: Sequence[Scalar]) -> tuple[Relation, ...]:
    """Order inputs so that each, where possible, shares a condition with earlier ones.

    Args:
        start: The first input.
        others: The others; their order decides where there is a choice.
        conditions: Conditions over any of the inputs.
    """
    order, there = [start], set(start.columns)
    # of an input only the conditions over it matter
    waiting = [(each, own, _over(conditions, own)) for each in others for own in (frozenset(each.columns),)]
    while waiting:
        chosen = next((i for i, (_, own, over) in enumerate(waiting) if _share(there, own, over)), 0)
        following, own, _ = waiting.pop(chosen)
        order.append(following)
        there |= own
    return tuple(order)


def products(inputs: Sequence[Relation], conditions: Sequence[Scalar]) -> int:
    """Return how many inputs share no condition with those before them.

    Args:
        inputs: In the order in which they are joined.
        conditions: Conditions over any of them.
    """
    there, found = set(inputs[0].columns), 0
    for each in inputs[1:]:
        own = frozenset(each.columns)
        found += not _share(there, own, _over(conditions, own))
        there |= own
    return found


def _over(conditions: Sequence[Scalar], own: frozenset[str]) -> tuple[frozenset[str], ...]:
    return tuple(c.columns for c in conditions if not own.isdisjoint(c.columns))


def _share(there: set[str], own: frozenset[str], conditions: Sequence[frozenset[str]]) -> bool:
    return any(not there.isdisjoint(c) and c - own <= there for c in conditions)


def ready(conditions: Sequence[Scalar], without: set[str]) -> tuple[Scalar, ...]:
    """Return the conditions that read more than some columns.

    Args:
        conditions: The conditions.
        without: These columns.
    """
    return tuple(c for c in conditions if not c.columns <= without)


def at_most_one_row(relation: Relation) -> bool:
    """Return whether an input is a single value: an aggregate of all rows, maybe filtered."""
    while isinstance(relation, (Project, Filter)):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys
