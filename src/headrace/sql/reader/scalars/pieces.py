"""A scalar as a row of pieces: the user's own text, cut where names stand.

A scalar is never parsed and printed again, because no printer keeps every meaning (`div`, typed numbers, casts, string
escapes). Only names are replaced; what stands between them is what the user wrote, without comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from headrace.algebra.scalar import Scalar
from headrace.names import quote
from headrace.sql.reader.syntax.query_shape import Range
from headrace.sql.reader.syntax.tokens import Token, counts

SCALAR, IN, EXISTS = "subquery in an expression", "IN (subquery)", "EXISTS"
"""The kinds of subqueries, as refusals name them; the only part of a SUBQUERY."""


class Role(Enum):
    """What a piece is."""

    NAME = auto()
    """A name still to be resolved, with all its dotted parts."""
    INPUT = auto()
    """A column of the input relation."""
    CALL = auto()
    """The name of a function; an opening bracket follows."""
    WINDOW = auto()
    """The name of a function with an OVER clause; an opening bracket follows."""
    GENERATOR = auto()
    """The name of a function that gives several rows, as a whole select item; an opening bracket follows."""
    LITERAL = auto()
    """Anything else that ends an operand: constants, types, lambda variables, fields."""
    OPERATOR = auto()
    """Operators, brackets, keywords between operands."""
    STAR = auto()
    """`*` as an argument."""
    SUBQUERY = auto()
    """A query in brackets; EXISTS is part of it."""
    ALIAS = auto()
    """The alias of a select item."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a scalar.

    Args:
        role: What it is.
        text: Its SQL.
        at: Offset in the text it comes from.
        spaced: Whether white space stood before it.
        parts: The parts of a NAME, unquoted; the column of an INPUT; the lower-case name of a CALL; a SUBQUERY's kind.
        texts: The parts of a NAME as written.
        tokens: The query of a SUBQUERY.
    """

    role: Role
    text: str
    at: int
    spaced: bool
    parts: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    tokens: Range = (0, 0)

    @property
    def ends_operand(self) -> bool:
        """Return whether an operand ends with it."""
        return self.role in (Role.NAME, Role.INPUT, Role.LITERAL, Role.SUBQUERY) or self.text in (")", "]")

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for pieces that mean the same."""
        if self.role in (Role.INPUT, Role.CALL, Role.WINDOW):
            return (self.role.name, *self.parts)
        if self.role is Role.OPERATOR:
            return ("", self.text.upper())
        return ("", self.text)


Pieces = tuple[Piece, ...]


def render(pieces: Sequence[Piece]) -> str:
    """The SQL of the pieces, on one line unless a string holds a line break."""
    return "".join((" " if piece.spaced and i else "") + piece.text for i, piece in enumerate(pieces))


def scalar(pieces: Sequence[Piece]) -> Scalar:
    """The pieces as a scalar; all names must be resolved."""
    return Scalar(render(pieces), frozenset(p.parts[0] for p in pieces if p.role is Role.INPUT))


def unquoted(name: str) -> str:
    """An identifier without its quotes."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def input_piece(column: str, like: Piece) -> Piece:
    """A column of the input in the place of another piece."""
    return Piece(Role.INPUT, quote(column), like.at, like.spaced, (column,))


def keys(pieces: Iterable[Piece]) -> tuple[tuple[str, ...], ...]:
    """For comparing: equal when the scalars are spelled the same, apart from case, blanks and how columns are named."""
    return tuple(piece.key for piece in pieces)


def bracketed(pieces: Pieces, like: Piece) -> Pieces:
    """The pieces as one operand, in the place of another piece."""
    call = pieces[0].role is Role.CALL and closing_bracket(pieces, 1) == len(pieces) - 1
    if len(pieces) == 1 or call:
        return (replace(pieces[0], spaced=like.spaced, at=like.at), *pieces[1:])
    opening = Piece(Role.OPERATOR, "(", like.at, like.spaced)
    closing = Piece(Role.OPERATOR, ")", like.at, False)
    return (opening, replace(pieces[0], spaced=False), *pieces[1:], closing)


def unbracketed(pieces: Pieces) -> Pieces:
    """The pieces without brackets around the whole; `(a, b)` is a row and keeps them."""
    while (inside := _inside(pieces)) is not None and len(split_arguments(inside)) == 1:
        pieces = inside
    return pieces


def cells(pieces: Pieces) -> tuple[Pieces, ...]:
    """The columns of a row of VALUES, written with or without brackets."""
    inside = _inside(pieces)
    return (pieces,) if inside is None else split_arguments(inside)


def _inside(pieces: Pieces) -> Pieces | None:
    opened = bool(pieces) and pieces[0].role is Role.OPERATOR and pieces[0].text == "("
    return pieces[1:-1] if opened and closing_bracket(pieces, 0) == len(pieces) - 1 else None


def closing_bracket(pieces: Pieces, opening: int) -> int:
    """Index of the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(pieces)):
        if pieces[i].role is Role.OPERATOR:
            depth += (pieces[i].text in ("(", "[")) - (pieces[i].text in (")", "]"))
        if depth == 0:
            return i
    return len(pieces) - 1


def split_arguments(pieces: Pieces) -> tuple[Pieces, ...]:
    """The comma-separated arguments of a call, given what stands inside its brackets."""
    arguments: list[Pieces] = []
    start = i = 0
    while i < len(pieces):
        if pieces[i].text in ("(", "[") and pieces[i].role is Role.OPERATOR:
            i = closing_bracket(pieces, i)
        elif pieces[i].text == "," and pieces[i].role is Role.OPERATOR:
            arguments.append(pieces[start:i])
            start = i + 1
        i += 1
    return (*arguments, pieces[start:]) if pieces else ()


def piece_of(role: Role, token: Token, before: Token | None) -> Piece:
    """A token as a piece."""
    spaced = before is not None and before.end < token.start
    return Piece(role, token.text, token.start, spaced)


def is_integer(pieces: Pieces) -> bool:
    """Return whether it is a plain integer, which GROUP BY takes for an ordinal."""
    return len(pieces) == 1 and pieces[0].role is Role.LITERAL and counts(pieces[0].text)
