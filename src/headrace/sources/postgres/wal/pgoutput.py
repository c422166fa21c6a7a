"""The messages of PostgreSQL's `pgoutput` plugin, protocol version 1, as values.

Pure: bytes in, values out. Column values stay bytes, in the text form of their type: whole columns are turned into text
and types later, in batches. What capture has no use for (`Type`, `Origin`, logical messages) is read over.

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final

from headrace.errors import InternalError


class _Unchanged(Enum):
    UNCHANGED = "unchanged"


UNCHANGED: Final = _Unchanged.UNCHANGED
"""Stands for a large (TOASTed) value that an UPDATE did not touch: it is not sent."""

Value = bytes | None | _Unchanged
Values = list[Value]

Packed = bytes
"""A row as it was sent, none of whose values is UNCHANGED; `columns.py` takes many of them apart at once."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins; whole transactions come in the order of their commits.

    Args:
        lsn: Where its commit record begins.
        time: Commit time in microseconds since 2000-01-01 UTC.
        xid: Its id.
    """

    lsn: int
    time: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction ends.

    Args:
        lsn: Where its commit record begins.
        end: Where it ends: everything before is known once this transaction is landed.
    """

    lsn: int
    end: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as the stream describes it.

    Args:
        name: Its name.
        type: Oid of its type.
        modifier: The type's modifier; -1 without one.
        key: Whether it is part of the replica identity.
    """

    name: str
    type: int
    modifier: int
    key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table's columns in the messages that follow; sent before changes and after DDL.

    Args:
        oid: The table's oid, which the other messages name.
        namespace: Its schema.
        name: Its name.
        identity: `d`, `n`, `f` or `i`, as in `pg_class.relreplident`.
        columns: The published columns, in the order of values.
    """

    oid: int
    namespace: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row.

    Args:
        oid: The table.
        new: The row.
    """

    oid: int
    new: Values


@dataclass(frozen=True, slots=True)
class Update:
    """A changed row.

    Args:
        old: The old row as far as it was sent: all of it with REPLICA IDENTITY FULL, its key (the other values NULL)
            where the key changed, else None.
        new: The new row; may hold UNCHANGED.
    """

    oid: int
    old: Values | None
    new: Values


@dataclass(frozen=True, slots=True)
class Delete:
    """A removed row.

    Args:
        oid: The table.
        old: Its key, or all of it with REPLICA IDENTITY FULL.
    """

    oid: int
    old: Values


@dataclass(frozen=True, slots=True)
class Truncate:
    """Emptied tables, those reached by CASCADE included.

    Args:
        oids: The tables.
    """

    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate

_BEGIN = Struct(">QQI")
_COMMIT = Struct(">BQQ")
_OID = Struct(">I")
_COLUMN = Struct(">Ii")


def decode(data: bytes) -> Message | None:
    """Read one message; None for kinds that are not about rows.

    Raises:
        InternalError: `PGOUTPUT_UNREADABLE` for what the protocol does not have.
    """
    kind = data[0]
    if kind == 0x49:  # I
        return Insert(_oid(data), _tuple(data, 6)[0])
    if kind == 0x55:  # U
        return _update(data)
    if kind == 0x44:  # D
        return Delete(_oid(data), _tuple(data, 6)[0])
    if kind == 0x42:  # B
        return Begin(*_BEGIN.unpack_from(data, 1))
    if kind == 0x43:  # C
        _, lsn, end = _COMMIT.unpack_from(data, 1)
        return Commit(lsn, end)
    if kind == 0x52:  # R
        return _relation(data)
    if kind == 0x54:  # T
        count = _OID.unpack_from(data, 1)[0]
        return Truncate(tuple(_OID.unpack_from(data, 6 + 4 * i)[0] for i in range(count)))
    if kind in b"YOM":
        return None
    raise unreadable(data)


def unpacked(row: Values | Packed) -> Values:
    """Return the values of a row."""
    return _tuple(row, 0)[0] if isinstance(row, bytes) else row


def _oid(data: bytes) -> int:
    return int.from_bytes(data[1:5])


def _update(data: bytes) -> Update:
    oid, old, at = _oid(data), None, 5
    if data[at] in b"KO":
        old, at = _tuple(data, at + 1)
    return Update(oid, old, _tuple(data, at + 1)[0])


def _tuple(data: bytes, at: int) -> tuple[Values, int]:
    """Return the values of a row whose description begins at `at`, and where it ends."""
    count = data[at] << 8 | data[at + 1]
    at += 2
    values: Values = []
    add = values.append
    for _ in range(count):
        kind = data[at]
        if kind == 0x74:  # t
            start = at + 5
            at = start + int.from_bytes(data[at + 1 : start])
            add(data[start:at])
        elif kind == 0x6E:  # n
            add(None)
            at += 1
        elif kind == 0x75:  # u
            add(UNCHANGED)
            at += 1
        else:
            raise unreadable(data)
    return values, at


def _relation(data: bytes) -> Relation:
    namespace, at = _text(data, 5)
    name, at = _text(data, at)
    identity, count = chr(data[at]), data[at + 1] << 8 | data[at + 2]
    at += 3
    columns = []
    for _ in range(count):
        key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        type_, modifier = _COLUMN.unpack_from(data, at)
        columns.append(RelationColumn(column, type_, modifier, key))
        at += _COLUMN.size
    return Relation(_oid(data), namespace or "pg_catalog", name, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def unreadable(data: bytes) -> InternalError:
    """Return the error for a message that the protocol does not have."""
    return InternalError(
        "PGOUTPUT_UNREADABLE",
        "PostgreSQL sent a change message that Headrace cannot read; nothing was landed.",
        detail=f"It begins with {data[:16]!r}.",
        hint="Please report this, with the version of the server.",
    )
