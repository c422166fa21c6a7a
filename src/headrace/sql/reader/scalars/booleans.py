"""A condition as ANDs, ORs and NOTs over the parts that hold subqueries.

NOT is moved down to the parts, which three-valued logic allows: NOT (a AND b) is NOT a OR NOT b. So every part stands
where NULL and false mean the same for the rows that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, unbracketed


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a condition that holds no AND, OR or NOT around a subquery.

    Args:
        lexemes: Its text.
        negated: Whether its opposite is meant.
    """

    lexemes: Lexemes
    negated: bool = False

    def written(self) -> Lexemes:
        """Return its text, the negation included."""
        if not self.negated:
            return self.lexemes
        at = self.lexemes[0].at
        opening = Lexeme(Role.OPERATOR, "(", at, True)
        inside = (replace(self.lexemes[0], spaced=False), *self.lexemes[1:])
        return (Lexeme(Role.OPERATOR, "NOT", at, True), opening, *inside, Lexeme(Role.OPERATOR, ")", at, False))


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


def condition(lexemes: Lexemes, *, negated: bool = False) -> Condition:
    """Return the structure of a condition around its subqueries."""
    lexemes = unbracketed(lexemes)
    if not has_subquery(lexemes):
        return Part(lexemes, negated)
    for word, opposite in (("OR", "AND"), ("AND", "OR")):
        parts = split(lexemes, word)
        if len(parts) > 1:
            return Combined(opposite if negated else word, tuple(condition(each, negated=negated) for each in parts))
    if lexemes[0].role is Role.OPERATOR and lexemes[0].text.upper() in ("NOT", "!"):
        return condition(lexemes[1:], negated=not negated)
    return Part(lexemes, negated)


def conjuncts(lexemes: Lexemes) -> tuple[Lexemes, ...]:
    """Split a condition at its outermost ANDs."""
    lexemes = unbracketed(lexemes)
    if len(split(lexemes, "OR")) > 1:
        return (lexemes,)
    parts = split(lexemes, "AND")
    return (lexemes,) if len(parts) == 1 else tuple(each for part in parts for each in conjuncts(part))


def has_subquery(lexemes: Lexemes) -> bool:
    """Return whether a subquery stands somewhere in the lexemes."""
    return any(lexeme.role is Role.SUBQUERY for lexeme in lexemes)


def split(lexemes: Lexemes, word: str) -> tuple[Lexemes, ...]:
    """Cut at a word outside of brackets and CASE; the AND of BETWEEN is no cut."""
    parts: list[Lexemes] = []
    start = depth = betweens = 0
    for i, lexeme in enumerate(lexemes):
        text = lexeme.text.upper()
        if lexeme.role is Role.OPERATOR and text in ("(", "[", "CASE"):
            depth += 1
        elif depth and ((lexeme.role is Role.OPERATOR and text in (")", "]")) or lexeme.role is Role.END):
            depth -= 1
        elif depth or lexeme.role is not Role.OPERATOR:
            continue
        elif text == "BETWEEN":
            betweens += 1
        elif text == "AND" and betweens:
            betweens -= 1
        elif text == word:
            parts.append(lexemes[start:i])
            start = i + 1
    return (*parts, lexemes[start:])
