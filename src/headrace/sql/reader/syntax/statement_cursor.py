"""Reads Headrace's statements; kinds of sources and sinks read their clauses with it."""

from __future__ import annotations

import re

from headrace.errors import UserError
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.from_clause import dotted_name
from headrace.sql.reader.syntax.tokens import Kind, Token

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


class StatementCursor(Cursor):
    """Walk over the tokens of one statement.

    Args:
        sql: The text, for places in errors.
        tokens: Its tokens, when they exist already.

    Attributes:
        form: The right form of the statement, which errors show.
    """

    def __init__(self, sql: str, tokens: tuple[Token, ...] | None = None) -> None:
        super().__init__(sql, tokens)
        self.form = ""

    def fail(self, message: str) -> UserError:
        """Return a syntax error at the current token that shows the right form."""
        return self.error(message, f"The form is:\n{self.form}")

    def need(self, *words: str) -> None:
        """Step over words that must come next.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        for word in words:
            if not self.take(word):
                raise self.fail(f"{word} was expected here")

    def string(self, what: str) -> str:
        """Step over a string literal and return its value.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        token = self.peek()
        if token.kind is not Kind.STRING:
            raise self.fail(f"{what} in quotes was expected here")
        self.at += 1
        return string_value(token.text)

    def mode(self, *allowed: str) -> str:
        """Step over one of several words and return it.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        if self.word not in allowed:
            raise self.fail(f"{', '.join(allowed[:-1])} or {allowed[-1]} was expected here")
        self.at += 1
        return self.peek(-1).word

    def keys(self) -> tuple[str, ...]:
        """Step over `(key, …)` and return the keys.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        self.need("(")
        found: list[str] = []
        while not found or self.take(","):
            if self.peek().is_name:
                found.append(self.peek().name)
                self.at += 1
            else:
                found.append(self.string("A key"))
        self.need(")")
        return tuple(found)

    def properties(self) -> dict[str, str]:
        """Step over `(key = value, …)` and return it, values as text.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        self.need("(")
        found: dict[str, str] = {}
        while not self.take(")"):
            is_text = self.peek().kind is Kind.STRING
            key = self.string("A key") if is_text else ".".join(dotted_name(self))
            self.need("=")
            sign = self.take("-")
            token = self.peek()
            if self.done or token.kind is Kind.OP:
                raise self.fail("A value was expected here")
            self.at += 1
            value = string_value(token.text) if token.kind is Kind.STRING else token.text
            found[key] = f"-{value}" if sign else value
            if self.word != ")":
                self.need(",")
        return found

    def texts(self) -> tuple[str, ...]:
        """Step over a list in brackets and return its items, each as it was written.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        self.expect("(")
        found = []
        while True:
            start = self.offset()
            first, last = self.skip_until(lambda at: at.word == ",")
            if first == last:
                raise self.error("A name was expected here")
            found.append(self.sql[start : self.peek(-1).end])
            if not self.take(","):
                self.expect(")")
                return tuple(found)

    def end(self) -> None:
        """Refuse whatever comes after the statement.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        if not self.done:
            raise self.fail("The statement should end here")


def string_value(literal: str) -> str:
    """Return the value of a string literal by Spark's rules."""
    if literal[0] in "rR":
        return literal[2:-1]
    if literal[0] == "$":
        length = literal.index("$", 1) + 1
        return literal[length:-length]
    quote = literal[0]
    return _ESCAPE.sub(_character, literal[1:-1].replace(quote * 2, quote))


def string_literal(value: str) -> str:
    """Return a literal that `string_value` reads as a text."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] == "u" and len(code) == 5:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    # LIKE patterns keep these two escaped
    return match.group() if code in "%_" else _ESCAPED.get(code, code)
