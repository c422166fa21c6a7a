"""Tells where Spark may take expressions of grouping sets, spelled otherwise, for one.

In rows of a set that leaves an expression out, Spark puts NULL in the place of whatever means the same, be it spelled
otherwise (`semanticEquals`, in `ResolveGroupingAnalytics` of its analyser). Here expressions are compared as they are
spelled, so what may be meant cannot be told where several of them read one column.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, unbracketed
from headrace.sql.reader.select.grouping_sets import GroupingSets
from headrace.sql.reader.syntax.tokens import words

_PLAIN = frozenset({"+", "-", "*", "/", "%", "<", ">", "<=", ">=", "=", "==", "(", ")"})
_SWAPPED = {">": "<", ">=": "<=", "==": "=", "(": "", ")": ""}
_PARTS = words("YEAR QUARTER MONTH WEEKOFYEAR DAYOFYEAR DAYOFMONTH DAYOFWEEK HOUR MINUTE SECOND")
"""Functions of one argument that are never the same, and are often grouped by together."""


def unclear(sets: GroupingSets) -> tuple[str, Lexeme] | None:
    """Return what is unclear about grouping sets, in SQL words, and where, if anything is.

    Args:
        sets: The sets.
    """
    for number, key in enumerate(sets.expressions):
        if not _columns(key) and any(number not in members for members in sets.sets):
            return "GROUPING SETS by a constant", key[0]
    computed = [key for key in sets.expressions if not _is_column(key)]
    for one, other in combinations(computed, 2):
        if _columns(one) & _columns(other) and not (_are_parts(one, other) or _are_apart(one, other)):
            return "GROUPING SETS by several expressions over one column", other[0]
    return None


def may_have_another(sets: GroupingSets, key: Lexemes, item: Lexemes) -> bool:
    """Return whether an expression over a key may have another key in it, spelled otherwise.

    Args:
        sets: The sets.
        key: One of their expressions.
        item: The expression, in which it stands.
    """
    computed = [other for other in sets.expressions if not _is_column(other)]
    return _is_column(key) and any(_columns(key) & _columns(other) and _may_have(item, other) for other in computed)


def _may_have(item: Lexemes, key: Lexemes) -> bool:
    """Return whether a part of an item may mean a key: it has all that the key is made of.

    That can be told of plain operators only, whose operands may change places.
    """
    if not (_is_plain(item) and _is_plain(key)):
        return True
    return _made_of(key) <= _made_of(item)


def _is_plain(lexemes: Lexemes) -> bool:
    return all(
        lexeme.role is Role.INPUT
        or (lexeme.role is Role.OPERATOR and lexeme.text in _PLAIN)
        or (lexeme.role is Role.LITERAL and lexeme.text.isdigit())
        for lexeme in lexemes
    )


def _folded(lexeme: Lexeme) -> object:
    if lexeme.role is Role.LITERAL:
        return int(lexeme.text)
    return lexeme.key if lexeme.role is Role.INPUT else _SWAPPED.get(lexeme.text, lexeme.text)


def _made_of(key: Lexemes) -> Counter[object]:
    """Count the parts of a plain expression, in whatever order; brackets are none."""
    return Counter(each for each in map(_folded, key) if each != "")


def _columns(key: Lexemes) -> frozenset[object]:
    return frozenset(lexeme.key for lexeme in key if lexeme.role is Role.INPUT)


def _is_column(key: Lexemes) -> bool:
    return len(unbracketed(key)) == 1


def _are_parts(one: Lexemes, other: Lexemes) -> bool:
    """Return whether both are different parts of a date."""
    names = [key[0].parts[-1].upper() if key[0].role is Role.CALL and len(key) == 4 else "" for key in (one, other)]
    return names[0] != names[1] and _PARTS.issuperset(names)


def _are_apart(one: Lexemes, other: Lexemes) -> bool:
    """Return whether both are plain, and neither has all parts of the other.

    Spark swaps operands and computes nothing, so that neither is the other then, nor a part of it spelled otherwise.
    """
    parts, others = (_made_of(key) if _is_plain(key) else Counter() for key in (one, other))
    return not (parts <= others or others <= parts)
