"""Drops what the right side of a semi-join or an anti-join does for nothing.

Partners are looked for, not counted: how often one occurs does not matter. Nor does a restriction to those whose keys
occur on the left, where the condition compares the same keys and the partners are at hand already: it kept a source
from being read whole, but what a step keeps is read whole in less time than the keys take.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.properties.equalities import equalities
from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Project,
    Relation,
    Replicate,
    SemiJoin,
    Stored,
)
from headrace.algebra.scalar import as_column, column, compose
from headrace.algebra.tree import identity, over, transform, walk, whole_sources
from headrace.ivm.program import COMPANION, STATE


def look_for_partners(tree: Relation) -> Relation:
    """Return the tree, whose semi-joins and anti-joins look for partners and do nothing more."""
    return transform(tree, _rule)


def _rule(node: Relation) -> Relation:
    if not isinstance(node, Existence):
        return node
    compared: dict[str, set[tuple[str, str]]] = {}
    for own, other, _ in equalities(node.condition, node.left.columns, node.right.columns):
        if (origin := _origin(node.left, own)) is not None:
            compared.setdefault(other, set()).add(origin)
    return over(node, node.left, _partners(node.right, compared))


def _partners(right: Relation, compared: Mapping[str, set[tuple[str, str]]]) -> Relation:
    """Return the partners without what they need not be.

    Args:
        right: Where partners are looked for.
        compared: By column, the steps' columns on the left that it is compared with.
    """
    match right:
        case Filter():
            return over(right, _partners(right.input, compared))
        case Project():
            below: dict[str, set[tuple[str, str]]] = {}
            for name, scalar in right.items:
                if (read := as_column(scalar)) is not None and name in compared:
                    below.setdefault(read, set()).update(compared[name])
            return over(right, _partners(right.input, below))
        case Replicate():
            there = Filter(_partners(right.input, compared), compose("{n} > 0", n=column(right.copies)))
            return Project(there, identity(right.columns))
        case SemiJoin(anti=False) if right.on and _is_kept(right.left):
            left = _partners(right.left, compared)
            repeated = all(_origin_of_all(right.right, key) in compared.get(own, ()) for own, key in right.on)
            return left if repeated else over(right, left, right.right)
    return right


def _is_kept(relation: Relation) -> bool:
    """Return whether all that a relation reads are rows of steps."""
    stored = {node.name for node in walk(relation) if isinstance(node, Stored)}
    return not whole_sources(relation) and not stored & {STATE, COMPANION}


def _origin(relation: Relation, name: str) -> tuple[str, str] | None:
    """Return the step and its column whose values a column has, some of them or all."""
    match relation:
        case Filter() | SemiJoin() | Existence():
            return _origin(relation.inputs[0], name)
        case _:
            return _origin_of_all(relation, name)


def _origin_of_all(relation: Relation, name: str) -> tuple[str, str] | None:
    """Return the step and its column whose values a column has, all of them."""
    match relation:
        case Stored():
            return relation.name, name
        case Project():
            read = as_column(dict(relation.items)[name])
            return None if read is None else _origin_of_all(relation.input, read)
        case Aggregate() if name in relation.keys:
            return _origin_of_all(relation.input, name)
    return None
