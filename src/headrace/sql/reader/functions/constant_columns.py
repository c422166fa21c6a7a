"""Finds columns that have the same value in every row, made of no column of a table.

To Spark they are columns until it optimizes. In a step their value may stand in their place, as operators share a
SELECT. Of a union only one branch may be left, so that a column counts which is a constant in any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.algebra.relations import Aggregate, Project, Recursive, Relation, Round, Union
from headrace.algebra.scalar import Scalar
from headrace.algebra.tree import inputs_first
from headrace.algebra.words import Kind

Constants = Mapping[str, frozenset[str]]
"""Constant columns, each with the literals it is made of that were asked for."""


def constant_columns(tree: Relation, literals: Collection[str]) -> dict[int, Constants]:
    """Find the constant columns of each node of a tree, by the node's id.

    Args:
        tree: The tree.
        literals: The literals that are asked for, as they are written.
    """
    found: dict[int, Constants] = {}
    for node in inputs_first(tree):
        found[id(node)] = _of_node(node, [found[id(each)] for each in node.inputs], literals)
    return found


def together(inputs: Collection[Constants]) -> dict[str, frozenset[str]]:
    """Return the constant columns of several relations, whose names differ."""
    return {name: made_of for each in inputs for name, made_of in each.items()}


def _of_node(node: Relation, inputs: list[Constants], literals: Collection[str]) -> Constants:
    match node:
        case Project():
            (below,) = inputs
            constants = ((name, scalar) for name, scalar in node.items if scalar.columns <= below.keys())
            return {name: _made_of(scalar, below, literals) for name, scalar in constants}
        case Union() | Recursive():
            found: dict[str, frozenset[str]] = {}
            for branch, own in zip(node.inputs, inputs, strict=True):
                for name, theirs in zip(node.columns, branch.columns, strict=True):
                    if theirs in own:
                        found[name] = found.get(name, frozenset()) | own[theirs]
            return found
        case Round():
            return constant_columns(node.start, literals)[id(node.start)]
        case Aggregate():
            (below,) = inputs
            return {name: below[name] for name in node.keys if name in below}
    return {name: made_of for name, made_of in together(inputs).items() if name in node.columns}


def _made_of(scalar: Scalar, below: Constants, literals: Collection[str]) -> frozenset[str]:
    written = frozenset(w.text for w in scalar.words if w.kind is Kind.LITERAL and w.text in literals)
    return written.union(*(below[name] for name in scalar.columns))
