"""Conditions that read the time of the refresh, told apart from others.

Each is one of the conditions that all have to be true, and the time in it a name like that of a column.
"""

from __future__ import annotations

from headrace.names import NOW
from headrace.sql.clock import CLOCK_SQL
from headrace.sql.reader.scalars.booleans import conjuncts, has_subquery
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, bracketed, in_brackets, input_lexeme


def by_time(lexemes: Lexemes) -> tuple[tuple[Lexemes, ...], Lexemes]:
    """Return the conditions that read the time, and what is left of a condition without them.

    Args:
        lexemes: The condition, its names not resolved.
    """
    if not any(map(_is_time, lexemes)):
        return (), lexemes
    timed: list[Lexemes] = []
    left: list[Lexeme] = []
    for part in conjuncts(lexemes):
        now = tuple(input_lexeme(NOW, each) if _is_time(each) else each for each in part)
        if now != part and not has_subquery(now):
            timed += _bounds(now)
        else:
            left += [*([Lexeme(Role.OPERATOR, "AND", part[0].at, True)] if left else ()), *in_brackets(part)]
    return tuple(timed), tuple(left)


def _is_time(lexeme: Lexeme) -> bool:
    return lexeme.role is Role.SUBQUERY and lexeme.text == CLOCK_SQL


def _bounds(part: Lexemes) -> tuple[Lexemes, ...]:
    """Return `x BETWEEN a AND b` as two conditions, and any other as it is."""
    operators = [i for i, each in enumerate(part) if each.role is Role.OPERATOR]
    words = [part[i].text.upper() for i in operators]
    if words.count("BETWEEN") != 1 or words.count("AND") != 1 or {"NOT", "OR", "CASE"} & set(words):
        return (part,)
    between, and_ = operators[words.index("BETWEEN")], operators[words.index("AND")]
    value, low, high = part[:between], part[between + 1 : and_], part[and_ + 1 :]
    if not all((value, low, high)) or any(map(_unbalanced, (value, low, high))):
        return (part,)
    return tuple(
        (*bracketed(value, value[0]), Lexeme(Role.OPERATOR, sign, part[between].at, True), *bracketed(bound, bound[0]))
        for sign, bound in ((">=", low), ("<=", high))
    )


def _unbalanced(lexemes: Lexemes) -> bool:
    texts = [each.text for each in lexemes if each.role is Role.OPERATOR]
    return texts.count("(") != texts.count(")")
