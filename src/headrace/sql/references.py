"""Finds and replaces the tables that a query names, at their exact places.

A FULL refresh runs the user's own text with only the table names replaced, so whatever Spark accepts runs as it was
written: comments, hints, spelling and all. Names of common table expressions are no tables, by Spark's scoping: a
WITH shadows tables in its query and in the expressions after it, inner ones win, and an expression does not see itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from headrace.errors import Unsupported, place_at
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.from_clause import dotted_name
from headrace.sql.reader.syntax.parser import parse, subqueries, too_deep
from headrace.sql.reader.syntax.query_shape import (
    Body,
    Extra,
    From,
    FunctionItem,
    GroupItem,
    Item,
    Query,
    QueryItem,
    Range,
    Select,
    SetOperation,
    TableBody,
    TableItem,
    ValuesItem,
    branches,
)

_TIME_TRAVEL = frozenset({"VERSION AS OF", "TIMESTAMP AS OF", "TABLESAMPLE", "table options"})

Shadow = frozenset[str]


@dataclass(frozen=True, slots=True)
class Reference:
    """A table named in a query.

    Args:
        parts: The name as written, split and unquoted.
        start: Offset of its first character.
        end: Offset after its last character; covers the whole dotted name and nothing else.
        has_alias: Whether the query gives it an alias.
        time_travel: Whether VERSION AS OF, TIMESTAMP AS OF, table options or TABLESAMPLE follow.
        whole: For `TABLE name`, where Spark allows nothing but a name: start and end of all that.
        argument: Whether that stands in the arguments of a table function.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    has_alias: bool
    time_travel: bool = False
    whole: tuple[int, int] | None = None
    argument: bool = False


def references(query: str, *, case_sensitive: bool = False) -> tuple[Reference, ...]:
    """Find the tables a query names, in the order of the text, repeated ones included.

    Args:
        query: The text.
        case_sensitive: Whether names of common table expressions differ by case.

    Raises:
        UserError: `SYNTAX_ERROR` with the place, when the text is no query.
        Unsupported: `DYNAMIC_NAME` for a table named by an expression.
    """
    return _found(query, case_sensitive)[0]


def common_table_expressions(query: str) -> frozenset[str]:
    """Return the names of common table expressions, in lower case."""
    return _found(query, False)[1]


def names_given(query: str) -> frozenset[str]:
    """Return, in lower case, aliases of tables and names of common table expressions."""
    _, ctes, aliases = _found(query, False)
    return ctes | aliases


# a text is looked at several times while it is defined, and as often while it is bound
@lru_cache(maxsize=2)
def _found(query: str, case_sensitive: bool) -> tuple[tuple[Reference, ...], frozenset[str], frozenset[str]]:
    """Return the tables that a query names, and its common table expressions and aliases."""
    shape, cursor = parse(query)
    finder = _Finder(cursor, case_sensitive=case_sensitive)
    try:
        found = sorted(finder.of_query(shape, frozenset()), key=lambda reference: reference.start)
    except RecursionError as error:
        raise too_deep(cursor) from error
    return tuple(found), frozenset(finder.ctes), frozenset(finder.aliases)


def substitute(query: str, replacement: Callable[[Reference], str], *, case_sensitive: bool = False) -> str:
    """Put something else in the place of every table name; every other character stays.

    Args:
        query: The text.
        replacement: Gives what stands in FROM for a reference. `TABLE name` becomes `SELECT * FROM …`.
        case_sensitive: As for `references`.
    """
    pieces: list[str] = []
    at = 0
    for start, end, text in _replaced(query, replacement, case_sensitive=case_sensitive):
        pieces += [query[at:start], text]
        at = end
    return "".join(pieces) + query[at:]


def origin(query: str, replacement: Callable[[Reference], str], offset: int, *, case_sensitive: bool = False) -> int:
    """Return where a character of what `substitute` makes of a query comes from.

    Args:
        query: The text.
        replacement: As for `substitute`.
        offset: A place in the result.
        case_sensitive: As for `references`.

    Returns:
        The place in the query; of what replaced a table name, where that begins.
    """
    longer = 0
    for start, end, text in _replaced(query, replacement, case_sensitive=case_sensitive):
        if offset < start + longer:
            break
        if offset < start + longer + len(text):
            return start
        longer += len(text) - (end - start)
    return offset - longer


def _replaced(
    query: str, replacement: Callable[[Reference], str], *, case_sensitive: bool
) -> Iterator[tuple[int, int, str]]:
    for reference in references(query, case_sensitive=case_sensitive):
        start, end = reference.whole or (reference.start, reference.end)
        text = replacement(reference)
        if reference.whole is not None:
            text = f"TABLE (SELECT * FROM {text})" if reference.argument else f"SELECT * FROM {text}"
        yield start, end, text


def _dynamic_name(cursor: Cursor, token: int) -> Unsupported:
    return Unsupported(
        "DYNAMIC_NAME",
        "IDENTIFIER(…) names a table by an expression, so it cannot be known what the query reads.",
        hint="Write the table's name.",
        place=place_at(cursor.sql, cursor.offset(token)),
    )


MOST_READINGS = 10_000
"""Times that a query may read tables, at most."""

_EXPANDED = "Spark puts a common table expression in each place where it is read, and those that it reads into that."
_PARTS = "Make stream tables of common table expressions that are read several times, and read these."


class _Finder:
    def __init__(self, cursor: Cursor, *, case_sensitive: bool) -> None:
        self.cursor = cursor
        self.case_sensitive = case_sensitive
        self.readings = 0
        self.within: dict[str, int] = {}
        self.ctes: set[str] = set()
        self.aliases: set[str] = set()

    def fold(self, name: str) -> str:
        """Return the name of a common table expression for comparing."""
        return name if self.case_sensitive else name.lower()

    def of_query(self, query: Query, shadow: Shadow) -> Iterator[Reference]:
        for cte in query.ctes:
            self.ctes.add(cte.name.lower())
            before = self.readings
            yield from self.of_query(cte.query, shadow | {self.fold(cte.name)} if query.recursive else shadow)
            self.within[self.fold(cte.name)] = self.readings - before
            self.readings = before
            shadow |= {self.fold(cte.name)}
        yield from self.of_body(query.body, shadow)
        yield from self.of_extras(query.extras, shadow)
        for item in query.pipes:
            yield from self.of_item(item, shadow)

    def of_body(self, body: Body, shadow: Shadow) -> Iterator[Reference]:
        match body:
            case Query():
                yield from self.of_query(body, shadow)
            case SetOperation():
                for branch in branches(body):
                    yield from self.of_body(branch, shadow)
            case TableBody(table=table, at=at):
                for reference in self.of_item(table, shadow):
                    yield replace(reference, whole=(self.cursor.offset(at), reference.end))
            case ValuesItem():
                yield from self.of_item(body, shadow)
            case Select():
                yield from self.of_select(body, shadow)

    def of_select(self, select: Select, shadow: Shadow) -> Iterator[Reference]:
        if select.source is not None:
            yield from self.of_from(select.source, shadow)
        groups = (*select.group.items, *(e.range for e in select.group.extras)) if select.group else ()
        windows = (within for _, within in select.windows)
        for within in (*select.items, select.where, *groups, select.having, *windows):
            if within is not None:
                yield from self.of_scalars(within, shadow)
        yield from self.of_extras(select.extras, shadow)

    def of_from(self, source: From, shadow: Shadow) -> Iterator[Reference]:
        yield from self.of_item(source.first, shadow)
        for join in source.joins:
            yield from self.of_item(join.item, shadow)
            if join.on is not None:
                yield from self.of_scalars(join.on, shadow)
            yield from self.of_extras(join.extras, shadow)

    def of_item(self, item: Item, shadow: Shadow) -> Iterator[Reference]:
        if item.alias is not None:
            self.aliases.add(item.alias.name.lower())
        match item:
            case TableItem():
                table = len(item.parts) > 1 or self.fold(item.parts[0]) not in shadow
                self.count(1 if table else self.within.get(self.fold(item.parts[0]), 1), item.name[0])
                if table:
                    yield self.reference(item)
            case QueryItem():
                yield from self.of_query(item.query, shadow)
            case FunctionItem():
                if item.name.lower() == "identifier":
                    raise _dynamic_name(self.cursor, item.at)
                yield from self.of_arguments(item.arguments, shadow)
            case ValuesItem():
                for row in item.rows:
                    yield from self.of_scalars(row, shadow)
            case GroupItem():
                yield from self.of_from(item.source, shadow)
        yield from self.of_extras(item.extras, shadow)

    def count(self, readings: int, token: int) -> None:
        """Count what a name reads, a common table expression as often as it is read."""
        self.readings += readings
        if self.readings > MOST_READINGS:
            message = f"With this, the query reads tables more than {MOST_READINGS} times."
            place = place_at(self.cursor.sql, self.cursor.offset(token))
            raise Unsupported("QUERY_TOO_LARGE", message, detail=_EXPANDED, place=place, hint=_PARTS)

    def of_arguments(self, within: Range, shadow: Shadow) -> Iterator[Reference]:
        """Yield tables in a table function's arguments: `TABLE(name)` and `TABLE name`."""
        found: list[Reference] = []
        self.cursor.at = within[0]
        while self.cursor.at < within[1]:
            table_at = self.cursor.offset()
            if not self.cursor.take("TABLE") or self.cursor.opens_query():
                self.cursor.at += 1
                continue
            bracket = self.cursor.take("(")
            start = self.cursor.at
            item = TableItem(dotted_name(self.cursor), (start, self.cursor.at), None)
            if bracket:
                self.cursor.expect(")")
            end = self.cursor.peek(-1).end
            found += [replace(r, whole=(table_at, end), argument=True) for r in self.of_item(item, shadow)]
        yield from found
        yield from self.of_scalars(within, shadow)

    def of_extras(self, extras: tuple[Extra, ...], shadow: Shadow) -> Iterator[Reference]:
        for extra in extras:
            yield from self.of_scalars(extra.range, shadow)

    def of_scalars(self, within: Range, shadow: Shadow) -> Iterator[Reference]:
        for query in tuple(subqueries(self.cursor, within)):
            yield from self.of_query(query, shadow)

    def reference(self, item: TableItem) -> Reference:
        tokens = self.cursor.tokens[item.name[0] : item.name[1]]
        travels = any(extra.construct in _TIME_TRAVEL for extra in item.extras)
        return Reference(item.parts, tokens[0].start, tokens[-1].end, item.alias is not None, travels)
