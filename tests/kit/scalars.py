"""Scalars as the reader makes them, for tests of what is done to them."""

from __future__ import annotations

from headrace.algebra.scalar import Scalar
from headrace.sql.reader.scalars import lexemes
from headrace.sql.reader.scalars.cut_scalar import cut
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, input_lexeme
from headrace.sql.reader.syntax.cursor import Cursor


def scalar(text: str) -> Scalar:
    """A scalar, each of whose names is a column of the input, with fields behind a dot."""
    cursor = Cursor(text)
    found, refusals = cut(cursor, (0, len(cursor.tokens)))
    assert not refusals
    return lexemes.scalar(tuple(each for lexeme in found for each in _resolved(lexeme)))


def _resolved(name: Lexeme) -> Lexemes:
    if name.role is not Role.NAME:
        return (name,)
    fields = ((Role.OPERATOR, "."), (Role.LITERAL, ""))
    return (
        input_lexeme(name.parts[0], name),
        *(Lexeme(role, text or each, name.at, False) for each in name.written[1:] for role, text in fields),
    )
