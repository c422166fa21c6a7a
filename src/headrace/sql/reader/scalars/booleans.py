"""A condition as ANDs, ORs and NOTs over the parts that hold subqueries.

NOT is moved down to the parts, which three-valued logic allows: NOT (a AND b) is NOT a OR NOT b. So every part stands
where NULL and false mean the same for the rows that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.sql.reader.scalars.pieces import Piece, Pieces, Role, unbracketed


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a condition that holds no AND, OR or NOT around a subquery.

    Args:
        pieces: Its text.
        negated: Whether its opposite is meant.
    """

    pieces: Pieces
    negated: bool = False

    def written(self) -> Pieces:
        """Its text, the negation included."""
        if not self.negated:
            return self.pieces
        at = self.pieces[0].at
        opening = Piece(Role.OPERATOR, "(", at, True)
        inside = (replace(self.pieces[0], spaced=False), *self.pieces[1:])
        return (Piece(Role.OPERATOR, "NOT", at, True), opening, *inside, Piece(Role.OPERATOR, ")", at, False))


@dataclass(frozen=True, slots=True)
class Combined:
    """Several conditions.

    Args:
        word: `AND` or `OR`.
        parts: The conditions.
    """

    word: str
    parts: tuple[Condition, ...]


Condition = Part | Combined


def condition(pieces: Pieces, *, negated: bool = False) -> Condition:
    """The structure of a condition around its subqueries."""
    pieces = unbracketed(pieces)
    if not has_subquery(pieces):
        return Part(pieces, negated)
    for word, opposite in (("OR", "AND"), ("AND", "OR")):
        parts = split(pieces, word)
        if len(parts) > 1:
            return Combined(opposite if negated else word, tuple(condition(each, negated=negated) for each in parts))
    if pieces[0].role is Role.OPERATOR and pieces[0].text.upper() in ("NOT", "!"):
        return condition(pieces[1:], negated=not negated)
    return Part(pieces, negated)


def conjuncts(pieces: Pieces) -> tuple[Pieces, ...]:
    """What must hold together, cut at the outermost ANDs."""
    pieces = unbracketed(pieces)
    if len(split(pieces, "OR")) > 1:
        return (pieces,)
    parts = split(pieces, "AND")
    return (pieces,) if len(parts) == 1 else tuple(each for part in parts for each in conjuncts(part))


def has_subquery(pieces: Pieces) -> bool:
    """Return whether a subquery stands somewhere in the pieces."""
    return any(piece.role is Role.SUBQUERY for piece in pieces)


def split(pieces: Pieces, word: str) -> tuple[Pieces, ...]:
    """Cut at a word outside of brackets and CASE; the AND of BETWEEN is no cut."""
    parts: list[Pieces] = []
    start = depth = betweens = 0
    for i, piece in enumerate(pieces):
        text = piece.text.upper()
        if piece.role is Role.OPERATOR and text in ("(", "[", "CASE"):
            depth += 1
        elif depth and ((piece.role is Role.OPERATOR and text in (")", "]")) or _ends_case(pieces, i)):
            depth -= 1
        elif depth or piece.role is not Role.OPERATOR:
            continue
        elif text == "BETWEEN":
            betweens += 1
        elif text == "AND" and betweens:
            betweens -= 1
        elif text == word:
            parts.append(pieces[start:i])
            start = i + 1
    return (*parts, pieces[start:])


def _ends_case(pieces: Pieces, at: int) -> bool:
    return pieces[at].role is Role.LITERAL and pieces[at].text.upper() == "END" and pieces[at - 1].text != "."
