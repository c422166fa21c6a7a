"""Decides where a text such as 'today' stays a text.

Wherever Spark casts a constant text to a date or timestamp, by its own rules or by the query's, it makes of 'today' the
day on which the query runs. Such a text is refused unless it can be seen that none is made of it: it is all that a
column shows, it is compared with texts, or what it is a part of is a text and no constant. So is a column that holds
nothing else, as the text may stand in its place; see `constant_columns`.
Source: rule SpecialDatetimeValues of Spark's optimizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from headrace.algebra.facts import split_at
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
from headrace.algebra.tree import inputs_first
from headrace.algebra.words import Kind, Word, Words, closing
from headrace.errors import Place, Unsupported, UserError
from headrace.sql.reader.functions.constant_columns import Constants, constant_columns, together
from headrace.sql.reader.functions.ties import TypesOf
from headrace.sql.reader.refusals import Refusal, not_deterministic
from headrace.sql.reader.syntax.tokens import is_string, words

_TEXT = ("string", "varchar", "char")
"""Prefixes of the names of text types."""

_COMPARISONS = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="})
_PATTERNS = words("LIKE ILIKE RLIKE REGEXP")
_BEFORE_OPERAND = frozenset({"(", ",", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "->", ""})
_BEHIND_OPERAND = frozenset({")", ",", "AND", "OR", "WHEN", "THEN", "ELSE", "END", ""})
_JOINS = "||"
_LOOSER = _COMPARISONS | {_JOINS}
"""Operators that bind no closer than `||`."""

_OF_THEIR_TYPE = words("coalesce greatest if ifnull least nvl nvl2")
"""Functions whose arguments, or some of them, are cast to the type of the result."""

_OF_TEXTS = words(
    """
    array_join btrim char_length character_length concat concat_ws contains endswith find_in_set get_json_object initcap
    instr lcase left len length levenshtein locate lower lpad ltrim named_struct overlay position regexp_count
    regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace right rpad
    rtrim split split_part startswith substr substring substring_index translate trim ucase upper
    """
)
"""Functions that cast no text which they are given to a date or time."""

_OF_THEIR_FIRST = {
    **dict.fromkeys(words("decode equal_null nullif"), _TEXT),
    **dict.fromkeys(words("array_append array_contains array_position array_prepend array_remove"), ("array<string",)),
    **dict.fromkeys(words("element_at map_contains_key try_element_at"), ("map<string",)),
}
"""Functions that cast no text if the type of their first argument begins so."""


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
    constant = constant_columns(tree, written)
    for node in inputs_first(tree):
        constants = together([constant[id(each)] for each in node.inputs])
        for scalar in _scalars(node):
            for at, word in enumerate(scalar.words):
                texts = [text for text in _texts(word, constants) if text in written and text not in found]
                if texts and not _Text(scalar.words, at, node, constants, types_of).stays_text:
                    found |= dict.fromkeys(texts)
    return tuple(not_deterministic(text, written[text], "depends on when it runs") for text in found)


def _texts(word: Word, constants: Constants) -> Iterable[str]:
    """Return the literals that a word may be."""
    if word.kind is Kind.LITERAL:
        return (word.text,)
    return sorted(constants.get(word.name, ())) if word.kind is Kind.COLUMN else ()


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


class _Text:
    """A literal, or a column in whose place it may stand, in a scalar.

    Args:
        words: The scalar's words.
        at: Which of them it is.
        node: Whose scalar it is.
        constants: Constant columns that the scalar may read.
        types_of: Spark's column types of a relation.
    """

    def __init__(self, words: Words, at: int, node: Relation, constants: Constants, types_of: TypesOf) -> None:
        self.words = words
        self.at = at
        self.node = node
        self.constants = constants
        self.types_of = types_of

    @property
    def stays_text(self) -> bool:
        """Return whether it is certain that nothing is made of it."""
        before, behind = self.word(self.at - 1), self.word(self.at + 1)
        if len(self.words) == 1 or (before in _PATTERNS and behind in _BEHIND_OPERAND):
            return True
        if before in _BEFORE_OPERAND and self.is_asked_about:
            return True
        if _JOINS in (before, behind):
            return self.in_concatenation(before, behind)
        if before in _COMPARISONS and behind in _BEHIND_OPERAND:
            return self.is_text(self.operand_before(self.at - 2))
        if behind in _COMPARISONS and before in _BEFORE_OPERAND:
            return self.is_text(self.operand_behind(self.at + 2))
        if before == "[" and behind == "]":
            return self.varies_as(("map<string",), self.operand_before(self.at - 2))
        if before in ("CASE", "WHEN", "THEN", "ELSE"):
            return self.in_case(before, behind)
        return before in ("(", ",") and behind in (")", ",") and self.in_brackets()

    def word(self, at: int) -> str:
        """Return the operator at a place; nothing beyond the ends, a blank for anything else."""
        if not 0 <= at < len(self.words):
            return ""
        return self.words[at].name if self.words[at].kind is Kind.OPERATOR else " "

    @property
    def is_asked_about(self) -> bool:
        """Return whether it is compared with a pattern, a list of texts or NULL."""
        negated = self.word(self.at + 1) == "NOT"
        asks = self.at + 1 + negated
        match self.word(asks):
            case "IN":
                end = closing(self.words, asks + 1)
                return end > 0 and self.are_texts(split_at(self.words[asks + 2 : end], ","))
            case "IS" if not negated:
                asked = [each.text.upper() for each in self.words[asks + 1 : asks + 3]]
                return "NULL" in (asked if asked[:1] == ["NOT"] else asked[:1])
            case pattern:
                return pattern in _PATTERNS

    def in_case(self, before: str, behind: str) -> bool:
        start = self.at - 1 if before == "CASE" else self.opening(("CASE",), ("END",))
        end = self.closing_case(start)
        if start < 0 or end < 0:
            return False
        if before == "CASE":
            return behind == "WHEN" and self.are_texts(self.compared_in_case(start, end))
        if before == "WHEN":
            simple = next(i for i in range(start, self.at) if self.word(i) == "WHEN")
            return behind == "THEN" and self.is_text(self.words[start + 1 : simple])
        return behind in ("WHEN", "ELSE", "END") and self.varies_as(_TEXT, self.words[start : end + 1])

    def compared_in_case(self, start: int, end: int) -> Iterator[Words]:
        """Yield what stands between WHEN and THEN of a CASE, in those within it, too."""
        for at in range(start, end):
            if self.word(at) == "WHEN":
                yield self.words[at + 1 : next(i for i in range(at, end) if self.word(i) == "THEN")]

    def in_concatenation(self, before: str, behind: str) -> bool:
        """Return whether `||` joins it to what reads a column.

        `||` makes texts of all that it is given.
        """
        if before not in _BEFORE_OPERAND | _LOOSER or behind not in _BEHIND_OPERAND | _LOOSER:
            return False
        left, right = self.past_constants(-1), self.past_constants(1)
        start = self.start_of(left - 1) if self.word(left) == _JOINS else -1
        end = self.end_of(right + 1) if self.word(right) == _JOINS else -1
        return (start >= 0 and self.varies(self.words[start:left])) or self.varies(self.words[right + 1 : end + 1])

    def past_constants(self, step: int) -> int:
        """Return where, to the left or the right, the first `||` stands that joins no constant."""
        at = self.at + step
        while self.word(at) == self.word(at + 2 * step) == _JOINS and _is_constant((self.words[at + step],)):
            at += 2 * step
        return at

    def in_brackets(self) -> bool:
        start = self.opening(("(", "["), (")", "]"))
        end = closing(self.words, start)
        if start < 1 or end < 0:
            return False
        within = split_at(self.words[start + 1 : end], ",")
        if self.word(start - 1) == "IN":
            compared = self.operand_before(start - (3 if self.word(start - 2) == "NOT" else 2))
            return self.is_text(compared) and self.are_texts(within)
        if self.words[start - 1].kind is not Kind.FUNCTION:
            return False
        function, whole = self.words[start - 1].name, self.words[start - 1 : end + 1]
        nth = len(split_at(self.words[start + 1 : self.at], ",")) - 1
        result = function == "decode" and nth > 0 and (nth % 2 == 0 or nth == len(within) - 1)
        if function in _OF_THEIR_TYPE or result:
            return self.varies_as(_TEXT, whole)
        if function in _OF_THEIR_FIRST:
            return self.varies_as(_OF_THEIR_FIRST[function], within[0])
        return function in _OF_TEXTS and self.varies(whole)

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
        start = self.start_of(last)
        return self.words[start : last + 1] if start >= 0 and self.word(start - 1) in _BEFORE_OPERAND else ()

    def start_of(self, last: int) -> int:
        """Return where the operand begins that ends at a place; -1 where that is not certain."""
        at = last
        while at > 1 and self.words[at].kind is Kind.LITERAL and self.word(at - 1) == ".":
            at -= 2
        if self.word(at) == ")":
            depth = 0
            for start in range(at, -1, -1):
                depth += (self.word(start) in (")", "]")) - (self.word(start) in ("(", "["))
                if not depth:
                    return start - (start > 0 and self.words[start - 1].kind is Kind.FUNCTION)
        return at if at >= 0 and _is_short(self.words[at]) else -1

    def operand_behind(self, first: int) -> Words:
        """Return the operand that begins at a place, where it can be told; else nothing."""
        end = self.end_of(first)
        return self.words[first : end + 1] if self.word(end + 1) in _BEHIND_OPERAND else ()

    def end_of(self, first: int) -> int:
        """Return where the operand ends that begins at a place; -1 where that is not certain."""
        at = first
        if at < len(self.words) and self.words[at].kind is Kind.FUNCTION:
            at += 1
        if self.word(at) == "(":
            at = closing(self.words, at)
        elif at != first or at >= len(self.words) or not _is_short(self.words[at]):
            return -1
        while at >= 0 and self.word(at + 1) == "." and at + 2 < len(self.words):
            at += 2
        return at

    def are_texts(self, operands: Iterable[Words]) -> bool:
        """Return whether operands are known to be texts or NULL."""
        return all(_is_constant(each) or self.is_text(each) for each in operands)

    def is_text(self, operand: Words) -> bool:
        """Return whether an operand is known to be a text, if only a constant one."""
        return (self.type_of(operand) or "").startswith(_TEXT)

    def varies_as(self, types: tuple[str, ...], operand: Words) -> bool:
        """Return whether an operand is no constant, and its type is known to begin so."""
        return self.varies(operand) and (self.type_of(operand) or "").startswith(types)

    def varies(self, operand: Words) -> bool:
        """Return whether an operand reads a column: no constant is made of it."""
        return any(each.kind is Kind.COLUMN and each.name not in self.constants for each in operand)

    def type_of(self, operand: Words) -> str | None:
        """Return the type of an operand; None where it is not known."""
        if not operand or self.has_variables(operand):
            return None
        value = Scalar((operand[0]._replace(spaced=False), *operand[1:]))
        for each in self.node.inputs:
            if value.columns <= frozenset(each.columns):
                try:
                    return self.types_of(Project(each, (("value", value),)))[0].type
                except (UserError, Unsupported):
                    return None
        return None

    def has_variables(self, operand: Words) -> bool:
        """Return whether an operand may read a variable of a lambda function around it.

        By itself it would read a column of that name.
        """
        around = Counter(_variables(self.words)) - Counter(_variables(operand))
        return any(each.kind is Kind.LITERAL and _folded(each) in around for each in operand)


def _is_short(word: Word) -> bool:
    """Return whether a word is a column, or a text as it is written."""
    return word.kind is Kind.COLUMN or (word.kind is Kind.LITERAL and is_string(word.text))


def _is_constant(operand: Words) -> bool:
    """Return whether an operand is a text as it is written, or NULL."""
    if len(operand) != 1 or operand[0].kind is not Kind.LITERAL:
        return False
    return is_string(operand[0].text) or operand[0].text.upper() == "NULL"


def _variables(scalar: Words) -> Iterator[str]:
    """Yield the variables that lambda functions in a scalar declare."""
    for at, word in enumerate(scalar):
        if word.kind is Kind.OPERATOR and word.name == "->":
            first = at - 1
            while first > 0 and scalar[at - 1].text == ")" and scalar[first].text != "(":
                first -= 1
            yield from (_folded(each) for each in scalar[first:at] if each.kind is Kind.LITERAL)


def _folded(word: Word) -> str:
    return word.text.strip("`").lower()
