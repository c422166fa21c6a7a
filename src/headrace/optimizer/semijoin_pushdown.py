"""Push key semi-joins towards the scans.

σ_{k∈K} commutes with everything a selection on k commutes with: projections that keep the key, filters, unions, the
side of a join that has the key, a GROUP BY or PARTITION BY of which the key is a part. The fewer rows reach a join, the
less it shuffles. An anti-join moves likewise. Of an outer join that keeps L, a key of L restricts L.

(L ⋈ R) ⋉ K = ((L ⋉ K) ⋈ (R ⋉ K)) ⋉ K, each side by the part of the key that it has; and where the join's condition
says that a column of R equals a part of the key in L, of the same type, R is restricted by that part as well. So is the
other side of an outer join that keeps L, and where partners are looked for. A GROUP BY that has a part of the key only
is restricted by that part: γ(R) ⋉ K = γ(R ⋉ K) ⋉ K. So is a PARTITION BY, where the other part is computed by windows.
Keys that are costly to read are read once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.algebra.properties.equalities import equal_alike
from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    Moment,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    Scan,
    SemiJoin,
    Stored,
    Union,
    Window,
)
from headrace.algebra.scalar import as_column
from headrace.algebra.tree import transform

Types = Mapping[str, str]
Pairs = tuple[tuple[str, str], ...]


def push_semi_joins(relation: Relation, types: Types | None = None) -> Relation:
    """Push semi-joins on a key down to where the key comes from.

    Args:
        relation: The tree.
        types: Types of columns by name, as far as known.
    """
    known = types or {}
    return transform(relation, lambda node: _sink(node, known) if isinstance(node, SemiJoin) and node.on else node)


def _sink(semi: SemiJoin, types: Types) -> Relation:
    below, keys = semi.left, {a for a, _ in semi.on}
    match below:
        case Project():
            sources = {name: as_column(scalar) for name, scalar in below.items}
            moved = tuple((sources[a], b) for a, b in semi.on)
            on = tuple((a, b) for a, b in moved if a is not None)
            if len(on) == len(semi.on):
                return Project(_onto(below.input, semi, on, types), below.items)
            some = _partitioned(semi, below.input, on)
            return replace(semi, left=Project(_onto(below.input, semi, some, types), below.items)) if some else semi
        case Filter():
            return Filter(_onto(below.input, semi, semi.on, types), below.condition)
        case Replicate():
            return Replicate(_onto(below.input, semi, semi.on, types), below.copies)
        case Generate() if keys <= set(below.input.columns):
            return below.with_inputs(_onto(below.input, semi, semi.on, types))
        case Aggregate() if keys <= set(below.keys):
            return Aggregate(_onto(below.input, semi, semi.on, types), below.keys, below.calls)
        case Aggregate() if _cheap(semi.right) and not semi.anti:
            some = tuple(pair for pair in semi.on if pair[0] in below.keys)
            return replace(semi, left=below.with_inputs(_onto(below.input, semi, some, types))) if some else semi
        case Window() if keys <= set(below.partition):
            return Window(_onto(below.input, semi, semi.on, types), below.partition, below.calls)
        case Window() if some := _partitioned(semi, below, semi.on):
            return replace(semi, left=_onto(below, semi, some, types))
        case Union():
            branches = ((branch, _renamed(semi, below, branch)) for branch in below.branches)
            return Union(tuple(_onto(branch, semi, on, types) for branch, on in branches))
        case Join() | OuterJoin(full=False) | Existence():
            return _into_sides(semi, below, types)
    return semi


def _partitioned(semi: SemiJoin, relation: Relation, on: Pairs) -> Pairs:
    """Return the keys that restrict windows: those that are columns of PARTITION BY."""
    if semi.anti or not isinstance(relation, Window) or not _cheap(semi.right):
        return ()
    return tuple(pair for pair in on if pair[0] in relation.partition)


def _into_sides(semi: SemiJoin, join: Join | OuterJoin | Existence, types: Types) -> Relation:
    """Return each side of a join, restricted as far as the key says something about it."""
    left = tuple(pair for pair in semi.on if pair[0] in join.left.columns)
    right = tuple(pair for pair in semi.on if pair[0] in join.right.columns) if isinstance(join, Join) else ()
    whole = len(semi.on) in (len(left), len(right))
    if semi.anti or not _cheap(semi.right):
        if not whole:
            return semi
        left, right = (left, ()) if len(left) == len(semi.on) else ((), right)
    else:
        same = _same(join, types)
        across = tuple((r, b) for a, b in left for m, r in same if m == a and (r, b) not in right)
        back = tuple((m, b) for a, b in right for m, r in same if r == a and (m, b) not in left)
        left, right = left + (() if _cheap(join.left) else back), right + (() if _cheap(join.right) else across)
    inputs = (_onto(side, semi, on, types) if on else side for side, on in ((join.left, left), (join.right, right)))
    restricted = join.with_inputs(*inputs)
    return restricted if whole else SemiJoin(restricted, semi.right, semi.on, semi.anti)


def _same(join: Join | OuterJoin | Existence, types: Types) -> Pairs:
    """Return columns of both sides, of one type, that the condition says are equal."""
    return tuple((a, b) for a, b, _ in equal_alike(join.condition, join.left.columns, join.right.columns, types))


def _cheap(keys: Relation) -> bool:
    """Return whether keys are cheap to read several times: stored, or a source's change."""
    match keys:
        case Stored():
            return True
        case Scan():
            return keys.moment is Moment.CHANGE
        case Project() | Filter() | Aggregate():
            return _cheap(keys.input)
    return False


def _onto(relation: Relation, semi: SemiJoin, on: Pairs, types: Types) -> Relation:
    return _sink(SemiJoin(relation, semi.right, on, semi.anti), types)


def _renamed(semi: SemiJoin, union: Union, branch: Relation) -> Pairs:
    names = dict(zip(union.columns, branch.columns, strict=True))
    return tuple((names[a], b) for a, b in semi.on)
