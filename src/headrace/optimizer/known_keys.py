"""Simplifies operators where keys are known.

Where no two rows of R agree in k: δ_A(R) = π_A(R) for A ⊇ k, as no row occurs twice; γ_A;f(R) for A ⊇ k has groups of
one row, over which f is an expression; and where a row of L has one partner at most in R, L ⋉ R = π_L(L ⋈ R), and rules
may take L ▷ R for L − π_L(L ⋈ R). Nothing is said of groups of floats and collated texts: GROUP BY makes one value of
several there.
Source: Paulley, Larson, Exploiting Uniqueness in Query Optimization, ICDE 1994.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.properties.keys import KeysOf, Types, Uniqueness
from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Aggregate, AggregateCall, Existence, Join, OuterJoin, Project, Relation
from headrace.algebra.scalar import NULL, Scalar, cast, compose, literal
from headrace.algebra.tree import identity, transform, walk
from headrace.algebra.types import cast_sql, decimal_of, is_integer


def use_keys(relation: Relation, known: KeysOf, types: Types) -> Relation:
    """Return the same rows, with less work where keys are known.

    Args:
        relation: A query's tree, types filled in.
        known: Keys of sources.
        types: Types of columns by name, as far as known.
    """
    if not known:
        return relation
    unique = Uniqueness(known, types)
    return transform(relation, lambda node: _rule(node, unique, types))


def _rule(node: Relation, unique: Uniqueness, types: Types) -> Relation:
    match node:
        case Aggregate() if node.keys:
            return _single_rows(node, unique, types) or node
        case OuterJoin(full=False) | Existence():
            # grouping for the keys of a change is what the rules for these do best
            if any(isinstance(below, Aggregate) for below in walk(node.right)):
                return node
            if not unique.one_partner(node.left, node.right, node.condition):
                return node
            if isinstance(node, OuterJoin) or node.anti:
                return replace(node, unique=True)
            return Project(Join(node.left, node.right, node.condition), identity(node.left.columns))
    return node


def _single_rows(node: Aggregate, unique: Uniqueness, types: Types) -> Relation | None:
    """Return an aggregate whose groups have one row each, without grouping; None for any other."""
    if not all(_exact(types.get(key)) for key in node.keys):
        return None
    if not any(key <= set(node.keys) for key in unique.keys(node.input)):
        return None
    values = {call.name: _of_one_row(call) for call in node.calls}
    items = [(name, value) for name, value in values.items() if value is not None]
    return Project(node.input, (*identity(node.keys), *items)) if len(items) == len(values) else None


def _exact(type_: str | None) -> bool:
    """Return whether equal values of a type are the same value."""
    return type_ is not None and equal_means_same(type_)


def _of_one_row(call: AggregateCall) -> Scalar | None:
    """Return an aggregate function's value over a single row; None if not known."""
    if call.more or call.within or call.inside != "{}" or call.type is None:
        return None
    if call.function == "count":
        there = [] if call.argument is None else [compose("{x} IS NOT NULL", x=call.argument)]
        return _if_all([*there, *([call.filter] if call.filter else [])], literal(1), literal(0), call.type)
    if call.argument is None or not _keeps_its_value(call):
        return None
    conditions = [call.filter] if call.filter else []
    return _if_all(conditions, call.argument, NULL, call.type)


def _keeps_its_value(call: AggregateCall) -> bool:
    if call.function in ("min", "max"):
        return _exact(call.argument_type)
    exact = is_integer(call.argument_type) or decimal_of(call.argument_type) is not None
    return call.function == "sum" and exact


def _if_all(conditions: list[Scalar], value: Scalar, otherwise: Scalar, type_: str) -> Scalar:
    if not conditions:
        return cast(value, type_)
    parts = {f"c{i}": condition for i, condition in enumerate(conditions)}
    holds = " AND ".join(f"({{{name}}})" for name in parts)
    template = cast_sql(f"CASE WHEN {holds} THEN {{v}} ELSE {{o}} END", type_)
    return compose(template, v=value, o=otherwise, **parts)
