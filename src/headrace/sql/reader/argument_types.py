"""Filling in types: of aggregate calls, of outer joins, and of the branches of a union.

Types come from Spark itself, through a callback. Branches of UNION are cast to the type that Spark gives the union,
because a refresh may evaluate a branch alone, where Spark would not widen it; so is the step of a recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Union,
)
from headrace.algebra.scalar import as_column, cast, column
from headrace.algebra.schema import Column
from headrace.algebra.tree import transform

DescribeRelation = Callable[[Relation], tuple[Column, ...]]


def with_types(tree: Relation, describe_relation: DescribeRelation) -> Relation:
    """Return the tree with every type filled in that rules rely on.

    Args:
        tree: What the reader gave.
        describe_relation: Spark's column types of a relation; called for aggregates, their inputs, inputs of outer
            joins, unions, recursions.
    """
    known: Known = {}

    def fill(node: Relation) -> Relation:
        match node:
            case Aggregate() if node.calls:
                return _aggregate(node, describe_relation)
            case OuterJoin():
                types = (*_types(node.left, describe_relation, known), *_types(node.right, describe_relation, known))
                return replace(node, types=types)
            case Union():
                return _union(node, describe_relation)
            case Recursive():
                return _recursive(node, describe_relation)
        return node

    return transform(tree, fill)


Types = tuple[tuple[str, str], ...]
Known = dict[int, tuple[Relation, Types]]
"""Types of relations by id, with the relation, which keeps its id its own."""


def _types(relation: Relation, describe_relation: DescribeRelation, known: Known) -> Types:
    """Return a relation's columns with their types.

    A join has those of its inputs: Spark, asked again, would read one more table for each join of a chain.
    """
    found = known.get(id(relation))
    if found is None:
        match relation:
            case OuterJoin() if relation.types:
                types = relation.types
            case Join():
                types = tuple(pair for each in relation.inputs for pair in _types(each, describe_relation, known))
            case Filter() | Existence():
                types = _types(relation.inputs[0], describe_relation, known)
            case _:
                types = tuple((c.name, c.type) for c in describe_relation(relation))
        found = known[id(relation)] = (relation, types)
    return found[1]


def _aggregate(node: Aggregate, describe_relation: DescribeRelation) -> Aggregate:
    inputs = {c.name: c.type for c in describe_relation(node.input)}
    outputs = {c.name: c.type for c in describe_relation(node)}
    calls = []
    for call in node.calls:
        argument = None if call.argument is None else as_column(call.argument)
        calls.append(replace(call, argument_type=inputs.get(argument) if argument else None, type=outputs[call.name]))
    return replace(node, calls=tuple(calls))


def _union(node: Union, describe_relation: DescribeRelation) -> Union:
    wanted = [c.type for c in describe_relation(node)]
    return Union(tuple(_cast(branch, wanted, describe_relation) for branch in node.branches))


def _recursive(node: Recursive, describe_relation: DescribeRelation) -> Recursive:
    types = [c.type for c in describe_relation(node)]
    again = _cast(node.again, types, describe_relation)
    return replace(node, again=again, settled=all(map(equal_means_same, types)))


def _cast(branch: Relation, wanted: list[str], describe_relation: DescribeRelation) -> Relation:
    columns = describe_relation(branch)
    if [c.type for c in columns] == wanted:
        return branch
    items = []
    for own, target in zip(columns, wanted, strict=True):
        value = column(own.name)
        items.append((own.name, value if own.type == target else cast(value, target)))
    return Project(branch, tuple(items))
