"""Marks integer keys of semi-joins, which Spark looks up faster than other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.algebra.relations import Relation, SemiJoin
from headrace.algebra.tree import transform
from headrace.algebra.types import is_integer
from headrace.names import RESERVED_PREFIX


def mark_integer_keys(relation: Relation, types: Mapping[str, str] | None = None) -> Relation:
    """Return the tree with the integer keys of its semi-joins marked.

    Args:
        relation: The tree.
        types: Types of columns by name, as far as known.
    """
    known = types or {}

    def of_right(name: str) -> str | None:
        # keys that rules name are those of a change, of the types of what they are looked up in
        return known.get(name, "int" if name.startswith(RESERVED_PREFIX) else None)

    def told(node: Relation) -> Relation:
        if not isinstance(node, SemiJoin):
            return node
        numbers = node.numbers | {a for a, b in node.on if is_integer(known.get(a)) and is_integer(of_right(b))}
        return node if numbers == node.numbers else replace(node, numbers=numbers)

    return transform(relation, told)
