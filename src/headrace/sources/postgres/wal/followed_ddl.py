"""Decides which alterations of a table are followed without copying it again.

Pure. As long as a table's rows lie in the same file (`RemoteTable.filenode`), ALTER TABLE has changed the catalog only:
columns were dropped, renamed, or added, and rows older than an added column are NULL there, unless it came with a
default. Rows of the stream that have the former shape are brought to the new one by the columns' numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.sources.postgres.remote_tables import RemoteColumn, RemoteTable, is_kept_back
from headrace.sources.postgres.server import Found
from headrace.sources.postgres.wal.pgoutput import Delete, Insert, Relation, Update, Values

TEXTS = frozenset({"text", "varchar"})
"""Types whose values are written alike, and which become each other without being rewritten."""

Places = tuple[int | None, ...]
"""For every column of the new shape its place in the former one; None for an added column."""


def followed(now: Found, before: RemoteTable) -> bool:
    """Return whether altering the mirror's columns alone follows a table's new shape.

    Args:
        now: The table as it is now.
        before: The table as the mirror was made of it.
    """
    table = now.table
    former = {c.number: c for c in before.columns}
    same = (table.oid, table.identity, table.partitioned, table.filenode, _other_marks(table), _key(table))
    return (
        before.filenode is not None
        and not _names_again(table, before)
        and not any(is_kept_back(c.name) for c in table.columns)
        and same
        == (before.oid, before.identity, before.partitioned, before.filenode, _other_marks(before), _key(before))
        and all(
            _alike(c, former[c.number]) if c.number in former else c.number not in now.filled for c in table.columns
        )
    )


def widened(now: Found, before: RemoteTable) -> bool:
    """Return whether a table has gained columns, and is as it was otherwise.

    Its rows have no values of these columns.

    Args:
        now: The table as it is now.
        before: The table as the mirror was made of it.
    """
    had = {c.number: (c.name, c.type, c.modifier) for c in before.columns}
    kept = {c.number: (c.name, c.type, c.modifier) for c in now.table.columns if c.number in had}
    return kept == had and len(now.table.columns) > len(had) and followed(now, before)


def places(now: RemoteTable, before: RemoteTable) -> Places:
    """Return for each column of a table its place in rows of the table's former shape.

    Args:
        now: The table as it is.
        before: The table as it was.

    Returns:
        Places in the order of the columns; None for columns that are new.
    """
    former = {c.number: place for place, c in enumerate(before.columns)}
    return tuple(former.get(c.number) for c in now.columns)


def places_between(now: RemoteTable, before: RemoteTable, relation: Relation) -> Places | None:
    """Return places as `places` does, in rows of a shape that a table had in between.

    None where that is not certain: the stream tells no numbers. But where none was dropped since, a shape has
    the first columns of the table as it is now.

    Args:
        now: The table as it is.
        before: The table as it was before that shape.
        relation: That shape.
    """
    numbers, former = [c.number for c in now.columns], {c.number: c for c in before.columns}
    later = range(max(former, default=0) + 1, max(numbers, default=0) + 1)
    if not {*former, *later} <= set(numbers) or len(relation.columns) > len(numbers):
        return None
    shown = list(zip(relation.columns, now.columns, strict=False))
    types = all((own.type, own.modifier) in {_type_of(c), _type_of(former.get(c.number, c))} for own, c in shown)
    keys = {c.number for own, c in shown if own.key}
    if not types or relation.identity != now.identity or (now.identity in "di" and keys != set(_key(now))):
        return None
    return tuple(place if place < len(shown) else None for place in range(len(numbers)))


def _type_of(column: RemoteColumn) -> tuple[int, int]:
    return column.type, column.modifier


def brought(message: Insert | Update | Delete, to: Places) -> Insert | Update | Delete:
    """Return a message about a row in a table's new shape.

    Args:
        message: In the former shape.
        to: Where each column's value is, as `places` returns it.
    """
    if isinstance(message, Insert):
        return Insert(message.oid, _row(message.new, to))
    if isinstance(message, Delete):
        return Delete(message.oid, _row(message.old, to))
    old = None if message.old is None else _row(message.old, to)
    return Update(message.oid, old, _row(message.new, to))


def _row(values: Values, to: Sequence[int | None]) -> Values:
    return [None if place is None else values[place] for place in to]


def _names_again(now: RemoteTable, before: RemoteTable) -> bool:
    """Return whether a name now denotes another column than before."""
    former = {c.name.lower(): (c.number, c.name) for c in before.columns}
    return any(former.get(c.name.lower(), (c.number, c.name)) != (c.number, c.name) for c in now.columns)


def _alike(now: RemoteColumn, before: RemoteColumn) -> bool:
    if now.as_text != before.as_text:
        return False
    same = (now.type, now.modifier, now.base, now.base_modifier, now.element)
    return same == (before.type, before.modifier, before.base, before.base_modifier, before.element) or (
        {now.base, before.base} <= TEXTS and now.element is before.element is None
    )


def _key(table: RemoteTable) -> tuple[int, ...]:
    numbers = {c.name: c.number for c in table.columns}
    return tuple(numbers[name] for name in table.key)


def _other_marks(table: RemoteTable) -> str:
    """Return marks of partitions and enums.

    After the first blank; before it are those of columns.
    """
    return table.marks.partition(" ")[2]
