"""Decides where a text such as 'today' stays a text.

Wherever Spark casts a constant text to a date or timestamp, by its own rules or by the query's, it makes of 'today' the
day on which the query runs. Such a text is refused unless it can be seen that none is made of it: it is all that a
column shows, it is compared with texts, or what it is a part of is a text and no constant.
Source: rule SpecialDatetimeValues of Spark's optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    TopK,
    Values,
    Window,
)
from headrace.algebra.scalar import Scalar
from headrace.algebra.tree import nodes
from headrace.algebra.words import Kind, Words, closing
from headrace.errors import HeadraceError, Place
from headrace.sql.reader.functions.ties import TypesOf
from headrace.sql.reader.refusals import Refusal, not_deterministic
from headrace.sql.reader.syntax.tokens import words

_COMPARISONS = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="})
_PATTERNS = words("LIKE ILIKE RLIKE REGEXP")
_BEFORE_OPERAND = frozenset({"(", ",", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "->", ""})
_BEHIND_OPERAND = frozenset({")", ",", "AND", "OR", "WHEN", "THEN", "ELSE", "END", ""})

_OF_THEIR_TYPE = words("coalesce concat greatest if ifnull least nvl")
"""Functions whose arguments, or some of them, are cast to the type of the result."""

_OF_TEXTS = words("concat_ws contains endswith get_json_object instr named_struct regexp_replace replace startswith")
"""Functions that cast no text which they are given."""


def moving_literals(tree: Relation, types_of: TypesOf, written: Mapping[str, Place]) -> tuple[Refusal, ...]:
    """Refuse texts of which Spark makes the time when a query runs.

    Args:
        tree: The query, as it was read.
        types_of: Spark's column types of a relation.
        written: Such texts, as they are written, with the first place of each.
    """
    if not written:
        return ()
    found: dict[str, None] = {}
    for node in nodes(tree):
        for scalar in _scalars(node):
            for at, word in enumerate(scalar.words):
                moves = word.kind is Kind.LITERAL and word.text in written and word.text not in found
                if moves and not _Literal(scalar.words, at, node, types_of).stays_text:
                    found[word.text] = None
    return tuple(not_deterministic(text, written[text], "depends on when it runs") for text in found)


def _scalars(node: Relation) -> Iterator[Scalar]:
    """Yield the scalars of a node."""
    match node:
        case Project():
            yield from (scalar for _, scalar in node.items)
        case Values():
            yield from (scalar for row in node.rows for scalar in row)
        case Filter() | OuterJoin() | Existence():
            yield node.condition
        case Join() if node.condition is not None:
            yield node.condition
        case Generate():
            yield node.generator
        case TopK():
            yield from (key.scalar for key in node.order)
        case Aggregate():
            for call in node.calls:
                yield from (each for each in (call.argument, call.filter, *call.more) if each is not None)
                yield from (key.scalar for key in call.within)
        case Window():
            for own in node.calls:
                yield from (own.call, *(key.scalar for key in own.order))


class _Literal:
    """A literal in a scalar.

    Args:
        words: The scalar's words.
        at: Which of them it is.
        node: Whose scalar it is.
        types_of: Spark's column types of a relation.
    """

    def __init__(self, words: Words, at: int, node: Relation, types_of: TypesOf) -> None:
        self.words = words
        self.at = at
        self.node = node
        self.types_of = types_of

    @property
    def stays_text(self) -> bool:
        """Return whether it is certain that nothing is made of it."""
        before, behind = self.word(self.at - 1), self.word(self.at + 1)
        if len(self.words) == 1 or (before in _PATTERNS and behind in _BEHIND_OPERAND):
            return True
        if before in _COMPARISONS and behind in _BEHIND_OPERAND:
            return self.is_text(self.operand_before(self.at - 2))
        if behind in _COMPARISONS and before in _BEFORE_OPERAND:
            return self.is_text(self.operand_behind(self.at + 2))
        if before == "[" and behind == "]":
            return (self.type_of(self.operand_before(self.at - 2)) or "").startswith("map<string,")
        if before in ("WHEN", "THEN", "ELSE"):
            return self.in_case(before, behind)
        return before in ("(", ",") and behind in (")", ",") and self.in_brackets()

    def word(self, at: int) -> str:
        """Return the operator at a place; nothing beyond the ends, a blank for anything else."""
        if not 0 <= at < len(self.words):
            return ""
        return self.words[at].name if self.words[at].kind is Kind.OPERATOR else " "

    def in_case(self, before: str, behind: str) -> bool:
        start = self.opening(("CASE",), ("END",))
        end = self.closing_case(start)
        if start < 0 or end < 0:
            return False
        if before == "WHEN":
            simple = next(i for i in range(start, self.at) if self.word(i) == "WHEN")
            return behind == "THEN" and self.is_text(self.words[start + 1 : simple])
        return behind in ("WHEN", "ELSE", "END") and self.is_text(self.words[start : end + 1])

    def in_brackets(self) -> bool:
        start = self.opening(("(", "["), (")", "]"))
        end = closing(self.words, start)
        if start < 1 or end < 0:
            return False
        if self.words[start - 1].kind is Kind.FUNCTION:
            function = self.words[start - 1].name
            whole = self.words[start - 1 : end + 1]
            if function in _OF_THEIR_TYPE:
                return self.is_text(whole)
            return function in _OF_TEXTS and any(each.kind is Kind.COLUMN for each in whole)
        listed = all(each.kind is Kind.LITERAL or each.name == "," for each in self.words[start + 1 : end])
        if self.word(start - 1) != "IN" or not listed:
            return False
        return self.is_text(self.operand_before(start - (3 if self.word(start - 2) == "NOT" else 2)))

    def opening(self, opens: tuple[str, ...], closes: tuple[str, ...]) -> int:
        """Return where the innermost part around it begins; -1 for none."""
        depth = 0
        for at in range(self.at - 1, -1, -1):
            depth += (self.word(at) in closes) - (self.word(at) in opens)
            if depth < 0:
                return at
        return -1

    def closing_case(self, start: int) -> int:
        depth = 0
        for at in range(start, len(self.words)):
            depth += (self.word(at) == "CASE") - (self.word(at) == "END")
            if not depth:
                return at
        return -1

    def operand_before(self, last: int) -> Words:
        """Return the operand that ends at a place, where it can be told; else nothing."""
        at = last
        while at > 1 and self.words[at].kind is Kind.LITERAL and self.word(at - 1) == ".":
            at -= 2
        if self.word(at) == ")":
            depth = 0
            for start in range(at, -1, -1):
                depth += (self.word(start) in (")", "]")) - (self.word(start) in ("(", "["))
                if not depth:
                    at = start - (start > 0 and self.words[start - 1].kind is Kind.FUNCTION)
                    break
        elif at < 0 or self.words[at].kind is not Kind.COLUMN:
            return ()
        return self.words[at : last + 1] if self.word(at - 1) in _BEFORE_OPERAND else ()

    def operand_behind(self, first: int) -> Words:
        """Return the operand that begins at a place, where it can be told; else nothing."""
        at = first
        if at < len(self.words) and self.words[at].kind is Kind.FUNCTION:
            at += 1
        if self.word(at) == "(":
            at = closing(self.words, at)
        elif at != first or at >= len(self.words) or self.words[at].kind is not Kind.COLUMN:
            return ()
        while self.word(at + 1) == "." and at + 2 < len(self.words):
            at += 2
        return self.words[first : at + 1] if self.word(at + 1) in _BEHIND_OPERAND else ()

    def is_text(self, operand: Words) -> bool:
        """Return whether an operand is known to be a text, and no constant."""
        return (self.type_of(operand) or "").startswith(("string", "varchar", "char"))

    def type_of(self, operand: Words) -> str | None:
        """Return the type of an operand that reads a column; None where it is not known."""
        if not any(each.kind is Kind.COLUMN for each in operand):
            return None
        value = Scalar((operand[0]._replace(spaced=False), *operand[1:]))
        for each in self.node.inputs:
            if value.columns <= frozenset(each.columns):
                try:
                    return self.types_of(Project(each, (("value", value),)))[0].type
                except HeadraceError:
                    return None
        return None
