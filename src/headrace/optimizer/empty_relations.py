"""Drops relations that are known to be empty.

∅ is neutral in a union and absorbing in projections, selections, joins and GROUP BY with keys. Nothing is said of an
aggregate without keys, which has a row over no input.
"""

from __future__ import annotations

from headrace.algebra.relations import (
    Aggregate,
    Empty,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Replicate,
    SemiJoin,
    TopK,
    Union,
    Window,
)
from headrace.algebra.scalar import column
from headrace.algebra.tree import transform


def drop_empty(relation: Relation) -> Relation:
    """Remove `Empty` wherever its parent allows; a wholly empty tree becomes one `Empty`."""
    return transform(relation, _rule)


def _rule(node: Relation) -> Relation:
    match node:
        case Union():
            return _union(node)
        case Project() | Filter() | Repeat() | Replicate() | Window() | Generate() | TopK() if isinstance(
            node.inputs[0], Empty
        ):
            return Empty(node.columns)
        case Join() if any(isinstance(side, Empty) for side in node.inputs):
            return Empty(node.columns)
        case OuterJoin() if isinstance(node.left, Empty) and (not node.full or isinstance(node.right, Empty)):
            return Empty(node.columns)
        case SemiJoin(left=left, right=right) | Existence(left=left, right=right):
            if isinstance(left, Empty) or (isinstance(right, Empty) and not node.anti):
                return Empty(node.columns)
            return left if isinstance(right, Empty) else node
        case LookupJoin() if isinstance(node.left, Empty):
            return Empty(node.columns)
        case Aggregate() if node.keys and isinstance(node.input, Empty):
            return Empty(node.columns)
    return node


def _union(node: Union) -> Relation:
    live = tuple(branch for branch in node.branches if not isinstance(branch, Empty))
    if len(live) == len(node.branches):
        return node
    if not live:
        return Empty(node.columns)
    first = live[0]
    if first.columns != node.columns:
        pairs = zip(node.columns, first.columns, strict=True)
        first = Project(first, tuple((name, column(old)) for name, old in pairs))
    return first if len(live) == 1 else Union((first, *live[1:]))
