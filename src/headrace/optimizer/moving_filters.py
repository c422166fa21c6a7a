"""Moves moving filters down to the sources whose columns they compare with the time.

There the rows that time alone moves are a range of a source, and a part of that source's change to all operators above.
"""

from __future__ import annotations

from collections.abc import Set

from headrace.algebra.moving import is_moving, moving_filter
from headrace.algebra.relations import Existence, Relation
from headrace.algebra.scalar import Scalar
from headrace.algebra.tree import transform
from headrace.names import NOW
from headrace.optimizer.conditions_below import Conditions, Filtering


def push_moving_filters(relation: Relation) -> Relation:
    """Push moving filters below projections, unions, joins, and groups by what they compare."""
    return transform(relation, _rule)


def _rule(node: Relation) -> Relation:
    if isinstance(node, Existence) and is_moving(node) and not node.anti:
        return _MovingFilters().below(node.left, (node.condition,))
    return node


class _MovingFilters(Filtering):
    """Makes moving filters of conditions over columns and the time."""

    def above(self, node: Relation, conditions: Conditions) -> Relation:
        for condition in conditions:
            node = moving_filter(node, condition)
        return node

    def columns(self, condition: Scalar) -> Set[str]:
        return condition.columns - {NOW}
