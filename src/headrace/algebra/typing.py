"""Filling in the types that rules need, by asking whoever knows them (Spark's analyser)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.algebra.relations import Aggregate, AggregateCall, Project, Relation
from headrace.algebra.schema import Column
from headrace.algebra.tree import transform

TypesOf = Callable[[Relation], tuple[Column, ...]]
"""The analysed schema of a relation over the sources."""


def with_types(relation: Relation, types_of: TypesOf) -> Relation:
    """Give every aggregate call its argument and result type.

    Args:
        relation: The tree.
        types_of: Asked once for each aggregate that lacks a type.
    """

    def fill(node: Relation) -> Relation:
        if isinstance(node, Aggregate) and any(_lacks(call) for call in node.calls):
            return _filled(node, types_of)
        return node

    return transform(relation, fill)


def _lacks(call: AggregateCall) -> bool:
    return call.type is None or (call.argument_type is None and call.argument is not None)


def _filled(node: Aggregate, types_of: TypesOf) -> Aggregate:
    arguments = tuple((f"a{i}", call.argument) for i, call in enumerate(node.calls) if call.argument is not None)
    given = {c.name: c.type for c in types_of(Project(node.input, arguments))} if arguments else {}
    results = {c.name: c.type for c in types_of(node)}
    calls = tuple(
        replace(call, argument_type=given.get(f"a{i}"), type=results[call.name]) for i, call in enumerate(node.calls)
    )
    return Aggregate(node.input, node.keys, calls)
