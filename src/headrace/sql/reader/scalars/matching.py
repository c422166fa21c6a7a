"""Finding a grouping expression inside another expression.

`GROUP BY a % 10` makes `a % 10` a column of the result, wherever it stands: in `a % 10 + 1`, not in `2 * a % 10`. The
lexemes are compared as spelled, and the operators around a match must bind less tightly than those inside it, so that
putting a column in its place cannot change what binds to what.
"""

from __future__ import annotations

from headrace.sql.reader.scalars.lexemes import Lexemes, Role, keys
from headrace.sql.reader.syntax.tokens import words

_TIGHTEST = 100
_UNARY = 90
_SHIFT = 57
COMPARISON = 45
"""Precedences: of an expression without operators, of signs, of `<<`, and of comparisons."""
_BINDING: dict[str, int] = {
    **dict.fromkeys(["OR"], 10),
    **dict.fromkeys(["AND"], 20),
    **dict.fromkeys(["!"], 30),
    **dict.fromkeys(words("NOT IS IN BETWEEN LIKE ILIKE RLIKE REGEXP ESCAPE ANY SOME ALL DISTINCT FROM"), 40),
    **dict.fromkeys(["=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="], COMPARISON),
    "|": 50,
    "^": 52,
    "&": 54,
    **dict.fromkeys(["+", "-", "||"], 60),
    **dict.fromkeys(["*", "/", "%", "DIV"], 70),
    "~": _UNARY,
    "COLLATE": 95,
    **dict.fromkeys([".", "[", "]", "::"], _TIGHTEST),
}
_OPENING = frozenset(["(", ",", "CASE", "WHEN", "THEN", "ELSE", "WHERE", "[", "BY"])
_CLOSING = frozenset([")", ",", "WHEN", "THEN", "ELSE", "END", "]"]) | words(
    "AS PARTITION DISTRIBUTE CLUSTER ORDER SORT ROWS RANGE ASC DESC NULLS"
)


def match_at(lexemes: Lexemes, at: int, key: Lexemes) -> bool:
    """Return whether grouping expression `key` is an operand at index `at`."""
    end = at + len(key)
    if not key or end > len(lexemes) or keys(lexemes[at:end]) != keys(key):
        return False
    inside = binding(key)
    return _left_binding(lexemes, at) < inside and _right_binding(lexemes, end) <= inside and _whole(lexemes, at, key)


def binding(lexemes: Lexemes) -> int:
    """Return the precedence of the loosest operator outside brackets."""
    loosest, depth = _TIGHTEST, 0
    for i, lexeme in enumerate(lexemes):
        text = lexeme.text.upper()
        if lexeme.role is Role.OPERATOR and text in ("(", "[", "CASE"):
            depth += 1
        elif (lexeme.role is Role.OPERATOR and text in (")", "]")) or (depth and text == "END"):
            depth -= 1
        elif lexeme.role is Role.OPERATOR and depth == 0:
            loosest = min(loosest, _prefix_binding(lexemes, i))
    return loosest


def is_operand(lexemes: Lexemes) -> bool:
    """Return whether nothing but fields, elements and brackets is in an expression."""
    return binding(lexemes) == _TIGHTEST and not any(lexeme.text == "::" for lexeme in lexemes)


def _prefix_binding(lexemes: Lexemes, at: int) -> int:
    text = lexemes[at].text.upper()
    unary = at == 0 or not lexemes[at - 1].ends_operand
    if text == "NOT":
        # before a predicate (`a NOT IN`) it binds like the predicate
        return 30 if unary and not (at and lexemes[at - 1].text.upper() == "IS") else 40
    if text in ("+", "-") and unary:
        return _UNARY
    return _BINDING.get(text, 0)


def _left_binding(lexemes: Lexemes, at: int) -> int:
    if at == 0 or lexemes[at - 1].text.upper() in _OPENING:
        return -1
    before = lexemes[at - 1]
    if at > 1 and _shifts(lexemes, at - 2):
        return _SHIFT
    # a call's bracket follows its name; anything that is no operator here is not understood
    return _prefix_binding(lexemes, at - 1) if before.role is Role.OPERATOR else _TIGHTEST


def _right_binding(lexemes: Lexemes, end: int) -> int:
    if end == len(lexemes):
        return -1
    after = lexemes[end].text.upper()
    if lexemes[end].role is Role.OPERATOR and after in ("[", ".", "::"):
        return _TIGHTEST
    if after in _CLOSING:
        return -1
    return _SHIFT if _shifts(lexemes, end) else _BINDING.get(after, _TIGHTEST + 1)


def _shifts(lexemes: Lexemes, at: int) -> bool:
    """Return whether `<<`, `>>` or a part of `>>>` begins here, which are several tokens."""
    text = lexemes[at].text
    return text in ("<", ">") and at + 1 < len(lexemes) and lexemes[at + 1].text == text


def _whole(lexemes: Lexemes, at: int, key: Lexemes) -> bool:
    """Return whether the match begins and ends with operands: `-a` in `b -a` is no operand."""
    if at == 0:
        return True
    binary = key[0].role is Role.OPERATOR and lexemes[at - 1].ends_operand
    return not binary and lexemes[at - 1].role is not Role.CALL
