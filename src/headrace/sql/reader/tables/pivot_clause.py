"""Reading `(agg [AS name], … FOR column IN (value [AS name], …))`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from headrace.sql.reader.context import Context
from headrace.sql.reader.names.resolve import lexemes_of, resolved
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope, Visible
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, split_alias, unquoted
from headrace.sql.reader.select.aggregates import has_aggregate
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.query_shape import Extra, Range
from headrace.sql.reader.syntax.tokens import Kind, Token, words


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant.

    Args:
        kind: `null`, `integer`, `string`, `boolean` or `date`.
        sql: Its SQL.
        shown: How Spark shows it in a name.
    """

    kind: str
    sql: str
    shown: str


@dataclass(frozen=True, slots=True)
class Value:
    """One element of IN.

    Args:
        name: What its columns are called.
        literals: Its constants, one for each pivoted column.
    """

    name: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause as read.

    Args:
        aggregates: The aggregates, names resolved, each with its alias.
        columns: The pivoted columns.
        values: The elements of IN.
    """

    aggregates: tuple[tuple[Lexemes, str | None], ...]
    columns: tuple[Visible, ...]
    values: tuple[Value, ...]


def read_clause(context: Context, scope: Scope, extra: Extra) -> Clause | None:
    """Read the clause; None where something in it is of another form.

    Args:
        context: The text.
        scope: The columns that are pivoted.
        extra: Where the clause stands.
    """
    start, end = extra.range
    tokens = context.cursor.tokens
    first = _ranges(context.cursor, start, end, lambda c: c.word == "FOR")[0][1]
    at = first + 1
    if first >= end or at + 3 >= end:
        return None
    names, at = _names(tokens, at)
    columns = [_column(scope, name) for name in names]
    if [t.word for t in tokens[at : at + 2]] != ["IN", "("] or tokens[end - 1].text != ")" or not names:
        return None
    ranges = _ranges(context.cursor, at + 2, end - 1, _comma)
    values = [_value(tokens[a:b], len(names)) for a, b in ranges]
    aggregates = [_aggregate(context, scope, each) for each in _ranges(context.cursor, start, first, _comma)]
    if None in columns or None in values or None in aggregates:
        return None
    found = tuple(value for value in values if value is not None)
    if len({tuple((x.kind, x.shown) for x in value.literals) for value in found}) < len(found):
        return None
    return Clause(
        tuple(each for each in aggregates if each is not None), tuple(c for c in columns if c is not None), found
    )


def _comma(cursor: Cursor) -> bool:
    return cursor.word == ","


def _ranges(cursor: Cursor, start: int, end: int, stop: Callable[[Cursor], bool]) -> list[Range]:
    """Return the parts between tokens at which something holds, outside of brackets."""
    found: list[Range] = []
    cursor.at = start
    while cursor.at <= end:
        begin = cursor.at
        cursor.skip_until(stop)
        found.append((begin, min(cursor.at, end)))
        cursor.at += 1
    return found


def _names(tokens: tuple[Token, ...], at: int) -> tuple[list[str], int]:
    """Return a name, or names in brackets, and what follows."""
    if tokens[at].is_name:
        return [tokens[at].name], at + 1
    if tokens[at].text != "(":
        return [], at
    closing = next((i for i in range(at, len(tokens)) if tokens[i].text == ")"), at)
    inside = tokens[at + 1 : closing]
    fine = all(t.is_name for t in inside[::2]) and all(t.text == "," for t in inside[1::2])
    return ([t.name for t in inside[::2]] if fine else []), closing + 1


def _column(scope: Scope, name: str) -> Visible | None:
    try:
        found = scope.resolve((name,))
    except AmbiguousNameError:
        return None
    return found.column if found is not None else None


def _aggregate(context: Context, scope: Scope, within: Range) -> tuple[Lexemes, str | None] | None:
    lexemes, alias = split_alias(lexemes_of(context, within))
    known = resolved(context, lexemes, scope)
    unknown = len(alias) > 1 or any(lexeme.role in (Role.NAME, Role.SUBQUERY, Role.WINDOW) for lexeme in known)
    called = {lexeme.parts[0] for lexeme in known if lexeme.role is Role.CALL}
    if unknown or called & _CHOOSING or not has_aggregate(known):
        return None
    return known, unquoted(alias[0].text) if alias else None


# Spark makes other calls of them for PIVOT
_CHOOSING = words(
    """
    any_value first first_value last last_value listagg max_by min_by mode percentile_cont percentile_disc string_agg
    try_avg try_sum
    """
)


def _value(tokens: tuple[Token, ...], width: int) -> Value | None:
    """Return `literal [AS name]` or `(literal, …) [AS name]`."""
    rest, name = tokens, None
    if len(tokens) > 1 and tokens[-1].is_name and _literal(tokens) is None:
        name, rest = tokens[-1].name, tokens[:-1]
        rest = rest[:-1] if rest[-1].word == "AS" else rest
    row = [rest]
    if rest and rest[0].text == "(" and rest[-1].text == ")":
        row = [()]
        for token in rest[1:-1]:
            row = [*row, ()] if token.text == "," else [*row[:-1], (*row[-1], token)]
    literals = tuple(each for part in row if (each := _literal(part)) is not None)
    if len(literals) != len(row) or len(row) != width:
        return None
    shown = literals[0].shown if len(row) == 1 else "{" + ", ".join(each.shown for each in literals) + "}"
    return Value(name or shown, literals)


_PLAIN_STRING = re.compile(r"'[^'\\]*'|\"[^\"\\]*\"")
_DATE = re.compile(r"'\d{4}-\d{2}-\d{2}'")


def _literal(tokens: tuple[Token, ...]) -> Literal | None:
    """Return a constant of a plain kind; None for anything else."""
    texts = [token.text for token in tokens]
    if len(tokens) == 1 and tokens[0].word in ("NULL", "TRUE", "FALSE") and tokens[0].kind is Kind.WORD:
        word = tokens[0].word.lower()
        return Literal("null" if word == "null" else "boolean", word, word)
    if len(tokens) == 1 and tokens[0].kind is Kind.STRING and _PLAIN_STRING.fullmatch(texts[0]):
        return Literal("string", texts[0], texts[0][1:-1])
    if len(tokens) == 2 and tokens[0].word == "DATE" and _DATE.fullmatch(texts[1]):
        return Literal("date", " ".join(texts), texts[1][1:-1])
    digits = texts[-1] if texts and (len(texts) == 1 or texts[:-1] == ["-"]) else ""
    if not re.fullmatch(r"0|[1-9]\d{0,17}", digits) or texts == ["-", "0"]:
        return None
    return Literal("integer", "".join(texts), "".join(texts))
