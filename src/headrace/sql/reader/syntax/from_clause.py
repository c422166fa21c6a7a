"""Parses FROM: tables, subqueries, table functions, inline rows and joins."""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import Unsupported, UserError, place_at
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.query_shape import (
    Alias,
    Extra,
    From,
    FunctionItem,
    GroupItem,
    Item,
    JoinStep,
    QueryItem,
    Range,
    TableItem,
    ValuesItem,
)
from headrace.sql.reader.syntax.tokens import Kind, words

_PIVOTS = ("PIVOT", "UNPIVOT")
_JOIN_WORDS = words("JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL")
_NO_ALIAS = _JOIN_WORDS | words(
    """
    ON USING LATERAL WHERE GROUP HAVING WINDOW ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET UNION INTERSECT EXCEPT
    MINUS SETMINUS PIVOT UNPIVOT TABLESAMPLE SELECT WITH AS
    """
)


def parse_from(cursor: Cursor) -> From:
    """Parse what follows FROM."""
    first = item(cursor)
    joins: list[JoinStep] = []
    while True:
        at = cursor.at
        if cursor.take(","):
            joins.append(_behind(cursor, JoinStep(",", item(cursor), None, (), False, at)))
        elif _at_join(cursor):
            joins.append(_join(cursor))
        else:
            return From(first, tuple(joins))


def _at_join(cursor: Cursor) -> bool:
    """Return whether a join begins here; `left(x, 2)` and a column `full` do not begin one."""
    if cursor.word == "JOIN":
        return True
    return cursor.word in _JOIN_WORDS and cursor.peek(1).word in _JOIN_WORDS | {"OUTER"}


def _join(cursor: Cursor) -> JoinStep:
    at = cursor.at
    natural = cursor.take("NATURAL")
    words: list[str] = []
    while not cursor.take("JOIN"):
        if cursor.word not in _JOIN_WORDS | {"OUTER"}:
            raise cursor.error("JOIN was expected here")
        if cursor.word != "OUTER":
            words.append(cursor.word)
        cursor.at += 1
    right = item(cursor)
    on: Range | None = None
    using: tuple[str, ...] = ()
    if cursor.take("ON"):
        on = cursor.skip_until(lambda c: c.word == "," or (c.after_operand() and _after_on(c)) or c.at_clause())
    elif cursor.take("USING"):
        using = names_in_brackets(cursor)
    return _behind(cursor, JoinStep(" ".join(words) or "INNER", right, on, using, natural, at))


def _behind(cursor: Cursor, step: JoinStep) -> JoinStep:
    """Return the join with PIVOT and UNPIVOT behind it.

    To Spark they mean all that is joined so far.
    """
    pivots = tuple(extra for extra in step.item.extras if extra.construct in _PIVOTS)
    others = tuple(extra for extra in step.item.extras if extra not in pivots)
    return replace(step, item=replace(step.item, extras=others), extras=pivots + _extensions(cursor))


def _after_on(cursor: Cursor) -> bool:
    return _at_join(cursor) or (cursor.word in _PIVOTS and cursor.peek(1).word in ("(", "INCLUDE", "EXCLUDE"))


def item(cursor: Cursor) -> Item:
    """Parse one FROM item with its alias."""
    at = cursor.at
    lateral = cursor.word == "LATERAL" and cursor.peek(1).word != "VIEW" and cursor.take("LATERAL")
    if cursor.word == "(":
        return _in_brackets(cursor, at, lateral)
    if cursor.word == "VALUES":
        return values(cursor)
    if cursor.peek().is_name:
        return _named(cursor, at)
    raise cursor.error("A table was expected here")


def _in_brackets(cursor: Cursor, at: int, lateral: bool) -> Item:
    if cursor.opens_query():
        resume = cursor.at
        try:
            cursor.at += 1
            query = cursor.parse_query()
            cursor.expect(")")
        except UserError:
            # `((SELECT …) a JOIN b)` opens like a query and is a group of joins; a second try tells
            if cursor.tokens[resume + 1].word != "(":
                raise
            cursor.at = resume
        else:
            extras = _extensions(cursor)
            return QueryItem(query, _alias(cursor), at, lateral, extras + _extensions(cursor))
    cursor.expect("(")
    source = parse_from(cursor)
    cursor.expect(")")
    extras = _extensions(cursor)
    return GroupItem(source, _alias(cursor), at, extras + _extensions(cursor))


def _named(cursor: Cursor, at: int) -> Item:
    start = cursor.at
    parts = dotted_name(cursor)
    if cursor.word == "(":
        name = ".".join(parts)
        arguments = cursor.skip_group()
        extras = _extensions(cursor)
        return FunctionItem(name, arguments, _alias(cursor), at, extras + _extensions(cursor))
    return _table(cursor, parts, (start, cursor.at))


def table(cursor: Cursor) -> TableItem:
    """Parse a table name with what may follow it."""
    start = cursor.at
    return _table(cursor, dotted_name(cursor), (start, cursor.at))


def _table(cursor: Cursor, parts: tuple[str, ...], name: Range) -> TableItem:
    extras = _time_travel(cursor) + _extensions(cursor)
    return TableItem(parts, name, _alias(cursor), extras + _extensions(cursor))


def dotted_name(cursor: Cursor) -> tuple[str, ...]:
    """Step over `a.b.c` and return its parts."""
    parts = [cursor.name("a table")]
    while cursor.take("."):
        parts.append(cursor.name("the next part of the name"))
    return tuple(parts)


def names_in_brackets(cursor: Cursor) -> tuple[str, ...]:
    """Step over `(a, b)` and return the names."""
    cursor.expect("(")
    names = [cursor.name("a column")]
    while cursor.take(","):
        names.append(cursor.name("a column"))
    cursor.expect(")")
    return tuple(names)


MOST_ROWS = 20_000
"""Rows of VALUES that are read."""


def values(cursor: Cursor) -> ValuesItem:
    """Parse `VALUES row, row …` with its alias.

    Raises:
        Unsupported: `QUERY_TOO_LARGE`.
    """
    at = cursor.at
    cursor.expect("VALUES")
    rows: list[Range] = []
    while True:
        if len(rows) == MOST_ROWS:
            message = f"VALUES has more than {MOST_ROWS} rows here, which Spark takes minutes to read."
            place = place_at(cursor.sql, cursor.offset())
            raise Unsupported("QUERY_TOO_LARGE", message, place=place, hint="Write them to a table, and read that.")
        rows.append(cursor.skip_until(lambda c: c.word == "," or _row_ends(c)))
        if not cursor.take(","):
            return ValuesItem(tuple(rows), _alias(cursor), at, _extensions(cursor))


def _row_ends(cursor: Cursor) -> bool:
    if not cursor.after_operand() or not cursor.peek().is_name:
        return False
    return cursor.at_clause() or cursor.word == "AS" or _at_join(cursor) or cursor.peek(-1).text == ")"


def _alias(cursor: Cursor) -> Alias | None:
    explicit = cursor.take("AS")
    token = cursor.peek()
    if not token.is_name or (not explicit and token.word in _NO_ALIAS):
        if explicit:
            raise cursor.error("An alias was expected here")
        return None
    cursor.at += 1
    columns = names_in_brackets(cursor) if cursor.word == "(" else ()
    return Alias(token.name, columns)


def _time_travel(cursor: Cursor) -> tuple[Extra, ...]:
    extras: list[Extra] = []
    at = cursor.at
    ahead = 1 if cursor.word == "FOR" else 0
    kind = cursor.peek(ahead).word
    known = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
    if kind in known and cursor.peek(ahead + 1).word == "AS" and cursor.peek(ahead + 2).word == "OF":
        cursor.at += ahead + 3
        name = "VERSION AS OF" if kind.endswith("VERSION") else "TIMESTAMP AS OF"
        extras.append(Extra(name, at, _value(cursor)))
    if cursor.word == "WITH" and cursor.peek(1).word == "(":
        at = cursor.at
        cursor.at += 1
        extras.append(Extra("table options", at, cursor.skip_group()))
    return tuple(extras)


def _value(cursor: Cursor) -> Range:
    """Return the value after AS OF: operands joined by arithmetic."""
    start = cursor.at
    if cursor.done:
        raise cursor.error("A version or a time was expected here")
    while True:
        while cursor.word in ("TIMESTAMP", "DATE", "INTERVAL", "-", "+"):
            cursor.at += 1
        if cursor.word != "(":
            cursor.at += 1
        while cursor.take("."):
            cursor.at += 1
        if cursor.word == "(":
            cursor.skip_group()
        if cursor.peek(-2).word == "INTERVAL":
            cursor.at += 1
        if cursor.done or cursor.word not in ("+", "-"):
            return start, cursor.at


def _extensions(cursor: Cursor) -> tuple[Extra, ...]:
    extras: list[Extra] = []
    while cursor.word in ("TABLESAMPLE", "PIVOT", "UNPIVOT") and cursor.peek().kind is Kind.WORD:
        at = cursor.at
        construct = cursor.word
        before = cursor.at + 1
        cursor.skip_until(lambda c: c.word == "(")
        if cursor.word != "(" or cursor.at > before + 2:
            cursor.at = at
            break
        within = cursor.skip_group()
        if cursor.take("REPEATABLE"):
            cursor.skip_group()
        extras.append(Extra(construct, at, within))
    return tuple(extras)
