"""Cuts scalars into lexemes, and tells columns from functions, keywords and types.

Every token gets a role. A word that no rule explains is taken for a column, and a column that cannot be resolved is
refused, so what this module does not know can stop a query from being maintained, but cannot change its meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.errors import place_at
from headrace.sql.reader.functions import determinism
from headrace.sql.reader.refusals import Refusal, not_deterministic, not_maintained
from headrace.sql.reader.scalars.lexemes import EXISTS, IN, SCALAR, Lexeme, Lexemes, Role, lexeme_of
from headrace.sql.reader.syntax.cursor import Cursor, opens_case
from headrace.sql.reader.syntax.over_clause import definition, over
from headrace.sql.reader.syntax.query_shape import Range
from headrace.sql.reader.syntax.tokens import Kind, Token, words

_CONSTANTS = words("NULL TRUE FALSE")
_BETWEEN_OPERANDS = words("AND OR IS IN BETWEEN LIKE ILIKE RLIKE REGEXP ESCAPE DIV COLLATE NOT")
_OF_CASE = words("WHEN THEN ELSE END")
_TYPED_LITERALS = words("DATE TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ TIME X")
_WITH_UNIT = words("DATEADD DATE_ADD DATEDIFF DATE_DIFF TIMEDIFF TIMESTAMPADD TIMESTAMPDIFF")
_WORDS_INSIDE: dict[str, frozenset[str]] = {
    "EXTRACT": words("FROM"),
    "TRIM": words("FROM BOTH LEADING TRAILING"),
    "SUBSTRING": words("FROM FOR"),
    "SUBSTR": words("FROM FOR"),
    "OVERLAY": words("PLACING FROM FOR"),
}
_UNITS = frozenset(
    f"{unit}{plural}"
    for unit in words(
        """
        YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND NANOSECOND
        """
    )
    for plural in ("", "S")
)


def cut(cursor: Cursor, within: Range, fold: Callable[[str], str] = str.lower) -> tuple[Lexemes, tuple[Refusal, ...]]:
    """Cut a range of tokens into lexemes.

    Args:
        cursor: Gives the tokens and the text.
        within: The scalar's tokens.
        fold: Makes names the same that mean the same.

    Returns:
        The lexemes, and what in them is never maintained: moving literals.
    """
    cutter = _Cutter(cursor, fold)
    cutter.scalar(within[0], within[1], frozenset())
    return tuple(cutter.lexemes), tuple(cutter.refusals)


def cut_window(cursor: Cursor, within: Range, fold: Callable[[str], str]) -> tuple[Lexemes, tuple[Refusal, ...]]:
    """Cut the inside of a window definition into lexemes; arguments and result as for `cut`."""
    cutter = _Cutter(cursor, fold)
    definition(cutter, within[0], within[1], frozenset())
    return tuple(cutter.lexemes), tuple(cutter.refusals)


class _Cutter:
    def __init__(self, cursor: Cursor, fold: Callable[[str], str]) -> None:
        self.cursor = cursor
        self.fold = fold
        self.tokens = cursor.tokens
        self.lexemes: list[Lexeme] = []
        self.refusals: list[Refusal] = []

    # tokens

    def word(self, at: int, end: int) -> str:
        return self.tokens[at].word if 0 <= at < end else ""

    def emit(self, role: Role, at: int) -> None:
        self.lexemes.append(lexeme_of(role, self.tokens[at], self.tokens[at - 1] if at else None))

    def emit_all(self, role: Role, start: int, end: int) -> int:
        for at in range(start, end):
            self.emit(role, at)
        return end

    def closing(self, at: int) -> int:
        self.cursor.at = at
        self.cursor.skip_group()
        return self.cursor.at - 1

    def refuse(self, construct: str, at: int) -> None:
        self.refusals.append(not_maintained(construct, place_at(self.cursor.sql, self.tokens[at].start)))

    def after_operand(self) -> bool:
        return bool(self.lexemes) and self.lexemes[-1].ends_operand

    # scalars

    def scalar(self, at: int, end: int, variables: frozenset[str], words: frozenset[str] = frozenset()) -> None:
        """Cut tokens up to `end`; `words` are keywords here besides the usual ones."""
        cases = 0
        while at < end:
            token = self.tokens[at]
            if token.kind is Kind.WORD and token.word in _OF_CASE and cases:
                cases -= token.word == "END"
                at = self.emit_all(Role.END if token.word == "END" else Role.OPERATOR, at, at + 1)
            elif token.word == "CASE" and not self.after_operand() and opens_case(self.tokens, at, end):
                cases += 1
                at = self.emit_all(Role.OPERATOR, at, at + 1)
            elif token.is_name:
                at = self.named(at, end, variables, words)
            elif token.kind is Kind.OP:
                at = self.operator(at, end, variables)
            else:
                at = self.emit_all(Role.LITERAL, at, at + 1)

    def operator(self, at: int, end: int, variables: frozenset[str]) -> int:
        text = self.tokens[at].text
        if text in ("(", "["):
            return self.group(at, variables)
        if text == "*" and not self.after_operand():
            return self.emit_all(Role.STAR, at, at + 1)
        if text == "::":
            self.emit(Role.OPERATOR, at)
            return self.type(at + 1, end)
        if text == "." and at + 1 < end and self.tokens[at + 1].is_name:
            self.emit(Role.OPERATOR, at)
            return self.emit_all(Role.LITERAL, at + 1, at + 2)
        if text == ":" and self.after_operand() and at + 1 < end:
            return self.path(at)
        if text in (":", "?", "{", "}", "@", "#", "$", ";", "|>"):
            self.refuse(f"'{text}' in an expression", at)
        return self.emit_all(Role.OPERATOR, at, at + 1)

    def path(self, at: int) -> int:
        """Return the path into a variant behind its colon.

        What follows its first name or bracket is a field's.
        """
        self.emit(Role.OPERATOR, at)
        following = self.tokens[at + 1]
        return self.emit_all(Role.LITERAL, at + 1, at + 2) if following.is_name else at + 1

    def group(self, at: int, variables: frozenset[str]) -> int:
        closing = self.closing(at)
        listed = self.word(at - 1, at) == "IN" and self.word(at + 1, closing) == "("
        # `IN ((SELECT …))` is a list of one value to Spark
        listed = listed and self.closing(at + 1) == closing - 1
        self.cursor.at = at
        if self.tokens[at].text == "(" and self.cursor.opens_query() and not listed:
            return self.subquery(IN if self.word(at - 1, at) == "IN" else SCALAR, at, at, closing)
        self.emit(Role.OPERATOR, at)
        self.scalar(at + 1, closing, variables)
        return self.emit_all(Role.OPERATOR, closing, closing + 1)

    def subquery(self, kind: str, at: int, opening: int, closing: int) -> int:
        """Return a query in brackets; for EXISTS, `at` is that word."""
        text = self.cursor.sql[self.tokens[at].start : self.tokens[closing].end]
        head = lexeme_of(Role.SUBQUERY, self.tokens[at], self.tokens[at - 1] if at else None)
        self.lexemes.append(replace(head, text=text, parts=(kind,), tokens=(opening + 1, closing)))
        return closing + 1

    def named(self, at: int, end: int, variables: frozenset[str], words: frozenset[str]) -> int:
        token, following = self.tokens[at], self.tokens[at + 1] if at + 1 < end else None
        operand = self.after_operand()
        if token.kind is Kind.WORD and following is not None and following.text != ".":
            if token.word in _TYPED_LITERALS and following.kind is Kind.STRING:
                return self.typed_literal(at)
            if token.word == "INTERVAL" and self.is_interval(at + 1, end):
                return self.interval(at, end)
        if token.kind is Kind.WORD and (done := self.keyword(at, end, operand, words)):
            return done
        if operand and at + 1 == end:
            return self.emit_all(Role.ALIAS, at, end)
        if following is not None and following.text == "=>":
            self.emit(Role.LITERAL, at)  # the argument's name may be a word that opens or closes something
            return self.emit_all(Role.OPERATOR, at + 1, at + 2)
        return self.chain(at, end, variables)

    def keyword(self, at: int, end: int, operand: bool, words: frozenset[str]) -> int:
        """Emit a keyword and return what follows it; 0 when the word is none here."""
        word, before, following = self.tokens[at].word, self.word(at - 1, end), self.word(at + 1, end)
        if word in _CONSTANTS or (word == "UNKNOWN" and before in ("IS", "NOT")):
            return self.emit_all(Role.LITERAL, at, at + 1)
        if word in words or (word == "NOT" and not operand and at + 1 < end):
            return self.emit_all(Role.OPERATOR, at, at + 1)
        if word == "DISTINCT" and before in ("IS", "NOT") and following == "FROM":
            return self.emit_all(Role.OPERATOR, at, at + 2)
        if not operand:
            quantifier = word in ("ANY", "SOME", "ALL") and before in ("LIKE", "ILIKE")
            special = before == "NOT" and word in _BETWEEN_OPERANDS and any(x.ends_operand for x in self.lexemes[-2:-1])
            return self.emit_all(Role.OPERATOR, at, at + 1) if quantifier or special else 0
        if word == "COLLATE":
            self.emit(Role.OPERATOR, at)
            return self.emit_all(Role.LITERAL, at + 1, min(at + 2, end))
        if word == "AS":
            self.emit(Role.OPERATOR, at)
            return self.emit_all(Role.ALIAS, at + 1, end if following == "(" else min(at + 2, end))
        return self.emit_all(Role.OPERATOR, at, at + 1) if word in _BETWEEN_OPERANDS else 0

    def chain(self, at: int, end: int, variables: frozenset[str]) -> int:
        """Return a dotted name: a column with its fields, a function, a variable."""
        start = at
        at += 1
        while at + 1 < end and self.tokens[at].text == "." and self.tokens[at + 1].is_name:
            at += 2
        names = self.tokens[start:at:2]
        if at < end and self.tokens[at].text == "(":
            return self.call(start, at, end, variables, ".".join(token.name.lower() for token in names))
        if self.fold(names[0].name) in variables:
            return self.emit_all(Role.LITERAL, start, min(at, end))
        if at + 1 < end and self.tokens[at].text == "." and self.tokens[at + 1].text == "*":
            return self.emit_all(Role.STAR, start, at + 2)
        head = lexeme_of(Role.NAME, names[0], self.tokens[start - 1] if start else None)
        parts, texts = tuple(token.name for token in names), tuple(token.text for token in names)
        self.lexemes.append(Lexeme(Role.NAME, ".".join(texts), head.at, head.spaced, parts, texts))
        return at

    # calls

    def call(self, start: int, opening: int, end: int, variables: frozenset[str], name: str) -> int:
        closing = self.closing(opening)
        self.cursor.at = opening
        if name == "exists" and self.cursor.opens_query():
            return self.subquery(EXISTS, start, opening, closing)
        head = lexeme_of(Role.CALL, self.tokens[start], self.tokens[start - 1] if start else None)
        text = "".join(token.text for token in self.tokens[start:opening])
        index = len(self.lexemes)
        self.lexemes.append(Lexeme(Role.CALL, text, head.at, head.spaced, (name,)))
        self.emit(Role.OPERATOR, opening)
        self.cursor.at = opening
        if self.cursor.opens_query() and self.word(opening + 1, end) != "(":
            self.refuse(SCALAR, start)
            self.emit_all(Role.LITERAL, opening + 1, closing)
        elif name in ("cast", "try_cast"):
            self.cast(opening + 1, closing, variables)
        else:
            self.arguments(opening + 1, closing, variables, name.upper())
        self.emit(Role.OPERATOR, closing)
        after = self.after_call(closing + 1, end, variables)
        if self.word(after, end) == "OVER" and after + 1 < end and self.tokens[after + 1].word != ",":
            if self.word(closing + 1, end) == "WITHIN":
                self.refuse("WITHIN GROUP in a window", closing + 1)
            # its function is no aggregate of the query
            self.lexemes[index] = replace(self.lexemes[index], role=Role.WINDOW)
            after = over(self, after, variables)
        return after

    def cast(self, at: int, end: int, variables: frozenset[str]) -> None:
        self.cursor.at = at
        split = at
        while self.cursor.at < end:
            self.cursor.skip_until(lambda c: c.word == "AS")
            split = self.cursor.at if self.cursor.at < end else split
            self.cursor.at += 1
        self.scalar(at, split, variables)
        if split < end:
            self.emit(Role.OPERATOR, split)
            self.emit_all(Role.LITERAL, split + 1, end)

    def arguments(self, at: int, end: int, variables: frozenset[str], function: str) -> None:
        words = _WORDS_INSIDE.get(function, frozenset())
        if (function == "EXTRACT" and at < end) or (
            # with two arguments it is the function of a date, and a word like a unit is a column
            function in _WITH_UNIT and self.word(at, end) in _UNITS and self.count_arguments(at, end) == 3
        ):
            at = self.emit_all(Role.LITERAL, at, at + 1)
        elif self.word(at, end) in ("DISTINCT", "ALL") and at + 1 < end and self.word(at + 1, end) not in (",", "."):
            at = self.emit_all(Role.OPERATOR, at, at + 1)
        while at < end:
            self.cursor.at = at
            stop = min(self.cursor.skip_until(lambda c: c.word == ",")[1], end)
            self.argument(at, stop, variables, words)
            at = self.emit_all(Role.OPERATOR, stop, min(stop + 1, end))

    def count_arguments(self, at: int, end: int) -> int:
        """Return how many arguments stand between brackets."""
        self.cursor.at = at
        count = 1
        while self.cursor.skip_until(lambda c: c.word == ",")[1] < end:
            self.cursor.at += 1
            count += 1
        return count

    def argument(self, at: int, end: int, variables: frozenset[str], words: frozenset[str]) -> None:
        body = at
        names: tuple[Token, ...] = ()
        if self.word(at + 1, end) == "->":
            body, names = at + 2, (self.tokens[at],)
        elif self.word(at, end) == "(" and self.word((closing := self.closing(at)) + 1, end) == "->":
            body, names = closing + 2, self.tokens[at + 1 : closing : 2]
        self.emit_all(Role.LITERAL, at, body - 1 if body > at else at)
        if body > at:
            self.emit(Role.OPERATOR, body - 1)
        self.scalar(body, end, variables | {self.fold(token.name) for token in names}, words)

    def after_call(self, at: int, end: int, variables: frozenset[str]) -> int:
        """Step over FILTER and the other words that may follow a call, but for OVER."""
        word, following = self.word(at, end), self.word(at + 1, end)
        if word in ("IGNORE", "RESPECT") and following == "NULLS":
            at = self.emit_all(Role.OPERATOR, at, at + 2)
            return self.after_call(at, end, variables)
        if word == "WITHIN" and following == "GROUP":
            closing = self.closing(at + 2)
            self.emit_all(Role.OPERATOR, at, at + 3)
            definition(self, at + 3, closing, variables)
            self.emit(Role.OPERATOR, closing)
            return self.after_call(closing + 1, end, variables)
        if word == "FILTER" and following == "(" and self.word(at + 2, end) == "WHERE":
            closing = self.closing(at + 1)
            self.emit_all(Role.OPERATOR, at, at + 3)
            self.scalar(at + 3, closing, variables)
            self.emit(Role.OPERATOR, closing)
            return self.after_call(closing + 1, end, variables)
        return at

    # literals and types

    def typed_literal(self, at: int) -> int:
        text = self.tokens[at + 1].text
        if determinism.moving_literal(text):
            place = place_at(self.cursor.sql, self.tokens[at].start)
            construct = f"{self.tokens[at].word} {text}"
            self.refusals.append(not_deterministic(construct, place, "depends on when it runs"))
        return self.emit_all(Role.LITERAL, at, at + 2)

    def is_interval(self, at: int, end: int) -> bool:
        """Return whether this may follow INTERVAL; before other things with a sign it is a column."""
        value = at + (self.tokens[at].text in ("+", "-"))
        if value >= end or self.tokens[value].kind not in (Kind.STRING, Kind.NUMBER):
            return False
        return value == at or self.word(value + 1, end) in _UNITS

    def interval(self, at: int, end: int) -> int:
        at = self.emit_all(Role.LITERAL, at, at + 1)
        while at < end:
            ahead = at + (self.tokens[at].text in ("+", "-"))
            if ahead >= end or self.tokens[ahead].kind not in (Kind.STRING, Kind.NUMBER):
                return at
            if self.word(ahead + 1, end) not in _UNITS:
                # an interval in one string has no unit; anything else belongs to the expression around it
                lone = self.tokens[ahead].kind is Kind.STRING and self.tokens[at - 1].word == "INTERVAL"
                return self.emit_all(Role.LITERAL, at, ahead + 1) if lone else at
            at = self.emit_all(Role.LITERAL, at, ahead + 2)
            if self.word(at, end) == "TO" and self.word(at + 1, end) in _UNITS:
                return self.emit_all(Role.LITERAL, at, at + 2)
        return at

    def type(self, at: int, end: int) -> int:
        """Return a type after `::`."""
        if at >= end:
            self.cursor.at = at
            raise self.cursor.error("A type was expected here")
        start = at
        at += 1
        if self.word(start, end) == "INTERVAL":
            while self.word(at, end) in _UNITS | {"TO"}:
                at += 1
        elif self.word(at, end) == "<":
            depth = 0
            while at < end:
                depth += (self.tokens[at].text == "<") - (self.tokens[at].text == ">")
                at += 1
                if depth == 0:
                    break
        elif self.word(at, end) == "(":
            at = self.closing(at) + 1
        elif self.word(start, end) == "TIMESTAMP" and self.word(at, end) in ("WITH", "WITHOUT"):
            at += 3
        return self.emit_all(Role.LITERAL, start, min(at, end))
