"""Writes `pgoutput` messages, as the server does."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from headrace.sources.postgres.remote_tables import RemoteColumn, RemoteTable
from headrace.sources.postgres.wal.pgoutput import UNCHANGED, Value
from headrace.sources.postgres.wal.pgoutput_columns import Bytes

TEXT = 25


def row(values: Sequence[Value | str]) -> bytes:
    out = struct.pack(">H", len(values))
    for value in values:
        if value is None:
            out += b"n"
        elif value is UNCHANGED:
            out += b"u"
        else:
            data = value.encode() if isinstance(value, str) else value
            out += b"t" + struct.pack(">I", len(data)) + data
    return out


def blocks(messages: Sequence[bytes], size: int = 1_000) -> list[Bytes]:
    return [Bytes.of(messages[at : at + size]) for at in range(0, len(messages), size)]


def begin(lsn: int, xid: int = 7) -> bytes:
    return b"B" + struct.pack(">QQI", lsn, 0, xid)


def commit(lsn: int, end: int) -> bytes:
    return b"C" + struct.pack(">BQQQ", 0, lsn, end, 0)


def insert(oid: int, *new: Value | str) -> bytes:
    return b"I" + struct.pack(">I", oid) + b"N" + row(new)


def update(oid: int, new: Sequence[Value | str], old: Sequence[Value | str] | None = None, kind: str = "K") -> bytes:
    before = kind.encode() + row(old) if old is not None else b""
    return b"U" + struct.pack(">I", oid) + before + b"N" + row(new)


def delete(oid: int, *old: Value | str, kind: str = "K") -> bytes:
    return b"D" + struct.pack(">I", oid) + kind.encode() + row(old)


def truncate(*oids: int) -> bytes:
    return b"T" + struct.pack(">IB", len(oids), 0) + b"".join(struct.pack(">I", oid) for oid in oids)


def relation(table: RemoteTable) -> bytes:
    out = b"R" + struct.pack(">I", table.oid) + f"{table.schema}\0{table.name}\0{table.identity}".encode()
    out += struct.pack(">H", len(table.columns))
    for column in table.columns:
        key = table.identity == "f" or (table.identity in "di" and column.name in table.key)
        out += bytes([key]) + column.name.encode() + b"\0" + struct.pack(">Ii", column.type, column.modifier)
    return out


def table(oid: int = 1, identity: str = "d", key: tuple[str, ...] = ("id",), columns: str = "id a b") -> RemoteTable:
    parts = tuple(RemoteColumn(i, name, TEXT, -1, "text") for i, name in enumerate(columns.split(), 1))
    return RemoteTable(oid, "public", f"t{oid}", identity, key, parts)
