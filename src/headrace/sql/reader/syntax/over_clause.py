"""Cutting OVER clauses into lexemes: `OVER name`, `OVER (PARTITION BY … ORDER BY … ROWS …)`."""

from __future__ import annotations

from typing import Protocol

from headrace.sql.reader.scalars.lexemes import Role
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.tokens import Kind, words

PARTITION = words("PARTITION DISTRIBUTE CLUSTER")
ORDER = words("ORDER SORT")
FRAME = words("ROWS RANGE")
DIRECTION = words("ASC DESC NULLS FIRST LAST")


class Cutter(Protocol):
    """Methods of the scalar cutter that OVER clauses need."""

    cursor: Cursor

    def word(self, at: int, end: int) -> str:
        """Return the token at an index, for comparing."""

    def emit_all(self, role: Role, start: int, end: int) -> int:
        """Make lexemes of tokens."""

    def closing(self, at: int) -> int:
        """Return the bracket that closes the one at an index."""

    def refuse(self, construct: str, at: int) -> None:
        """Take down a refusal."""

    def scalar(self, at: int, end: int, variables: frozenset[str], words: frozenset[str] = frozenset()) -> None:
        """Cut an expression."""


def over(cutter: Cutter, at: int, variables: frozenset[str]) -> int:
    """Cut the OVER clause that begins at a token; returns the token after it."""
    end = len(cutter.cursor.tokens)
    at = cutter.emit_all(Role.OPERATOR, at, at + 1)
    if cutter.word(at, end) != "(":
        return cutter.emit_all(Role.LITERAL, at, at + 1)
    closing = cutter.closing(at)
    cutter.emit_all(Role.OPERATOR, at, at + 1)
    definition(cutter, at + 1, closing, variables)
    return cutter.emit_all(Role.OPERATOR, closing, closing + 1)


def definition(cutter: Cutter, at: int, end: int, variables: frozenset[str]) -> None:
    """Cut what stands inside the brackets of OVER."""
    while at < end:
        word, following = cutter.word(at, end), cutter.word(at + 1, end)
        if word in PARTITION | ORDER and following == "BY":
            at = _list(cutter, cutter.emit_all(Role.OPERATOR, at, at + 2), end, variables)
        elif word in FRAME:
            at = _frame(cutter, at, end)
        else:
            at = cutter.emit_all(Role.LITERAL, at, at + 1)


def _list(cutter: Cutter, at: int, end: int, variables: frozenset[str]) -> int:
    """Return expressions, each perhaps with a direction, up to the next part of the clause."""
    while at < end:
        cutter.cursor.at = at
        stop = min(cutter.cursor.skip_until(lambda c: c.word == "," or _part_begins(c))[1], end)
        last = stop
        while last - 1 > at and cutter.word(last - 1, end) in DIRECTION and _names_direction(cutter, last):
            last -= 1
        cutter.scalar(at, last, variables)
        at = cutter.emit_all(Role.OPERATOR, last, stop)
        if cutter.word(at, end) != ",":
            return at
        at = cutter.emit_all(Role.OPERATOR, at, at + 1)
    return at


def _part_begins(cursor: Cursor) -> bool:
    following = cursor.peek(1).word
    if not cursor.after_operand() and cursor.peek(-1).word not in DIRECTION:
        return False
    if cursor.word in FRAME:
        return following in ("BETWEEN", "UNBOUNDED", "CURRENT", "INTERVAL") or cursor.peek(1).kind is Kind.NUMBER
    return cursor.word in PARTITION | ORDER and following == "BY"


def _names_direction(cutter: Cutter, last: int) -> bool:
    """Return whether `FIRST` or `LAST` follows NULLS; after a dot a word is a field."""
    word, before = cutter.word(last - 1, last), cutter.word(last - 2, last)
    return before != "." and (before == "NULLS" if word in ("FIRST", "LAST") else True)


def _frame(cutter: Cutter, at: int, end: int) -> int:
    for i in range(at, end):
        if cutter.word(i, end) == "(":
            cutter.refuse("expression in a window frame", at)
    return cutter.emit_all(Role.OPERATOR, at, end)
