"""Walking and rebuilding trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.algebra.relations import Moment, Relation, Scan
from headrace.algebra.scalar import Scalar, column
from headrace.names import WEIGHT, TableName


def walk(relation: Relation) -> Iterator[Relation]:
    """Yield every node, a node before its inputs."""
    waiting = [relation]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.inputs))


def transform(relation: Relation, rule: Callable[[Relation], Relation]) -> Relation:
    """Apply a rule to every node, inputs first."""
    return rule(over(relation, *(transform(node, rule) for node in relation.inputs)))


def over(relation: Relation, *inputs: Relation) -> Relation:
    """Return the same operator over other inputs; itself where these are its own."""
    for new, old in zip(inputs, relation.inputs, strict=True):
        if new is not old:  # identity, not equality: comparing trees at every level would make a walk quadratic
            return relation.with_inputs(*inputs)
    return relation


def sources(relation: Relation) -> tuple[TableName, ...]:
    """Return the tables a tree reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(node.source for node in walk(relation) if isinstance(node, Scan)))


def at(relation: Relation, moment: Moment, changed: frozenset[TableName]) -> Relation:
    """Return the same query over its sources at a moment.

    Args:
        relation: The query.
        moment: Before or after the change.
        changed: The sources that changed; the others are the same at any moment.
    """

    def move(node: Relation) -> Relation:
        if isinstance(node, Scan) and node.source in changed:
            return Scan(node.source, node.fields, moment)
        return node

    return transform(relation, move)


def identity(columns: tuple[str, ...]) -> tuple[tuple[str, Scalar], ...]:
    """Return projection items that keep columns as they are."""
    return tuple((name, column(name)) for name in columns)


def unweighted(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns without the weight."""
    return tuple(name for name in columns if name != WEIGHT)
