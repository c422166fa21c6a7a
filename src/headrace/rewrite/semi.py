"""Push key semi-joins towards the scans.

σ_{k∈K} commutes with everything a selection on k commutes with: projections that keep the key, filters, unions, the
side of a join that has the key, a GROUP BY or PARTITION BY of which the key is a part. The fewer rows reach a join, the
less it shuffles. An anti-join moves likewise. Of an outer join that keeps L, a key of L restricts L.
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
    Replicate,
    SemiJoin,
    Union,
    Window,
)
from headrace.algebra.scalar import as_column
from headrace.algebra.tree import transform


def push_semi_joins(relation: Relation) -> Relation:
    """Push semi-joins on a key down to where the key comes from."""
    return transform(relation, lambda node: _sink(node) if isinstance(node, SemiJoin) and node.on else node)


def _sink(semi: SemiJoin) -> Relation:
    below = semi.left
    match below:
        case Project():
            sources = {name: as_column(scalar) for name, scalar in below.items}
            moved = tuple((sources[a], b) for a, b in semi.on)
            on = tuple((a, b) for a, b in moved if a is not None)
            return Project(_onto(below.input, semi, on), below.items) if len(on) == len(semi.on) else semi
        case Filter():
            return Filter(_onto(below.input, semi, semi.on), below.condition)
        case Replicate():
            return Replicate(_onto(below.input, semi, semi.on), below.copies)
        case Generate() if {a for a, _ in semi.on} <= set(below.input.columns):
            return below.with_inputs(_onto(below.input, semi, semi.on))
        case Aggregate() if {a for a, _ in semi.on} <= set(below.keys):
            return Aggregate(_onto(below.input, semi, semi.on), below.keys, below.calls)
        case Window() if {a for a, _ in semi.on} <= set(below.partition):
            return Window(_onto(below.input, semi, semi.on), below.partition, below.calls)
        case Union():
            return Union(tuple(_onto(branch, semi, _renamed(semi, below, branch)) for branch in below.branches))
        case Join():
            return _into_join(semi, below)
        case OuterJoin(full=False) | Existence() if {a for a, _ in semi.on} <= set(below.left.columns):
            return below.with_inputs(_onto(below.left, semi, semi.on), below.right)
    return semi


def _into_join(semi: SemiJoin, join: Join) -> Relation:
    keys = {a for a, _ in semi.on}
    if keys <= set(join.left.columns):
        return join.with_inputs(_onto(join.left, semi, semi.on), join.right)
    if keys <= set(join.right.columns):
        return join.with_inputs(join.left, _onto(join.right, semi, semi.on))
    return semi


def _onto(relation: Relation, semi: SemiJoin, on: tuple[tuple[str, str], ...]) -> Relation:
    return _sink(SemiJoin(relation, semi.right, on, semi.anti))


def _renamed(semi: SemiJoin, union: Union, branch: Relation) -> tuple[tuple[str, str], ...]:
    names = dict(zip(union.columns, branch.columns, strict=True))
    return tuple((names[a], b) for a, b in semi.on)
