"""Scalars: SQL expressions with extracted facts.

Relations are modelled, scalars are not: a scalar stays the SQL the user wrote (Spark dialect, column references
reduced to back-quoted names of the input relation), next to the facts the algebra needs about it. Whatever is done to
one here, renaming its columns, splitting it at its ANDs, is done to the words that the reader cut, so that no parser
can change its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from headrace.algebra.facts import Call, Constant, Equality, Facts, Form, Named, facts_of, is_operand
from headrace.algebra.types import in_sql
from headrace.algebra.words import (
    CLOSING,
    OPENING,
    Kind,
    Word,
    Words,
    bracketed,
    column_word,
    function_word,
    operator,
    render,
    spaced_as,
    template,
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar expression over the columns of one relation.

    Two are equal when they are written the same.

    Args:
        words: Its words; every column reference is one name of the input relation.
        deterministic: False when two evaluations over the same row may differ.

    Attributes:
        sql: The expression in Spark SQL.
        columns: The input columns it reads.
    """

    words: Words = field(compare=False, repr=False)
    sql: str = field(init=False)
    columns: frozenset[str] = field(init=False)
    deterministic: bool = True
    _facts: Facts | None = field(default=None, init=False, compare=False, repr=False)
    _conjuncts: tuple[Scalar, ...] | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sql", render(self.words))
        names = frozenset(each.name for each in self.words if each.kind is Kind.COLUMN)
        object.__setattr__(self, "columns", names)

    def __str__(self) -> str:
        return self.sql

    @property
    def facts(self) -> Facts:
        """Return the facts that follow from the scalar's text."""
        if self._facts is None:  # most scalars are renamed or moved before anybody asks
            object.__setattr__(self, "_facts", facts_of(self.words))
        assert self._facts is not None
        return self._facts

    @property
    def form(self) -> Form:
        """Return a column, a literal, an equality …, if it is one of these."""
        return self.facts.form


@lru_cache(maxsize=4096)
def column(name: str) -> Scalar:
    """Return the scalar that reads one column."""
    return Scalar((column_word(name),))


def literal(value: int) -> Scalar:
    """Return an integer literal."""
    return compose(str(value))


def text_literal(value: str) -> Scalar:
    """Return a literal of a text."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return Scalar((Word(Kind.LITERAL, f"'{escaped}'"),))


def call_of(function: str, *arguments: Scalar) -> Scalar:
    """Return a call of a function."""
    inside: list[Word] = []
    for each in arguments:
        inside += [operator(",", spaced=False), *_spaced(each.words)] if inside else each.words
    whole = (function_word(function), OPENING, *inside, CLOSING)
    return Scalar(whole, all(each.deterministic for each in arguments))


def cast(value: Scalar, type_: str) -> Scalar:
    """Return a value as one of a type."""
    words = (function_word("CAST"), OPENING, *_operand(value), operator("AS"), Word(Kind.LITERAL, in_sql(type_), True))
    return Scalar((*words, CLOSING), value.deterministic)


def compose(text: str, **parts: Scalar) -> Scalar:
    """Build a scalar from others.

    Args:
        text: SQL with `{name}` where a part goes; parts that are not atomic arrive in parentheses.
        parts: The scalars to put there.
    """
    words: list[Word] = []
    for each in template(text):
        words += spaced_as(_operand(parts[each.name]), each) if each.kind is Kind.HOLE else (each,)
    return Scalar(tuple(words), all(part.deterministic for part in parts.values()))


def equals(left: Scalar, right: Scalar, *, null_safe: bool = False) -> Scalar:
    """Return the condition that two values are equal."""
    return compose("{a} <=> {b}" if null_safe else "{a} = {b}", a=left, b=right)


def all_of(conditions: Iterable[Scalar]) -> Scalar | None:
    """Return the conjunction of conditions, evaluated from left to right; None for no condition."""
    parts = tuple(conditions)
    if len(parts) < 2:
        return parts[0] if parts else None
    # an OR binds weaker than AND
    plain = not any(part.facts.disjunctive for part in parts)
    found = _joined("AND", parts, [bracketed(p.words) if p.facts.disjunctive else p.words for p in parts])
    if plain and found.deterministic:  # what it consists of is known, with facts that were found there already
        object.__setattr__(found, "_conjuncts", tuple(each for part in parts for each in conjuncts(part)))
    return found


def any_of(conditions: Iterable[Scalar]) -> Scalar:
    """Return the disjunction of conditions; FALSE for no condition."""
    parts = tuple(conditions)
    if len(parts) < 2:
        return parts[0] if parts else FALSE
    return _joined("OR", parts, [_operand(part) for part in parts])


def _joined(word: str, parts: Iterable[Scalar], operands: Iterable[Words]) -> Scalar:
    words: list[Word] = []
    for each in operands:
        words += (operator(word), *_spaced(each)) if words else each
    return Scalar(tuple(words), all(part.deterministic for part in parts))


def _spaced(words: Words) -> Words:
    return words if words[0].spaced else (words[0]._replace(spaced=True), *words[1:])


def _operand(scalar: Scalar) -> Words:
    """Return the words as an operand: in parentheses unless they are atomic."""
    return scalar.words if is_operand(scalar.words) else bracketed(scalar.words)


def as_column(scalar: Scalar) -> str | None:
    """Return the name of the column that a scalar is, if it is nothing but a column."""
    words = scalar.words
    return words[0].name if len(words) == 1 and words[0].kind is Kind.COLUMN else None


def equated(condition: Scalar) -> tuple[str, str, bool] | None:
    """Return the columns that a condition says are equal, and whether NULL equals NULL."""
    form = condition.form
    if isinstance(form, Equality) and isinstance(form.left, Named) and isinstance(form.right, Named):
        return form.left.name, form.right.name, form.null_safe
    return None


def pinned(condition: Scalar) -> str | None:
    """Return the column that a condition says equals a literal."""
    match condition.form:
        case Equality(Named(name), Constant()) | Equality(Constant(), Named(name)):
            return name
    return None


def called_with_column(scalar: Scalar, function: str) -> str | None:
    """Return the column that a function is called with.

    None where the scalar is something else, or the function is called with more than a column.

    Args:
        scalar: The scalar.
        function: The function's name in lower case.
    """
    form = scalar.form
    if isinstance(form, Call) and form.function == function and len(form.arguments) == 1:
        (argument,) = form.arguments
        return argument.name if isinstance(argument, Named) else None
    return None


def has_word(scalar: Scalar, word: str) -> bool:
    """Return whether a word, in lower case, occurs in a scalar, if only as a part of one."""
    return any(word in each.text.lower() for each in scalar.words)


def substitute(scalar: Scalar, replacements: Mapping[str, Scalar]) -> Scalar:
    """Replace columns by other scalars.

    Args:
        scalar: The expression.
        replacements: What each column becomes; columns not named stay.
    """
    used = {name: replacements[name] for name in scalar.columns & replacements.keys()}
    if not used:
        return scalar
    operands = {name: _operand(new) for name, new in used.items()}
    words: list[Word] = []
    for each in scalar.words:
        new = operands.get(each.name) if each.kind is Kind.COLUMN else None
        words += (each,) if new is None else spaced_as(new, each)
    return Scalar(tuple(words), scalar.deterministic and all(new.deterministic for new in used.values()))


def replace_columns(scalar: Scalar, texts: Mapping[str, str]) -> str:
    """Return the scalar's SQL with columns replaced.

    Args:
        scalar: The scalar.
        texts: SQL by the name of the column it replaces; other columns stay.
    """
    return render([_replaced(each, texts) for each in scalar.words])


def _replaced(word: Word, texts: Mapping[str, str]) -> Word:
    text = texts.get(word.name) if word.kind is Kind.COLUMN else None
    return word if text is None else word._replace(text=text)


def uses(scalar: Scalar, name: str) -> int:
    """Return how often a scalar reads a column."""
    return sum(each.kind is Kind.COLUMN and each.name == name for each in scalar.words)


def conjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """Split a condition at its outermost ANDs; the order is kept."""
    if condition._conjuncts is None:  # kept with their facts: of a large join many passes ask
        parts = condition.facts.parts
        found = (condition,) if parts == (condition.words,) else tuple(_part(condition, part) for part in parts)
        object.__setattr__(condition, "_conjuncts", found)
    assert condition._conjuncts is not None
    return condition._conjuncts


def disjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """Split a condition at its outermost ORs; the order is kept."""
    branches = condition.facts.branches
    return (condition,) if len(branches) == 1 else tuple(_part(condition, branch) for branch in branches)


def _part(whole: Scalar, words: Words) -> Scalar:
    return Scalar(words, whole.deterministic)


TRUE, FALSE, NULL = compose("true"), compose("false"), compose("NULL")
