"""Every table a query names, with the exact place of the name, and putting something else there.

A FULL refresh runs the user's own text with only the table names replaced, so whatever Spark accepts runs as it was
written: comments, hints, spelling and all. Names of common table expressions are no tables, by Spark's scoping: a
WITH shadows tables in its query and in the expressions after it, inner ones win, and an expression does not see itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.sql.cursor import Cursor
from headrace.sql.parser import parse, subqueries
from headrace.sql.shape import (
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
)
from headrace.sql.sources import dotted_name

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
    """

    parts: tuple[str, ...]
    start: int
    end: int
    has_alias: bool
    time_travel: bool = False


def references(query: str) -> tuple[Reference, ...]:
    """Find the tables a query names, in the order of the text; the same table may come several times.

    Raises:
        UserError: `SYNTAX_ERROR` with the place, when the text is no query.
    """
    shape, cursor = parse(query)
    found = _Finder(cursor).of_query(shape, frozenset())
    return tuple(sorted(found, key=lambda reference: reference.start))


def substitute(query: str, replace: Callable[[Reference], str]) -> str:
    """Put something else in the place of every table name; every other character stays."""
    pieces: list[str] = []
    at = 0
    for reference in references(query):
        pieces += [query[at : reference.start], replace(reference)]
        at = reference.end
    return "".join(pieces) + query[at:]


class _Finder:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def of_query(self, query: Query, shadow: Shadow) -> Iterator[Reference]:
        if query.recursive:
            shadow |= {cte.name.lower() for cte in query.ctes}
        for cte in query.ctes:
            yield from self.of_query(cte.query, shadow)
            shadow |= {cte.name.lower()}
        yield from self.of_body(query.body, shadow)
        yield from self.of_extras(query.extras, shadow)
        for item in query.pipes:
            yield from self.of_item(item, shadow)

    def of_body(self, body: Body, shadow: Shadow) -> Iterator[Reference]:
        match body:
            case Query():
                yield from self.of_query(body, shadow)
            case SetOperation(left=left, right=right):
                yield from self.of_body(left, shadow)
                yield from self.of_body(right, shadow)
            case TableBody(table=table):
                yield from self.of_item(table, shadow)
            case ValuesItem():
                yield from self.of_item(body, shadow)
            case Select():
                yield from self.of_select(body, shadow)

    def of_select(self, select: Select, shadow: Shadow) -> Iterator[Reference]:
        if select.source is not None:
            yield from self.of_from(select.source, shadow)
        groups = (*select.group.items, *(e.range for e in select.group.extras)) if select.group else ()
        for within in (*select.items, select.where, *groups, select.having):
            if within is not None:
                yield from self.of_scalars(within, shadow)
        yield from self.of_extras(select.extras, shadow)

    def of_from(self, source: From, shadow: Shadow) -> Iterator[Reference]:
        yield from self.of_item(source.first, shadow)
        for join in source.joins:
            yield from self.of_item(join.item, shadow)
            if join.on is not None:
                yield from self.of_scalars(join.on, shadow)

    def of_item(self, item: Item, shadow: Shadow) -> Iterator[Reference]:
        match item:
            case TableItem():
                if len(item.parts) > 1 or item.parts[0].lower() not in shadow:
                    yield self.reference(item)
            case QueryItem():
                yield from self.of_query(item.query, shadow)
            case FunctionItem():
                yield from self.of_arguments(item.arguments, shadow)
            case ValuesItem():
                for row in item.rows:
                    yield from self.of_scalars(row, shadow)
            case GroupItem():
                yield from self.of_from(item.source, shadow)
        yield from self.of_extras(item.extras, shadow)

    def of_arguments(self, within: Range, shadow: Shadow) -> Iterator[Reference]:
        """Arguments of a table function, where `TABLE(name)` and `TABLE name` hand over a table."""
        tables: list[TableItem] = []
        self.cursor.at = within[0]
        while self.cursor.at < within[1]:
            if self.cursor.take("TABLE") and not self.cursor.opens_query():
                bracket = self.cursor.take("(")
                start = self.cursor.at
                if self.cursor.peek().is_name:
                    tables.append(TableItem(dotted_name(self.cursor), (start, self.cursor.at), None))
                if bracket:
                    self.cursor.take(")")
            else:
                self.cursor.at += 1
        for table in tables:
            yield from self.of_item(table, shadow)
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
