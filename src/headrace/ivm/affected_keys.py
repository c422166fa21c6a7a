"""Keys of the groups a change touches, without computing the change where they are known.

Δ(L ⟕ R) = Δ(L ⋈ R) + pad(Δ(L ▷ R)). A row of L that begins or ceases to be padded has itself changed, or has met a row
of ΔR, and is in Δ(L ⋈ R) then. So where groups are told by columns of L, those of ΔL and of Δ(L ⋈ R) are all that are
touched, and nobody needs to look which rows are padded.
"""

from __future__ import annotations

from headrace.algebra.relations import Aggregate, Empty, Join, OuterJoin, Project, Relation
from headrace.algebra.scalar import as_column, column
from headrace.algebra.tree import identity
from headrace.ivm.change import Change, union_all

Names = tuple[str, ...]


def touched(rows: Relation, keys: Names, change: Change) -> Relation:
    """Return the distinct keys of the changed rows.

    Some may be of rows that did not change.

    Args:
        rows: What is grouped.
        keys: Its columns that tell the groups.
        change: What happened.
    """
    found = _keys(rows, keys, change)
    return found if isinstance(found, Empty) else Aggregate(found, keys)


def _keys(rows: Relation, keys: Names, change: Change) -> Relation:
    match rows:
        case Project():
            values = dict(rows.items)
            below = tuple(name for key in keys if (name := as_column(values[key])) is not None)
            if len(set(below)) == len(keys):
                found = _keys(rows.input, below, change)
                names = tuple((key, column(name)) for key, name in zip(keys, below, strict=True))
                return Empty(keys) if isinstance(found, Empty) else Project(found, names)
        case OuterJoin(full=False) if set(keys) <= set(rows.left.columns) and change.touches(rows.right):
            met = change.of(Join(rows.left, rows.right, rows.condition))
            return union_all(*(_only(keys, each) for each in (met, change.of(rows.left))))
    return _only(keys, change.of(rows))


def _only(keys: Names, rows: Relation) -> Relation:
    return Empty(keys) if isinstance(rows, Empty) else Project(rows, identity(keys))
