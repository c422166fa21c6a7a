"""A scalar as a row of lexemes: the user's own text, cut where names stand.

A scalar is never parsed and printed again, because no printer keeps every meaning (`div`, typed numbers, casts, string
escapes). Only names are replaced; what stands between them is what the user wrote, without comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from headrace.algebra.scalar import Scalar
from headrace.algebra.words import Kind, Word, operator
from headrace.names import quote
from headrace.sql.reader.syntax.query_shape import Range
from headrace.sql.reader.syntax.tokens import Token, counts

SCALAR, IN, EXISTS = "subquery in an expression", "IN (subquery)", "EXISTS"
"""The kinds of subqueries, as refusals name them; the only part of a SUBQUERY."""


class Role(Enum):
    """The syntactic role of a lexeme."""

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
    END = auto()
    """The END of a CASE, which ends an operand."""
    OPERATOR = auto()
    """Operators, brackets, keywords between operands."""
    STAR = auto()
    """`*` as an argument."""
    SUBQUERY = auto()
    """A query in brackets; EXISTS is part of it."""
    ALIAS = auto()
    """The alias of a select item."""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A part of a scalar.

    Args:
        role: What it is.
        text: Its SQL.
        at: Offset in the text it comes from.
        spaced: Whether white space stood before it.
        parts: The parts of a NAME, unquoted; the column of an INPUT; the lower-case name of a CALL; a SUBQUERY's kind.
        written: The parts of a NAME as written.
        tokens: The query of a SUBQUERY.
    """

    role: Role
    text: str
    at: int
    spaced: bool
    parts: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    tokens: Range = (0, 0)

    @property
    def ends_operand(self) -> bool:
        """Return whether an operand ends with it."""
        return self.role in (Role.NAME, Role.INPUT, Role.LITERAL, Role.END, Role.SUBQUERY) or self.text in (")", "]")

    @property
    def key(self) -> tuple[str, ...]:
        """Return a key that is equal for lexemes that mean the same."""
        if self.role in (Role.INPUT, Role.CALL, Role.WINDOW):
            return (self.role.name, *self.parts)
        if self.role is Role.OPERATOR:
            return ("", self.text.upper())
        return ("", self.text)


Lexemes = tuple[Lexeme, ...]


def render(lexemes: Sequence[Lexeme]) -> str:
    """Return the SQL of the lexemes, on one line unless a string holds a line break."""
    return "".join((" " if lexeme.spaced and i else "") + lexeme.text for i, lexeme in enumerate(lexemes))


def scalar(lexemes: Sequence[Lexeme]) -> Scalar:
    """Return the lexemes as a scalar; all names must be resolved."""
    return Scalar(tuple(map(_word, lexemes)))


def _word(lexeme: Lexeme) -> Word:
    if lexeme.role is Role.INPUT:
        return Word(Kind.COLUMN, lexeme.text, lexeme.spaced, lexeme.parts[0])
    if lexeme.role in (Role.CALL, Role.WINDOW, Role.GENERATOR):
        return Word(Kind.FUNCTION, lexeme.text, lexeme.spaced, lexeme.parts[0])
    if lexeme.role in (Role.OPERATOR, Role.END):
        return operator(lexeme.text, spaced=lexeme.spaced)
    return Word(Kind.LITERAL, lexeme.text, lexeme.spaced)


def unquoted(name: str) -> str:
    """Return an identifier without its quotes."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def input_lexeme(column: str, like: Lexeme) -> Lexeme:
    """Return a column of the input in the place of another lexeme."""
    return Lexeme(Role.INPUT, quote(column), like.at, like.spaced, (column,))


def keys(lexemes: Iterable[Lexeme]) -> tuple[tuple[str, ...], ...]:
    """Return comparison keys.

    They are equal when scalars are spelled the same, apart from case, blanks and how columns are named.
    """
    return tuple(lexeme.key for lexeme in lexemes)


def bracketed(lexemes: Lexemes, like: Lexeme) -> Lexemes:
    """Return the lexemes as one operand, in the place of another lexeme."""
    call = lexemes[0].role is Role.CALL and closing_bracket(lexemes, 1) == len(lexemes) - 1
    if len(lexemes) == 1 or call:
        return (replace(lexemes[0], spaced=like.spaced, at=like.at), *lexemes[1:])
    opening = Lexeme(Role.OPERATOR, "(", like.at, like.spaced)
    closing = Lexeme(Role.OPERATOR, ")", like.at, False)
    return (opening, replace(lexemes[0], spaced=False), *lexemes[1:], closing)


def in_brackets(lexemes: Lexemes) -> Lexemes:
    """Return the lexemes between brackets, whatever they are."""
    at = lexemes[0].at
    return (Lexeme(Role.OPERATOR, "(", at, True), *lexemes, Lexeme(Role.OPERATOR, ")", at, False))


def unbracketed(lexemes: Lexemes) -> Lexemes:
    """Return the lexemes without brackets around the whole; `(a, b)` is a row and keeps them."""
    while (inside := _inside(lexemes)) is not None and len(split_arguments(inside)) == 1:
        lexemes = inside
    return lexemes


def split_alias(lexemes: Lexemes) -> tuple[Lexemes, Lexemes]:
    """Cut the alias off a select item: what is before AS, and the lexemes of the alias.

    Those are several for `AS (a, b)`, and none where there is no alias.
    """
    first = len(lexemes)
    while first and lexemes[first - 1].role is Role.ALIAS:
        first -= 1
    before = lexemes[first - 1] if 0 < first < len(lexemes) else None
    explicit = before is not None and before.role is Role.OPERATOR and before.text.upper() == "AS"
    return lexemes[: first - explicit], lexemes[first:]


def cells(lexemes: Lexemes) -> tuple[Lexemes, ...]:
    """Return the columns of a row of VALUES, written with or without brackets."""
    inside = _inside(lexemes)
    return (lexemes,) if inside is None else split_arguments(inside)


def _inside(lexemes: Lexemes) -> Lexemes | None:
    opened = bool(lexemes) and lexemes[0].role is Role.OPERATOR and lexemes[0].text == "("
    return lexemes[1:-1] if opened and closing_bracket(lexemes, 0) == len(lexemes) - 1 else None


def closing_bracket(lexemes: Lexemes, opening: int) -> int:
    """Return index of the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(lexemes)):
        if lexemes[i].role is Role.OPERATOR:
            depth += (lexemes[i].text in ("(", "[")) - (lexemes[i].text in (")", "]"))
        if depth == 0:
            return i
    return len(lexemes) - 1


def split_arguments(lexemes: Lexemes) -> tuple[Lexemes, ...]:
    """Return the comma-separated arguments of a call, given what stands inside its brackets."""
    arguments: list[Lexemes] = []
    start = i = 0
    while i < len(lexemes):
        if lexemes[i].text in ("(", "[") and lexemes[i].role is Role.OPERATOR:
            i = closing_bracket(lexemes, i)
        elif lexemes[i].text == "," and lexemes[i].role is Role.OPERATOR:
            arguments.append(lexemes[start:i])
            start = i + 1
        i += 1
    return (*arguments, lexemes[start:]) if lexemes else ()


def lexeme_of(role: Role, token: Token, before: Token | None) -> Lexeme:
    """Return a token as a lexeme."""
    spaced = before is not None and before.end < token.start
    return Lexeme(role, token.text, token.start, spaced)


def is_integer(lexemes: Lexemes) -> bool:
    """Return whether it is a plain integer, which GROUP BY takes for an ordinal."""
    return len(lexemes) == 1 and lexemes[0].role is Role.LITERAL and counts(lexemes[0].text)
