"""The types of a query's columns, as far as they are known without asking for each.

Where two columns are of one type, equality is transitive: `a = b AND b = c` says `a = c`. It is not where Spark casts
one of them: '01' = 1 and 1 = '1', but '01' <> '1'. Rules go by column names, so a name that means columns of different
types in different parts of a query counts as unknown, and so does a computed column.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.relations import (
    Aggregate,
    Filter,
    Generate,
    Project,
    Recursive,
    Relation,
    Scan,
    TopK,
    Union,
    Values,
    Window,
)
from headrace.algebra.scalar import as_column
from headrace.algebra.tree import walk
from headrace.sql.reader.argument_types import DescribeRelation

Types = dict[str, str | None]


def column_types(tree: Relation, describe_relation: DescribeRelation, *, computed: bool = False) -> Mapping[str, str]:
    """Return Spark types by column name.

    Args:
        tree: The query, with types filled in.
        describe_relation: Spark's column types of a relation; called for sources.
        computed: Call it for whatever computes columns too.
    """
    found: Types = {}
    _collect(tree, describe_relation, found, computed=computed)
    return {name: type_ for name, type_ in found.items() if type_ is not None}


def asks_for_types(tree: Relation, types: Mapping[str, str]) -> bool:
    """Return whether changes are added up below an operator by columns of unknown types.

    Args:
        tree: The query.
        types: The types that are known.
    """
    root = tree
    while isinstance(root, Project | Filter):
        root = root.input
    below = (node for each in root.inputs for node in walk(each))
    return any(isinstance(node, _ADDED_UP) and not types.keys() >= set(node.columns) for node in below)


_ADDED_UP = Aggregate | Recursive | TopK | Window
"""Operators whose change is what they give after it, minus what they gave before."""


def _collect(node: Relation, describe_relation: DescribeRelation, found: Types, *, computed: bool) -> Types:
    inputs = [_collect(each, describe_relation, found, computed=computed) for each in node.inputs]
    own = _own(node, inputs, describe_relation)
    if computed and isinstance(node, _COMPUTING) and None in own.values():
        own = {c.name: c.type for c in describe_relation(node)}
    for name, type_ in own.items():
        found[name] = type_ if found.get(name, type_) == type_ else None
    return own


_COMPUTING = Aggregate | Generate | Project | Union | Values | Window


def _own(node: Relation, inputs: list[Types], describe_relation: DescribeRelation) -> Types:
    match node:
        case Scan():
            return {c.name: c.type for c in describe_relation(node)}
        case Project():
            return {name: inputs[0].get(as_column(scalar) or "") for name, scalar in node.items}
        case Aggregate():
            return {key: inputs[0].get(key) for key in node.keys} | {call.name: call.type for call in node.calls}
        case Union():
            return _agreed(node, inputs)
    below: Types = {}
    for each in inputs:
        below |= each
    return {name: below.get(name) for name in node.columns}


def _agreed(union: Union, inputs: list[Types]) -> Types:
    found: Types = {}
    for at, name in enumerate(union.columns):
        types = {own.get(branch.columns[at]) for own, branch in zip(inputs, union.branches, strict=True)}
        found[name] = types.pop() if len(types) == 1 else None
    return found
