"""Equalities under a collation that one of their sides names.

In `a COLLATE X = b` the name decides how both sides are compared. Where rules make columns of the sides, the name must
come along: a column of collation X and one without compare in no certain way, and Spark refuses to.
"""

from __future__ import annotations

from headrace.sql.reader.scalars.matching import binding
from headrace.sql.reader.scalars.pieces import Piece, Pieces, Role, bracketed

_COLLATE = "COLLATE"

INSIDE = "COLLATE stands inside an expression that is compared, so that it is not certain how."
"""Why an equality is refused."""


def under_one_collation(a: Pieces, b: Pieces) -> tuple[Pieces, Pieces] | None:
    """Both sides of an equality, each with the collation that one of them names; None where that cannot be told."""
    names = {name.upper() for side in (a, b) if (name := _named(side)) is not None}
    if "" in names or len(names) > 1:
        return None
    if not names:
        return a, b
    name = names.pop()
    return _with(a, name), _with(b, name)


def _named(pieces: Pieces) -> str | None:
    """The collation that stands behind an expression; empty when one stands inside it, None when there is none."""
    found = sum(_is_collate(piece) for piece in pieces)
    if not found:
        return None
    last = len(pieces) > 2 and _is_collate(pieces[-2])
    return pieces[-1].text if last and found == 1 and binding(pieces) == binding(pieces[-2:-1]) else ""


def _is_collate(piece: Piece) -> bool:
    return piece.role is Role.OPERATOR and piece.text.upper() == _COLLATE


def _with(pieces: Pieces, name: str) -> Pieces:
    if _named(pieces) is not None:
        return pieces
    at = pieces[0].at
    return (
        *bracketed(pieces, pieces[0]),
        Piece(Role.OPERATOR, _COLLATE, at, True),
        Piece(Role.LITERAL, name, at, True),
    )
