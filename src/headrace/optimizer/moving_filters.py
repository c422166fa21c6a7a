"""Moves moving filters down to the sources whose columns they compare with the time.

There the rows that time alone moves are a range of a source, and a part of that source's change to all operators above.
"""

from __future__ import annotations

from headrace.algebra.moving import is_moving, moving_filter
from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Union,
    Window,
)
from headrace.algebra.scalar import Scalar, column, substitute
from headrace.algebra.tree import transform
from headrace.names import NOW


def push_moving_filters(relation: Relation) -> Relation:
    """Push moving filters below projections, unions, joins, and groups by what they compare."""
    return transform(relation, _rule)


def _rule(node: Relation) -> Relation:
    if isinstance(node, Existence) and is_moving(node) and not node.anti:
        return _sink(node.left, node.condition)
    return node


def _sink(node: Relation, condition: Scalar) -> Relation:
    read = condition.columns - {NOW}
    match node:
        case Filter():
            return Filter(_sink(node.input, condition), node.condition)
        case Project() if all(value.deterministic for name, value in node.items if name in read):
            return Project(_sink(node.input, substitute(condition, dict(node.items))), node.items)
        case Union():
            return Union(tuple(_sink(branch, _renamed(condition, node, branch)) for branch in node.branches))
        case Join() if read and read <= set(node.right.columns):
            return node.with_inputs(node.left, _sink(node.right, condition))
        case Join() | OuterJoin(full=False) | Existence() if read and read <= set(node.left.columns):
            return node.with_inputs(_sink(node.left, condition), node.inputs[1])
        case Generate() if read and read <= set(node.input.columns):
            return node.with_inputs(_sink(node.input, condition))
        case Window() if read and read <= set(node.partition):
            return node.with_inputs(_sink(node.input, condition))
        case Aggregate() if read and read <= set(node.keys):
            return node.with_inputs(_sink(node.input, condition))
    return moving_filter(node, condition)


def _renamed(condition: Scalar, union: Union, branch: Relation) -> Scalar:
    pairs = zip(union.columns, branch.columns, strict=True)
    return substitute(condition, {out: column(own) for out, own in pairs})
