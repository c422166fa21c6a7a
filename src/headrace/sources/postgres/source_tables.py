"""Names of PostgreSQL's tables as users write them in SQL, Python and on the command line.

    schema.table [COLUMNS (column, …)] [WHERE (condition)] [AS mirror]

Names are written as there; the condition is kept as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.errors import UserError
from headrace.sources.postgres.table_syntax import split_postgres, split_table
from headrace.sources.source_kind import Tables
from headrace.sql.reader.syntax.cursor import Cursor


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table to be captured.

    Args:
        schema: Its schema.
        table: Its name.
        mirror: The name of its mirror, where one was given.
        columns: The columns that are captured; none for all of them.
        where: Condition on the rows that are captured; None for all of them.
    """

    schema: str
    table: str
    mirror: str | None = None
    columns: tuple[str, ...] = ()
    where: str | None = None


def source_table(text: str) -> SourceTable:
    """Return a table as it was written.

    Raises:
        UserError: `INVALID_NAME`, `SYNTAX_ERROR`.
    """
    try:
        return SourceTable(*split_table(text))
    except UserError:
        cursor = Cursor(text)
        named = cursor.skip_until(lambda at: at.word in ("COLUMNS", "WHERE", "AS"))
        if cursor.done or named[0] == named[1]:
            raise
    schema, table = split_table(text[: cursor.peek(-1).end])
    columns, where, mirror = _rest(cursor)
    return SourceTable(schema, table, mirror, columns, where)


def by_mirror(tables: Tables) -> dict[str, SourceTable]:
    """Arrange tables by the names of their mirrors.

    Raises:
        UserError: `INVALID_NAME`, `SYNTAX_ERROR`, `DUPLICATE_TABLE`.
    """
    if isinstance(tables, Mapping):
        return {mirror: source_table(text) for mirror, text in tables.items()}
    named: dict[str, SourceTable] = {}
    for table in map(source_table, tables):
        mirror = table.mirror or table.table
        if mirror in named:
            raise UserError(
                "DUPLICATE_TABLE",
                f"Two tables would have the mirror {mirror}.",
                hint="Give one another name: TABLES (a.orders, b.orders AS b_orders).",
            )
        named[mirror] = table
    return named


def names_of(tables: Mapping[str, SourceTable]) -> dict[str, tuple[str, str]]:
    """Return schema and name of tables by the names of their mirrors."""
    return {mirror: (table.schema, table.table) for mirror, table in tables.items()}


def _rest(cursor: Cursor) -> tuple[tuple[str, ...], str | None, str | None]:
    columns = _columns(cursor) if cursor.take("COLUMNS") else ()
    where = _bracketed(cursor) if cursor.take("WHERE") else None
    mirror = cursor.name("A name without quotes") if cursor.take("AS") else None
    if not cursor.done:
        raise cursor.error("COLUMNS (…), WHERE (…) or AS, in this order and once, was expected here")
    return columns, where, mirror


def _bracketed(cursor: Cursor) -> str:
    start = cursor.offset()
    inside = cursor.skip_group()
    if inside[0] == inside[1]:
        raise cursor.error("The brackets before this place are empty")
    return cursor.sql[start + 1 : cursor.peek(-1).start].strip()


def _columns(cursor: Cursor) -> tuple[str, ...]:
    at, end = cursor.skip_group()
    tokens, found, first = cursor.tokens, [], at
    for place in range(at, end + 1):
        if place == end or tokens[place].word == ",":
            text = cursor.sql[tokens[first].start : tokens[place - 1].end] if first < place else ""
            found.append(_column(text))
            first = place + 1
    return tuple(found)


def _column(text: str) -> str:
    parts = split_postgres(text)
    if len(parts) != 1:
        raise UserError("INVALID_NAME", f"'{text}' is not the name of a column.", hint="Write its name alone.")
    return parts[0]
