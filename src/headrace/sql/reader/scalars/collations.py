"""Equalities under a collation that one of their sides names.

In `a COLLATE X = b` the name decides how both sides are compared. Where rules make columns of the sides, the name must
come along: a column of collation X and one without compare in no certain way, and Spark refuses to.
"""

from __future__ import annotations

from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, bracketed
from headrace.sql.reader.scalars.matching import binding

_COLLATE = "COLLATE"

INSIDE = "COLLATE is inside an expression that is compared, so its effect is not certain."
"""The reason why an equality is refused."""


def under_one_collation(a: Lexemes, b: Lexemes) -> tuple[Lexemes, Lexemes] | None:
    """Return both sides of an equality, each with the collation that one of them names.

    None where that cannot be told.
    """
    names = {name.upper() for side in (a, b) if (name := _named(side)) is not None}
    if "" in names or len(names) > 1:
        return None
    if not names:
        return a, b
    name = names.pop()
    return _with(a, name), _with(b, name)


def _named(lexemes: Lexemes) -> str | None:
    """Return the collation that stands behind an expression.

    Empty when one stands inside it, None when there is none.
    """
    found = sum(_is_collate(lexeme) for lexeme in lexemes)
    if not found:
        return None
    last = len(lexemes) > 2 and _is_collate(lexemes[-2])
    return lexemes[-1].text if last and found == 1 and binding(lexemes) == binding(lexemes[-2:-1]) else ""


def _is_collate(lexeme: Lexeme) -> bool:
    return lexeme.role is Role.OPERATOR and lexeme.text.upper() == _COLLATE


def _with(lexemes: Lexemes, name: str) -> Lexemes:
    if _named(lexemes) is not None:
        return lexemes
    at = lexemes[0].at
    return (
        *bracketed(lexemes, lexemes[0]),
        Lexeme(Role.OPERATOR, _COLLATE, at, True),
        Lexeme(Role.LITERAL, name, at, True),
    )
