"""Query text to its shape.

Only structure is parsed: which clauses, FROM items and nested queries there are and where. Scalars are left as ranges
of tokens, because they are handed to Spark as the user wrote them. The reading is generous: what Spark would reject may
pass here, since Spark itself always judges the query too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from headrace.errors import Unsupported, UserError, place_at
from headrace.sql.reader.syntax import from_clause
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.query_shape import (
    SPANS,
    Body,
    Cte,
    Extra,
    From,
    Group,
    Item,
    Query,
    QueryItem,
    Range,
    Select,
    SetOperation,
    TableBody,
)
from headrace.sql.reader.syntax.tokens import Kind, counts, words

_SET_OPERATORS = {
    "UNION": "UNION",
    "INTERSECT": "INTERSECT",
    "EXCEPT": "EXCEPT",
    "MINUS": "EXCEPT",
    "SETMINUS": "EXCEPT",
}
_TIGHT = frozenset({"INTERSECT"})
_JOIN_KINDS = words("CROSS INNER LEFT RIGHT FULL OUTER SEMI ANTI NATURAL")


class Parser(Cursor):
    """A cursor that parses the queries nested in what it walks over."""

    def parse_query(self) -> Query:
        """Parse a query that begins here, up to its closing bracket or the end."""
        at = self.at
        ctes, recursive = _with(self)
        body = _body(self)
        extras, pipes = _organization(self)
        return Query(ctes, recursive, body, extras, at, pipes)


def parse(sql: str) -> tuple[Query, Cursor]:
    """Parse one query; the cursor gives access to its tokens.

    Raises:
        UserError: `SYNTAX_ERROR` with the place.
        Unsupported: `QUERY_TOO_DEEP`.
    """
    cursor = Parser(sql)
    try:
        query = cursor.parse_query()
    except RecursionError as error:
        raise too_deep(cursor) from error
    cursor.take(";")
    if not cursor.done:
        raise cursor.error("The query should end here", _QUALIFY if cursor.peek(-1).word == "QUALIFY" else None)
    _refuse_quantified(cursor)
    return query, cursor


def _refuse_quantified(cursor: Cursor) -> None:
    """Refuse `= ANY (SELECT …)`, which Spark reports as a surprising bracket only."""
    tokens = cursor.tokens
    for at in range(len(tokens) - 3):
        if tokens[at + 1].word in _QUANTIFIERS and tokens[at].text in _COMPARISONS:
            cursor.at = at + 2
            if cursor.opens_query():
                place = place_at(cursor.sql, tokens[at + 1].start)
                message = f"Spark compares with no {tokens[at + 1].word} of a query."
                raise UserError("SYNTAX_ERROR", message, place=place, hint=_IN)


_QUANTIFIERS = words("ANY SOME ALL")
_COMPARISONS = frozenset({"=", "==", "<>", "!=", "<", ">", "<=", ">="})
_IN = "IN says the same as = ANY, and NOT IN as <> ALL; write other comparisons with EXISTS."

_QUALIFY = "Spark has no QUALIFY: put the window function into a query in FROM, and its condition into WHERE."


def too_deep(cursor: Cursor) -> Unsupported:
    """Return the error for a query nested too deep, with the place reached."""
    return Unsupported(
        "QUERY_TOO_DEEP",
        "The query is nested too deep to be read.",
        place=place_at(cursor.sql, cursor.offset()),
        hint="Split it: into views, or into stream tables that read one another.",
    )


def subqueries(cursor: Cursor, within: Range) -> Iterator[Query]:
    """Yield the queries in parentheses within a range of scalars, outermost only."""
    cursor.at = within[0]
    while cursor.at < within[1]:
        if cursor.opens_query():
            cursor.at += 1
            query = cursor.parse_query()
            cursor.expect(")")
            resume = cursor.at
            yield query
            cursor.at = resume
        else:
            cursor.at += 1


def _with(cursor: Cursor) -> tuple[tuple[Cte, ...], bool]:
    if not cursor.take("WITH"):
        return (), False
    recursive = cursor.take("RECURSIVE")
    ctes: list[Cte] = []
    while True:
        at = cursor.at
        name = cursor.name("the name of a common table expression")
        columns = from_clause.names_in_brackets(cursor) if cursor.word == "(" else ()
        levels = _levels(cursor)
        cursor.skip_until(lambda c: c.word in ("AS", "("))
        cursor.take("AS")
        cursor.expect("(")
        ctes.append(Cte(name, columns, cursor.parse_query(), at, levels))
        cursor.expect(")")
        if not cursor.take(","):
            return tuple(ctes), recursive


def _levels(cursor: Cursor) -> int | None:
    """Return `MAX RECURSION LEVEL n`."""
    if not cursor.take("MAX", "RECURSION", "LEVEL"):
        return None
    text = cursor.peek().text
    return int(text) if counts(text) else None


def _body(cursor: Cursor, loosest: frozenset[str] = frozenset(_SET_OPERATORS)) -> Body:
    """Parse operands of set operators from left to right; INTERSECT binds most tightly."""
    left = _primary(cursor)
    while cursor.word in loosest:
        at = cursor.at
        operator = _SET_OPERATORS[cursor.word]
        cursor.at += 1
        keep = cursor.take("ALL")
        cursor.take("DISTINCT")
        by_name = cursor.take("BY", "NAME")
        right = _primary(cursor) if operator == "INTERSECT" else _body(cursor, _TIGHT)
        left = SetOperation(operator, keep, by_name, left, right, at)
    return left


def _primary(cursor: Cursor) -> Body:
    at = cursor.at
    if cursor.take("("):
        nested = cursor.parse_query()
        cursor.expect(")")
        return nested
    if cursor.word == "SELECT":
        return _select(cursor, None)
    if cursor.word == "VALUES":
        return from_clause.values(cursor)
    if cursor.take("TABLE"):
        return TableBody(from_clause.table(cursor), at)
    if cursor.take("FROM"):
        source = from_clause.parse_from(cursor)
        if cursor.word == "SELECT":
            return _select(cursor, source)
        return Select((), at, source=source, extras=(Extra("FROM without SELECT", at, (at, at)),))
    raise cursor.error("A query was expected here", "A query begins with SELECT, WITH, VALUES or TABLE.")


def _select(cursor: Cursor, source: From | None) -> Select:
    at = cursor.at
    cursor.expect("SELECT")
    distinct = cursor.take("DISTINCT")
    if not distinct and cursor.word == "ALL" and cursor.peek(1).text not in (",", "."):
        cursor.at += 1
    extras: list[Extra] = []
    if cursor.word == "TRANSFORM" and _transform_script(cursor):
        extras.append(Extra("TRANSFORM", cursor.at, (cursor.at, cursor.at)))
    items = _comma_separated(cursor)
    if cursor.take("FROM"):
        source = from_clause.parse_from(cursor)
    extras.extend(_lateral_views(cursor))
    where = _clause(cursor, "WHERE")
    group = _group(cursor) if cursor.take("GROUP", "BY") else None
    having = _clause(cursor, "HAVING")
    return Select(items, at, distinct, source, where, group, having, _windows(cursor), tuple(extras))


def _windows(cursor: Cursor) -> tuple[tuple[str, Range], ...]:
    """Return `WINDOW name AS (…), …`."""
    found: list[tuple[str, Range]] = []
    if cursor.word != "WINDOW" or not cursor.at_clause():
        return ()
    while cursor.word == "WINDOW" or (found and cursor.word == ","):
        cursor.at += 1
        name = cursor.name("the name of a window")
        cursor.expect("AS")
        bare = cursor.word != "("
        found.append((name, cursor.skip_until(_named_window_ends) if bare else cursor.skip_group()))
    return tuple(found)


def _named_window_ends(cursor: Cursor) -> bool:
    return cursor.word == "," or cursor.at_clause()


def _transform_script(cursor: Cursor) -> bool:
    """Return `TRANSFORM (…) USING 'script'`, not the function `transform(array, lambda)`."""
    if cursor.peek(1).word != "(":
        return False
    resume = cursor.at
    cursor.at += 1
    cursor.skip_group()
    script = cursor.word in ("USING", "ROW")
    cursor.at = resume
    return script


def _clause(cursor: Cursor, word: str) -> Range | None:
    """Return the range after a keyword; refuse WHERE without a condition.

    Spark takes such a WHERE for an alias, which nobody means.
    """
    if not cursor.take(word):
        return None
    start, end = cursor.skip_until(Cursor.at_clause)
    if start == end:
        raise cursor.error(f"A condition was expected after {word}")
    return start, end


def _comma_separated(cursor: Cursor) -> tuple[Range, ...]:
    items: list[Range] = []
    while True:
        start, end = cursor.skip_until(lambda c: c.word == "," or c.at_clause())
        if start == end:
            raise cursor.error("An expression was expected here")
        items.append((start, end))
        if not cursor.take(","):
            return tuple(items)


def _lateral_views(cursor: Cursor) -> Iterator[Extra]:
    while cursor.sees("LATERAL", "VIEW"):
        at = cursor.at
        cursor.at += 2
        yield Extra("LATERAL VIEW", at, cursor.skip_until(Cursor.at_clause))


def _group(cursor: Cursor) -> Group:
    at = cursor.at - 2
    extras: list[Extra] = []
    if cursor.word == "ALL" and cursor.peek(1).text not in (",", "."):
        cursor.at += 1
        return Group((), True, (), at)
    items: list[Range] = []
    while True:
        begin = cursor.at
        if cursor.word in ("ROLLUP", "CUBE", "GROUPING") and cursor.peek(1).word in ("(", "SETS"):
            construct = "GROUPING SETS" if cursor.word == "GROUPING" else cursor.word
            within = cursor.skip_until(lambda c: c.word == "," or c.at_clause())
            extras.append(Extra(construct, begin, within))
        else:
            items.append(cursor.skip_until(_group_item_ends))
        if not cursor.take(","):
            break
    if cursor.word in ("WITH", "GROUPING"):
        begin = cursor.at
        construct = "GROUPING SETS" if cursor.word == "GROUPING" else f"WITH {cursor.peek(1).word}"
        extras.append(Extra(construct, begin, cursor.skip_until(Cursor.at_clause)))
    return Group(tuple(items), False, tuple(extras), at)


def _group_item_ends(cursor: Cursor) -> bool:
    return (
        cursor.word == ","
        or cursor.at_clause()
        or cursor.sees("WITH", "ROLLUP")
        or cursor.sees("WITH", "CUBE")
        or cursor.sees("GROUPING", "SETS")
    )


def _organization(cursor: Cursor) -> tuple[tuple[Extra, ...], tuple[Item, ...]]:
    extras: list[Extra] = []
    pipes: list[Item] = []
    while True:
        at = cursor.at
        if cursor.word in ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE") and cursor.peek(1).word == "BY":
            cursor.at += 2
            name = f"{cursor.peek(-2).word} BY"
            within = cursor.skip_until(Cursor.at_clause)
            extras.append(Extra(name, at, within, harmless=not (_calls_span(cursor, within) or _cuts(cursor, within))))
        elif cursor.sees("LIMIT", "ALL"):
            cursor.at += 2
        elif cursor.word in ("LIMIT", "OFFSET", "WINDOW"):
            cursor.at += 1
            harmless = cursor.peek(-1).word == "WINDOW"
            extras.append(Extra(cursor.peek(-1).word, at, cursor.skip_until(Cursor.at_clause), harmless))
        elif cursor.word == "|>":
            cursor.at += 1
            extras.extend(_pipe(cursor, at, pipes))
        else:
            return tuple(extras), tuple(pipes)


def _calls_span(cursor: Cursor, within: Range) -> bool:
    """Return whether a function is called there for whose sake rows are left out."""
    tokens = cursor.tokens[within[0] : within[1]]
    return any(each.word.lower() in SPANS and after.text == "(" for each, after in pairwise(tokens))


def _cuts(cursor: Cursor, within: Range) -> bool:
    """Return whether a LIMIT or OFFSET was taken for a column there, as behind one called `not`."""
    depth = 0
    for each, after in pairwise(cursor.tokens[within[0] : within[1]]):
        depth += (each.text in ("(", "[")) - (each.text in (")", "]"))
        if not depth and each.word in ("LIMIT", "OFFSET") and (after.kind is Kind.NUMBER or after.text == "("):
            return True
    return False


def _pipe(cursor: Cursor, at: int, pipes: list[Item]) -> Iterator[Extra]:
    """Parse a pipe operator, always refused, for the tables it reads.

    What is yielded leaves out the items that are added to `pipes`.
    """
    start = cursor.at
    if cursor.word in _SET_OPERATORS:
        cursor.at += 1
        if not cursor.take("ALL"):
            cursor.take("DISTINCT")
        cursor.take("BY", "NAME")
        pipes.append(QueryItem(Query((), False, _primary(cursor), (), cursor.at), None, cursor.at))
        start = cursor.at
    while not cursor.done and cursor.word not in ("|>", ")", ";"):
        if cursor.word == "JOIN" and all(each.word in _JOIN_KINDS for each in cursor.tokens[start : cursor.at]):
            cursor.at += 1
            pipes.append(from_clause.item(cursor))
            start = cursor.at
        elif cursor.word == "(":
            cursor.skip_group()
        else:
            cursor.at += 1
    yield Extra("pipe operator |>", at, (start, cursor.at))
