"""Filling in types: of aggregate calls, of outer joins, and of the branches of a union.

Types come from Spark itself, through a callback. Branches of UNION are cast to the type that Spark gives the union,
because a refresh may evaluate a branch alone, where Spark would not widen it; so is the step of a recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

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
    """Return a union with its branches cast to the type of each step in turn, as in Spark.

    `a UNION ALL b UNION ALL c` unites a with b first: a text beside a DATE is one also where the third is a TIMESTAMP.
    """
    own = [tuple(c.type for c in describe_relation(branch)) for branch in node.branches]
    wanted = tuple(c.type for c in describe_relation(node))
    casts = [[own[0]]]
    known: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
    united = own[0]
    for count, types in enumerate(own[1:], 2):
        casts.append([types])
        if count == len(own):
            united = wanted
        elif types != united:
            pair = united, types
            if pair not in known:
                known[pair] = tuple(c.type for c in describe_relation(Union(node.branches[:count])))
            united = known[pair]
        for each in casts:
            if each[-1] != united:
                each.append(united)
    return Union(tuple(_cast(branch, each) for branch, each in zip(node.branches, casts, strict=True)))


def _recursive(node: Recursive, describe_relation: DescribeRelation) -> Recursive:
    types = tuple(c.type for c in describe_relation(node))
    own = tuple(c.type for c in describe_relation(node.again))
    again = _cast(node.again, [own, types])
    return replace(node, again=again, settled=all(map(equal_means_same, types)))


def _cast(branch: Relation, steps: Sequence[tuple[str, ...]]) -> Relation:
    """Return a relation with its columns cast from each of these types to the next."""
    if len(set(steps)) == 1:
        return branch
    items = []
    for name, *types in zip(branch.columns, *steps, strict=True):
        value = column(name)
        for before, after in pairwise(types):
            value = value if before == after else cast(value, after)
        items.append((name, value))
    return Project(branch, tuple(items))
