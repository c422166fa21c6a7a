"""Columns of a stream table that change with its definition, and who reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from headrace.algebra.schema import Column
from headrace.algebra.types import in_sql
from headrace.catalog import Stop, StreamTable
from headrace.definitions.details import from_json
from headrace.deploy.deployment_results import BrokenReader
from headrace.names import RESERVED_PREFIX, TableName, quote


def alterations(table: TableName, old: Sequence[Column], new: Sequence[Column]) -> tuple[str, ...]:
    """Return the statements that give a stored table other columns.

    It stays the same table, whose snapshots of before can be read.
    A column of another type is another column: the old one makes room under another name until the new one is there.

    Args:
        table: The stored table, in `staging`.
        old: Its columns.
        new: The columns that it is to have, in this order.
    """
    wanted = {c.name: c.type for c in new}
    left = [c for c in old if wanted.get(c.name) != c.type]
    there = [c.name for c in old if c not in left]
    moved = there != [c.name for c in new if c.name in there]
    sql, out = table.sql, []
    gone = {c.name: f"{RESERVED_PREFIX}gone_{place}" for place, c in enumerate(left)}
    names = {c.name.lower() for c in new}
    for column in left:
        if column.name.lower() in names:
            out.append(f"ALTER TABLE {sql} RENAME COLUMN {quote(column.name)} TO {quote(gone[column.name])}")
    for place, column in enumerate(new):
        where = f"AFTER {quote(new[place - 1].name)}" if place else "FIRST"
        if column.name not in there:
            out.append(f"ALTER TABLE {sql} ADD COLUMN {quote(column.name)} {in_sql(column.type)} {where}")
        elif moved:
            out.append(f"ALTER TABLE {sql} ALTER COLUMN {quote(column.name)} {where}")
    for column in left:
        named = gone[column.name] if column.name.lower() in names else column.name
        out.append(f"ALTER TABLE {sql} DROP COLUMN {quote(named)}")
    return tuple(out)


def broken_readers(
    tables: Mapping[TableName, StreamTable],
    after: Mapping[TableName, Sequence[Column]],
    members: Collection[TableName],
) -> tuple[BrokenReader, ...]:
    """Return columns that readers outside a deployment would miss.

    Args:
        tables: All stream tables.
        after: By public table, the columns it would have.
        members: What is promoted along, and so fits already.
    """
    found: list[BrokenReader] = []
    for name, table in sorted(tables.items()):
        if name in members or from_json(table.details).deployment:
            continue
        for use in from_json(table.details).sources:
            if use.name in after:
                found += _missed(name, use.name, use.columns, after[use.name])
    return tuple(found)


def _missed(
    reader: TableName, source: TableName, used: Sequence[Column], after: Sequence[Column]
) -> Iterator[BrokenReader]:
    now = {c.name.lower(): c for c in after}
    for column in used:
        found = now.get(column.name.lower())
        if found is None:
            yield BrokenReader(str(reader), str(source), column.name, "is gone")
        elif found.type != column.type:
            what = f"has type {found.type} instead of {column.type}"
            yield BrokenReader(str(reader), str(source), column.name, what)
        elif found.nullable and not column.nullable:
            yield BrokenReader(str(reader), str(source), column.name, "may be NULL")


def stops(broken: Sequence[BrokenReader], tables: Mapping[TableName, StreamTable]) -> tuple[Stop, ...]:
    """Return how readers are stopped that miss columns, each with the first that it misses."""
    named = {str(name): name for name in tables}
    first = {b.reader: b for b in reversed(broken) if b.column is not None}
    return tuple(
        Stop(
            named[reader],
            "SOURCE_SCHEMA_CHANGED",
            f"{reader} is stopped: column {b.column} of {b.source} {b.what} since a promotion. Take that back, or "
            f"define the stream table again: CREATE OR REPLACE STREAM TABLE {reader} AS …",
        )
        for reader, b in sorted(first.items())
        if reader in named  # it may have been dropped meanwhile
    )
