"""Facts about a scalar that follow from its text.

Nothing is claimed that is not certain. From a scalar that is `Other` nothing follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from headrace.algebra.words import Kind, Word, Words, closing, unbracketed


class Type(StrEnum):
    """The type of a constant, where its spelling tells."""

    INTEGER = "integer"
    TEXT = "text"
    DATE = "date"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Other:
    """Any other scalar; nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Named:
    """A column and nothing else."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    type: Type


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`, or `left <=> right` when `null_safe`.

    Where it is not, a NULL on either side rejects the row.
    """

    left: Named | Constant | Other
    right: Named | Constant | Other
    null_safe: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    function: str
    arguments: tuple[Named | Constant | Other, ...]


Form = Named | Constant | Equality | Call | Other

_OTHER = Other()


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a scalar.

    Args:
        form: A column, a literal, a call, or an equality, which may stand in brackets.
        parts: Its conjuncts, all of which have to be true; itself where it is no conjunction.
        branches: Its disjuncts, of which one has to be true; itself where it is no disjunction.
        disjunctive: Whether OR occurs in it, at any depth.
        negative: Whether NOT or `!` occurs in it, at any depth.
        equates: Whether `=` or `<=>` occurs in it, at any depth.
        calls: Whether a function is called in it.
        patterns: How many times a text is compared with a pattern in it.
    """

    form: Form
    parts: tuple[Words, ...]
    branches: tuple[Words, ...]
    disjunctive: bool
    negative: bool
    equates: bool
    calls: bool
    patterns: int


def facts_of(words: Words) -> Facts:
    """Tell the facts of a scalar."""
    operators = [each.name for each in words if each.kind is Kind.OPERATOR]
    return Facts(
        form=_form(words),
        parts=tuple(_conjuncts(words)),
        branches=split_at(unbracketed(words), "OR"),
        disjunctive="OR" in operators,
        negative=not _NEGATIONS.isdisjoint(operators),
        equates=not _EQUALS.isdisjoint(operators),
        calls=any(each.kind is Kind.FUNCTION for each in words),
        patterns=sum(each in _PATTERNS for each in operators),
    )


_EQUALS = frozenset({"=", "==", "<=>"})
_NEGATIONS = frozenset({"NOT", "!"})
_PATTERNS = frozenset({"LIKE", "ILIKE", "RLIKE", "REGEXP"})


def _form(words: Words) -> Form:
    simple = _simple(words)
    if simple != _OTHER or not words:
        return simple
    if words[0].kind is Kind.FUNCTION and closing(words, 1) == len(words) - 1:
        arguments = split_at(words[2:-1], ",") if len(words) > 3 else ()
        return Call(words[0].name, tuple(map(_simple, arguments)))
    return _equality(unbracketed(words))


def _equality(words: Words) -> Equality | Other:
    at = next((i for i, each in enumerate(words) if each.kind is Kind.OPERATOR), None)
    if at is None or words[at].name not in _EQUALS:
        return _OTHER
    left, right = _simple(words[:at]), _simple(words[at + 1 :])
    return _OTHER if _OTHER in (left, right) else Equality(left, right, words[at].name == "<=>")


def _simple(words: Words) -> Named | Constant | Other:
    """Return a column or a literal; a literal of a type is two words."""
    if not 1 <= len(words) <= 2:
        return _OTHER
    last = words[-1]
    if len(words) == 2:
        day = words[0].kind is last.kind is Kind.LITERAL and words[0].text.upper() == "DATE"
        return Constant(Type.DATE) if day and _is_text(last) and len(last.text) == _LENGTH_OF_DATE else _OTHER
    if last.kind is Kind.COLUMN:
        return Named(last.name)
    return Constant(_type(last)) if last.kind is Kind.LITERAL else _OTHER


def _type(literal: Word) -> Type:
    if _is_text(literal):
        return Type.TEXT
    return Type.INTEGER if literal.text.isdecimal() and len(literal.text) < _DIGITS_OF_INT else Type.UNKNOWN


_DIGITS_OF_INT = 10
"""A number of so many digits may be a bigint."""


_LENGTH_OF_DATE = len("'2024-02-29'")


def _is_text(literal: Word) -> bool:
    """Return whether it is a text without escapes; nothing is claimed of others."""
    inside = literal.text[1:-1]
    return literal.text == f"'{inside}'" and "'" not in inside and "\\" not in inside


def _conjuncts(words: Words) -> Iterator[Words]:
    inner = unbracketed(words)
    parts = (inner,) if len(split_at(inner, "OR")) > 1 else split_at(inner, "AND")
    if len(parts) == 1:
        yield inner
        return
    for part in parts:
        yield from _conjuncts(part)


def split_at(words: Words, at: str) -> tuple[Words, ...]:
    """Cut words at an operator outside of brackets, CASE and BETWEEN … AND.

    Args:
        words: The words.
        at: The operator's name.
    """
    found, start, depth, betweens = [], 0, 0, 0
    for i, each in enumerate(words):
        if each.kind is not Kind.OPERATOR:
            continue
        if each.name in _OPENS:
            depth += 1
        elif each.name in _CLOSES:
            depth -= 1
        elif not depth and each.name == "BETWEEN":
            betweens += 1
        elif not depth and each.name == "AND" and betweens:
            betweens -= 1
        elif not depth and each.name == at:
            found.append(words[start:i])
            start = i + 1
    return (*found, words[start:])


_OPENS = frozenset({"(", "[", "CASE"})
_CLOSES = frozenset({")", "]", "END"})


def is_operand(words: Words) -> bool:
    """Return whether a scalar can stand as an operand: a word, a path, a call, or in brackets."""
    if not words:
        return False
    first = words[0]
    if first.kind is Kind.FUNCTION:
        return closing(words, 1) == len(words) - 1
    if first.text == "(" and first.kind is Kind.OPERATOR:
        return closing(words, 0) == len(words) - 1
    path = words[1::2], words[2::2]
    return (
        first.kind is not Kind.OPERATOR
        and len(path[0]) == len(path[1])
        and all(each.text == "." for each in path[0])
        and all(each.kind is Kind.LITERAL for each in path[1])
    )
