"""Order inner joins so that no two inputs are multiplied that a later one connects.

A query may name its tables in any order (`FROM sales, days d1, days d2, people WHERE …`), and Spark finds one without
cross products by itself, but only of joins that stand directly upon each other: semi-joins between them, which
restrict a step to what a change concerns, end its search, and every pair of days is joined with every sale. So a step's
joins are put in order before they are restricted. Joins that multiply nothing, or nothing that could be helped, stay as
they are, and so do those that start from a change, which the rule of joins has ordered.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.joins import connected, flatten, products, ready
from headrace.algebra.relations import Join, Project, Relation
from headrace.algebra.scalar import Scalar, all_of
from headrace.algebra.tree import identity, over, transform


def order_joins(relation: Relation) -> Relation:
    """Return a relation whose joins follow their conditions.

    Args:
        relation: The tree.
    """
    ordered: dict[int, tuple[Relation, Relation]] = {}  # with the node itself, which keeps its id its own

    def outermost(node: Relation) -> Relation:
        if id(node) not in ordered:
            ordered[id(node)] = (node, _ordered(node) if isinstance(node, Join) else node)
        return ordered[id(node)][1]

    def below(node: Relation) -> Relation:
        return node if isinstance(node, Join) else over(node, *map(outermost, node.inputs))

    return outermost(transform(relation, below))


def _ordered(join: Join) -> Relation:
    if join.small_left:
        return join
    inputs, conditions = flatten(join)
    before = products(inputs, conditions)
    if not before:
        return join
    inputs = connected(inputs[0], inputs[1:], conditions)
    if products(inputs, conditions) >= before:
        return join
    return Project(_joined(inputs, conditions), identity(join.columns))


def _joined(inputs: Sequence[Relation], conditions: Sequence[Scalar]) -> Relation:
    result, waiting = inputs[0], tuple(conditions)
    for each in inputs[1:]:
        there = set(result.columns) | set(each.columns)
        now = tuple(c for c in waiting if c.columns <= there)
        waiting = ready(waiting, there)
        result = Join(result, each, all_of(now))
    return result
