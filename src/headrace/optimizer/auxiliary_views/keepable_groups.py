"""Decides which inner aggregates can keep their groups in the companion, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.algebra.relations import Aggregate, Recursive, Relation
from headrace.algebra.tree import sources, walk
from headrace.ivm.query_root import Root, root_of

_SAFE = re.compile(r"(?:tinyint|smallint|int|bigint|boolean|date|timestamp|timestamp_ntz|string|decimal\(\d+,\s*\d+\))")


def recurses(tree: Relation) -> bool:
    """Return whether a query has a recursion, beside whose rows its companion keeps nothing."""
    return any(isinstance(node, Recursive) for node in walk(tree))


def keepable(node: Aggregate, types: Mapping[str, str]) -> Root | None:
    """Plan the accumulators of an inner aggregate; None where its groups cannot be kept.

    Args:
        node: The aggregate.
        types: Types of columns by name, as far as known.
    """
    root = root_of(node)
    assert root is not None
    own = {key: types.get(key, "") for key in node.keys} | {call.name: call.type or "" for call in node.calls}
    averages = {call.name for call in node.calls if call.function == "avg"}  # doubles, but of exact sums
    exact = all(name in averages or _SAFE.fullmatch(each.strip().lower()) for name, each in own.items())
    if not node.calls or not sources(node) or root.plan.recomputed or not exact:
        return None
    return root
