"""The kinds of joins: what each is in the algebra, and which columns it leaves in sight."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from headrace.algebra.relations import Existence, Join, OuterJoin, Relation
from headrace.algebra.scalar import TRUE, Scalar
from headrace.sql.reader.names.scope import Scope, Visible


class JoinKind(Enum):
    """Treatment of rows without a partner in a kind of join."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"

    @property
    def one_sided(self) -> bool:
        """Return whether the right side's columns are gone afterwards."""
        return self in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def sides_of_on(self) -> tuple[bool, bool]:
        """Return for each side whether what ON says of it alone decides which of its rows take part.

        Rows of a side that all stay are not left out, they only have no partner.
        """
        left = self in (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)
        return left, self is not JoinKind.FULL and self is not JoinKind.RIGHT


_WRITTEN = {
    ",": JoinKind.INNER,
    "CROSS": JoinKind.INNER,
    "LEFT SEMI": JoinKind.SEMI,
    "LEFT ANTI": JoinKind.ANTI,
} | {kind.value: kind for kind in JoinKind}


def kind_of(words: str) -> JoinKind | None:
    """Return the kind of join that the words before JOIN mean.

    None for words that are not known.
    """
    return _WRITTEN.get(words)


def joined_as(kind: JoinKind, left: Relation, right: Relation, condition: Scalar | None) -> Relation:
    """Return two relations, joined."""
    match kind:
        case JoinKind.INNER:
            return Join(left, right, condition)
        case JoinKind.RIGHT:
            return OuterJoin(right, left, condition or TRUE)
        case JoinKind.LEFT | JoinKind.FULL:
            return OuterJoin(left, right, condition or TRUE, full=kind is JoinKind.FULL)
        case JoinKind.SEMI | JoinKind.ANTI:
            return Existence(left, right, condition or TRUE, anti=kind is JoinKind.ANTI)


def merged(kind: JoinKind, left: Scope, right: Scope, pairs: tuple[tuple[Visible, Visible], ...]) -> Scope:
    """Return the scope after USING: common columns of the preserved side, not of a full join."""
    if kind.one_sided:
        keys = tuple(a for a, _ in pairs)
        rest = tuple(c for c in left.columns if c not in keys)
        return replace(left, columns=(*keys, *rest), opaque=left.opaque or right.opaque)
    if kind is not JoinKind.RIGHT:
        return left.merged(right, pairs)
    keys = tuple(b for _, b in pairs)
    return _beside(left, right, pairs, keys, tuple(replace(a, hidden=True) for a, _ in pairs))


def with_common(
    left: Scope, right: Scope, pairs: tuple[tuple[Visible, Visible], ...], common: tuple[Visible, ...]
) -> Scope:
    """Return the scope after USING in a full join: new common columns, copies hidden."""
    return _beside(left, right, pairs, common, tuple(replace(c, hidden=True) for pair in pairs for c in pair))


def _beside(
    left: Scope,
    right: Scope,
    pairs: tuple[tuple[Visible, Visible], ...],
    keys: tuple[Visible, ...],
    hidden: tuple[Visible, ...],
) -> Scope:
    """Return the scope with common columns first, other shown ones, then hidden ones."""
    common = [c for pair in pairs for c in pair]
    both = (*left.columns, *right.columns)
    shown = [c for c in both if c not in common and not c.hidden]
    older = [c for c in both if c.hidden]
    return replace(left, columns=(*keys, *shown, *older, *hidden), opaque=left.opaque or right.opaque)
