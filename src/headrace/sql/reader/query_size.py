"""Limits the size of a query, so that every later look at it takes a bounded time."""

from __future__ import annotations

from typing import NamedTuple

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    TopK,
    Window,
)
from headrace.algebra.tree import inputs_first

OPERATORS = 2_000
"""The most operators of a query that is maintained; a common table expression counts as often as it is read."""

LEVELS = 200
"""The most operators one above the other: later steps walk down them one call inside the other."""

READ_AGAIN = 16_000
"""The most operators that rules read again to follow a change: what is below a join or a group is read for the rows
that are affected, before and after, and for each operator anew. So a chain of n outer joins counts about n² of them."""

CONSTRUCT = "size of the query"

SPLIT = "Split it: into stream tables that read one another."


def too_large(relation: Relation) -> str | None:
    """Return why a query is too large to be maintained; None when it is not.

    Args:
        relation: The query; parts that it has several times may be one object.
    """
    found = _measured(relation)
    if found.size > OPERATORS:
        return f"The query has more than {OPERATORS} operators, counting what it reads several times as often."
    if found.depth > LEVELS:
        return f"The query has more than {LEVELS} operators one above the other."
    if found.read_again > READ_AGAIN:
        return (
            f"A change could only be followed by more than {READ_AGAIN} operators, as joins and groups read each other."
        )
    return None


class _Measure(NamedTuple):
    """The size of a tree.

    Args:
        size: Its operators.
        depth: How many are one above the other.
        rows: Its operators but for those that look at each row by itself.
        read_again: How many of these rules read again.
    """

    size: int
    depth: int
    rows: int
    read_again: int


def _measured(relation: Relation) -> _Measure:
    """Count all operators, and the depth of the tree; each object is visited once."""
    known: dict[int, _Measure] = {}
    for node in inputs_first(relation):
        below = [known[id(each)] for each in node.inputs]
        rows = sum(each.rows for each in below)
        known[id(node)] = _Measure(
            1 + sum(each.size for each in below),
            1 + max((each.depth for each in below), default=0),
            rows + (not isinstance(node, Project | Filter)),
            sum(times * each.rows + each.read_again for times, each in zip(_times(node), below, strict=True)),
        )
    return known[id(relation)]


def _times(node: Relation) -> tuple[int, ...]:
    """Return about how often rules read what is below an operator, for each of its inputs."""
    match node:
        case OuterJoin():
            return (4, 4) if node.full else (2, 4)
        case Existence():
            return (2, 4)
        case Join() | Aggregate() | Window() | TopK() | Recursive():
            return (1,) * len(node.inputs)
    return (0,) * len(node.inputs)
