"""Restricting a relation to some keys, also through windows with other partitions.

R ⋉ K is pushed to the scans by a rewrite wherever that changes nothing else. It cannot pass a window function, which
needs whole partitions: ω_P(R) ⋉ K = ω_P(R ⋉ π_P(R ⋉ K)) ⋉ K, the partitions that have a row with one of the keys.
"""

from __future__ import annotations

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    Window,
)
from headrace.algebra.scalar import as_column

Pairs = tuple[tuple[str, str], ...]


def restricted(relation: Relation, keys: Relation, on: Pairs) -> Relation:
    """Return the rows of a relation that have one of some keys.

    Args:
        relation: The rows.
        keys: The keys.
        on: Pairs (column of the relation, column of the keys).
    """
    return SemiJoin(_narrowed(relation, keys, on), keys, on)


def _narrowed(relation: Relation, keys: Relation, on: Pairs) -> Relation:
    """Return the relation, without partitions of its windows that hold no such row.

    Other rows may stay.
    """
    match relation:
        case Filter():
            return Filter(_narrowed(relation.input, keys, on), relation.condition)
        case Generate() if {a for a, _ in on} <= set(relation.input.columns):
            return relation.with_inputs(_narrowed(relation.input, keys, on))
        case Project():
            values = {name: as_column(scalar) for name, scalar in relation.items}
            own = tuple((name, b) for a, b in on if (name := values[a]) is not None)
            return Project(_narrowed(relation.input, keys, own), relation.items) if len(own) == len(on) else relation
        case Join() | OuterJoin(full=False) | Existence() if {a for a, _ in on} <= set(relation.left.columns):
            return relation.with_inputs(_narrowed(relation.left, keys, on), relation.right)
        case Join() if {a for a, _ in on} <= set(relation.right.columns):
            return relation.with_inputs(relation.left, _narrowed(relation.right, keys, on))
        case Window():
            return _partitions(relation, keys, on)
    return relation


def _partitions(window: Window, keys: Relation, on: Pairs) -> Relation:
    columns = {a for a, _ in on}
    if columns <= set(window.partition):
        return Window(_narrowed(window.input, keys, on), window.partition, window.calls)
    if not window.partition or not columns <= set(window.input.columns):
        return window
    partitions = Aggregate(restricted(window.input, keys, on), window.partition)
    same = tuple((name, name) for name in window.partition)
    return Window(restricted(window.input, partitions, same), window.partition, window.calls)
