"""How large a query may be so that every later look at it takes a bounded time."""

from __future__ import annotations

from headrace.algebra.relations import Relation

OPERATORS = 2_000
"""The most operators of a query that is maintained; a common table expression counts as often as it is read."""

LEVELS = 200
"""The most operators one above the other: later steps walk down them one call inside the other."""

CONSTRUCT = "size of the query"


def too_large(relation: Relation) -> str | None:
    """Return why a query is too large to be maintained; None when it is not.

    Args:
        relation: The query; parts that it has several times may be one object.
    """
    size, depth = _measured(relation)
    if size > OPERATORS:
        return f"The query has more than {OPERATORS} operators, counting what it reads several times as often."
    return f"The query has more than {LEVELS} operators one above the other." if depth > LEVELS else None


def _measured(relation: Relation) -> tuple[int, int]:
    """Count all operators, and the depth of the tree; each object is visited once."""
    known: dict[int, tuple[int, int]] = {}
    waiting = [relation]
    while waiting:
        node = waiting[-1]
        unknown = [each for each in node.inputs if id(each) not in known]
        if unknown and id(node) not in known:
            waiting += unknown
            continue
        waiting.pop()
        below = [known[id(each)] for each in node.inputs]
        known[id(node)] = (1 + sum(size for size, _ in below), 1 + max((depth for _, depth in below), default=0))
    return known[id(relation)]
