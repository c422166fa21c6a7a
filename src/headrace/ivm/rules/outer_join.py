"""Outer joins.

L ⟕ R = (L ⋈ R) ⊎ pad(L ▷ R), where ▷ keeps the rows without a partner and pad puts NULLs beside them; L ⟗ R has
pad(R ▷ L) besides. So Δ(L ⟕ R) = Δ(L ⋈ R) + pad(Δ(L ▷ R)): the padded part is looked at only for rows whose
partners changed. A change of L alone needs no parts: Δ(L ⟕ R) = ΔL ⟕ R. Where a row of L has one partner at most, the
pairs that come and go say which rows are padded.
Source: Griffin, Kumar, Algebraic Change Propagation for Semijoin and Outerjoin Queries, SIGMOD Record 1998.
"""

from __future__ import annotations

from headrace.algebra.relations import Empty, Existence, Join, OuterJoin, Project, Relation
from headrace.algebra.scalar import NULL, Scalar, cast, column
from headrace.ivm.change import Change, arrange, empty, union_all
from headrace.ivm.rules.existence import with_partners
from headrace.names import WEIGHT


def delta(join: OuterJoin, change: Change) -> Relation:
    """Return pairs that come and go, and rows that lose the last partner or find the first."""
    if not join.full and not change.touches(join.right):
        return _preserved(join, change)
    terms = [
        change.of(Join(join.left, join.right, join.condition)),
        _padded(join, change.of(_without_partner(join))),
    ]
    if join.full:
        terms.append(_padded(join, change.of(Existence(join.right, join.left, join.condition, anti=True))))
    total = union_all(*(term if isinstance(term, Empty) else arrange(term, join.columns) for term in terms))
    return empty(join) if isinstance(total, Empty) else total


def _without_partner(join: OuterJoin) -> Existence:
    return Existence(join.left, join.right, join.condition, anti=True, unique=join.unique)


def _preserved(join: OuterJoin, change: Change) -> Relation:
    """Return each row of the side that stays comes and goes with its partners."""
    rows = change.of(join.left)
    if isinstance(rows, Empty):
        return empty(join)
    rows, right = with_partners(join.condition, rows, change.after(join.right), change)
    return arrange(join.with_inputs(rows, right), join.columns)


def _padded(join: OuterJoin, rows: Relation) -> Relation:
    """Return rows of one side beside NULLs."""
    if isinstance(rows, Empty):
        return rows
    there, types = set(rows.columns), dict(join.types)

    def value(name: str) -> Scalar:
        if name in there:
            return column(name)
        return cast(NULL, types[name])

    return Project(rows, tuple((name, value(name)) for name in (*join.columns, WEIGHT)))
