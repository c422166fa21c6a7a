"""Conditions inside expressions: CASE WHEN …, if(…), FILTER (WHERE …).

There NULL means the same as false, as it does in WHERE, so subqueries are read as they are there. Elsewhere the
difference between NULL and false may show, and Spark's own answer depends on what its optimiser made of the query.
"""

from __future__ import annotations

from headrace.sql.reader.scalars.booleans import has_subquery
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, closing_bracket, split_arguments
from headrace.sql.reader.syntax.query_shape import Range


def inner_conditions(lexemes: Lexemes) -> tuple[Range, ...]:
    """Return the outermost conditions that hold subqueries, as ranges of lexemes, in order."""
    found: list[Range] = []
    at = 0
    while at < len(lexemes):
        end = _end(lexemes, at)
        if end > at and has_subquery(lexemes[at:end]):
            found.append((at, end))
            at = end
        else:
            at += 1
    return tuple(found)


def _end(lexemes: Lexemes, at: int) -> int:
    """Return the end of the condition that begins at `at`; `at` itself where none begins."""
    if at < 2 or lexemes[at - 1].role is not Role.OPERATOR:
        return at
    before = lexemes[at - 1].text.upper()
    if before == "WHEN" and _searched(lexemes, at - 1):
        return _then(lexemes, at)
    if before == "WHERE" and lexemes[at - 2].text == "(":
        return closing_bracket(lexemes, at - 2)
    if before == "(" and lexemes[at - 2].role is Role.CALL and lexemes[at - 2].parts[0] == "if":
        inside = lexemes[at : closing_bracket(lexemes, at - 1)]
        return at + len(split_arguments(inside)[0]) if inside else at
    return at


def _searched(lexemes: Lexemes, when: int) -> bool:
    """Return whether the WHEN belongs to a CASE without an operand."""
    depth = 0
    for at in range(when - 1, -1, -1):
        text = lexemes[at].text.upper()
        if lexemes[at].role is Role.END:
            depth += 1
        elif lexemes[at].role is Role.OPERATOR and text == "CASE":
            if depth == 0:
                return lexemes[at + 1].role is Role.OPERATOR and lexemes[at + 1].text.upper() == "WHEN"
            depth -= 1
    return False


def _then(lexemes: Lexemes, at: int) -> int:
    """Return the THEN that ends a condition, past those of CASEs inside it."""
    depth = 0
    for i in range(at, len(lexemes)):
        text = lexemes[i].text.upper()
        if lexemes[i].role is Role.OPERATOR and text == "CASE":
            depth += 1
        elif lexemes[i].role is Role.END and depth:
            depth -= 1
        elif lexemes[i].role is Role.OPERATOR and text == "THEN" and depth == 0:
            return i
    return at
