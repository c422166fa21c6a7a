"""Resumes a first snapshot whose process was killed.

An exported snapshot ends with its session, so that what is left is read in a later one, and the parts of a table come
to be of different moments. That is exact all the same. Capture was installed at a moment B, before the first part was
read; let P be the moment of the last snapshot.

- A row whose key no transaction between B and P has touched is the same all that time, and at the same place of the
  same file. So it is in exactly one part: the one that has its place.
- The other keys are known from what was captured since B. Whatever the parts have of them is left out (old images,
  two of them or none, as rows move to other pages), and their rows are read once more, in P.

It does no harm to take more keys for touched than are. It needs a file that is the same all the time (a table that was
altered, emptied or rewritten since is copied from its beginning) and a key (so is a table without one).

Source: the idea of watermarks, of taking chunks at different moments and setting right what the log names meanwhile, is
from Andreakis and Papapanagiotou, "DBLog: A Watermark Based Change-Data-Capture Framework", 2020. They set it right
from the log's images; we ask the table, as the log lacks large values that an update did not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from psycopg import sql

from headrace.names import TableName
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteColumn, RemoteTable
from headrace.sources.postgres.setup.projection import condition
from headrace.sources.postgres.snapshot.copy_ledger import Ledger
from headrace.sources.postgres.snapshot.snapshots import Told, copied, reader, reading
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.spool.spool import Spool, csv_batches, csv_texts
from headrace.sources.postgres.spool.text_columns import columns_of
from headrace.sources.postgres.wal.net_changes import Key
from headrace.sources.postgres.wal.pgoutput import UNCHANGED, Delete, Insert, Relation, Update, Values, decode

AT_ONCE = 10_000
"""Keys whose rows are asked for by one statement."""

HELD = 200_000
"""Keys of a table that are held in memory at most."""

Touched = Callable[[Mapping[TableName, RemoteTable]], Iterator[tuple[TableName, set[Key] | None]]]
"""Gives the keys of tables that were touched since capture was installed, a set at a time; None for a table that was
altered meanwhile."""


def copied_on(
    url: str,
    snapshot: str,
    tables: Mapping[TableName, RemoteTable],
    spool: Spool,
    told: Told,
    ledger: Ledger,
    touched: Touched,
) -> dict[TableName, Spooled]:
    """Write the rows of tables to files: those that are not there yet.

    Args:
        url: The connection string.
        snapshot: The exported snapshot; it must stay open meanwhile.
        tables: The tables, by the names of their mirrors.
        spool: Where files are written.
        told: Told how far it is.
        ledger: What is there.
        touched: Gives touched keys, up to the snapshot at least.
    """
    ledger.refuse([name for name, table in tables.items() if not _known_by_key(table)])
    begun = {name: table for name, table in tables.items() if ledger.cut(name, table) is not None}
    again: dict[TableName, _Again] = {}
    if begun:
        told("copy: looking for what has changed since it began")
        with reading(url, snapshot) as connection:
            types = {name: _types(connection, table) for name, table in begun.items()}
            for name, keys in touched(begun):
                if keys is None:
                    ledger.refuse([name])
                elif keys:
                    found = again.setdefault(name, _Again(begun[name], spool))
                    found.read(connection, keys, types[name])
    spooled = copied(url, snapshot, tables, spool, told, ledger)
    kept = {name for name, table in tables.items() if ledger.cut(name, table) is not None}
    return {name: again[name].added(of) if name in again and name in kept else of for name, of in spooled.items()}


class _Again:
    """The touched keys of a table, and the rows that they have in the last snapshot."""

    def __init__(self, table: RemoteTable, spool: Spool) -> None:
        self._table = table
        self._keyed = replace(table, columns=_key_columns(table))
        self._spool = spool
        self._keys, self._rows = spool.part(table), spool.part(table)
        self._number = self._found = 0

    def read(self, connection: Connection, keys: Iterable[Key], types: Sequence[str]) -> None:
        """Read the rows of some keys."""
        import pyarrow as pa

        rest = iter(keys)
        while some := list(islice(rest, AT_ONCE)):
            columns = columns_of(self._keyed, [list(key) for key in some])
            self._spool.fill(self._keys, self._number, [pa.RecordBatch.from_pydict(columns)])
            with connection.cursor() as cursor, cursor.copy(_asked(self._table, some, types)) as copy:
                batches = csv_batches(self._table, reader(copy, self._spool.ended))
                self._found += self._spool.fill(self._rows, self._number, batches)
            self._number += 1

    def added(self, spooled: Spooled) -> Spooled:
        """Return a snapshot's parts, set right."""
        rows = self._spool.folder_of(self._rows) if self._found else None
        return replace(spooled, touched=self._spool.folder_of(self._keys), again=rows)


def keys_of(
    messages: Iterable[bytes], tables: Mapping[TableName, RemoteTable]
) -> Iterator[tuple[TableName, set[Key] | None]]:
    """Yield the keys that a replication stream has touched; see `Touched`.

    Args:
        messages: The stream, as `pgoutput` writes it.
        tables: Captured tables by mirror.

    Yields:
        A mirror and keys of it; None for a table that must be copied anew.
    """
    names, held = {table.oid: name for name, table in tables.items()}, dict[int, set[Key]]()
    places = {table.oid: key_places(table) for table in tables.values()}
    for data in messages:
        message = decode(data)
        if isinstance(message, Relation):
            name = names.get(message.oid)
            if name is not None and not tables[name].fits(message):
                yield name, None
                places.pop(message.oid, None)
        elif isinstance(message, (Insert, Update, Delete)) and message.oid in places:
            keys = held.setdefault(message.oid, set())
            keys.update(_touched(message, places[message.oid]))
            if len(keys) >= HELD:
                yield names[message.oid], held.pop(message.oid)
    yield from ((names[oid], keys) for oid, keys in held.items() if oid in places)


def keys_in(
    connection: Connection,
    tables: Mapping[TableName, RemoteTable],
    query: Callable[[TableName, RemoteTable], sql.Composed],
) -> Iterator[tuple[TableName, set[Key] | None]]:
    """Yield the keys that a COPY for each table gives; see `Touched`.

    Args:
        connection: To the server.
        tables: Captured tables by mirror.
        query: Writes the COPY for a table, of its key columns.
    """
    for name, table in tables.items():
        keyed = replace(table, columns=_key_columns(table))
        with connection.cursor() as cursor, cursor.copy(query(name, table)) as copy:
            for batch in csv_texts(keyed, copy.read):
                columns = [column.to_pylist() for column in batch.columns]
                yield name, {tuple(v.encode() for v in key) for key in zip(*columns, strict=True)}


def _touched(message: Insert | Update | Delete, places: Sequence[int]) -> Iterator[Key]:
    old: Values | None = None if isinstance(message, Insert) else message.old
    if old is not None:
        yield tuple(old[place] for place in places)
    if not isinstance(message, Delete):
        new = message.new
        yield tuple(old[p] if new[p] is UNCHANGED and old is not None else new[p] for p in places)


def key_places(table: RemoteTable) -> tuple[int, ...]:
    """Return places of the key's columns, also where old rows are sent whole."""
    places = {c.name: i for i, c in enumerate(table.columns)}
    return tuple(places[name] for name in table.key)


def _key_columns(table: RemoteTable) -> tuple[RemoteColumn, ...]:
    return tuple(table.columns[place] for place in key_places(table))


def _known_by_key(table: RemoteTable) -> bool:
    """Return whether rows can be looked up by key; keys with lists are not."""
    return bool(table.key) and not any(column.kept.array for column in _key_columns(table))


def _types(connection: Connection, table: RemoteTable) -> list[str]:
    """Return the types of a key, as PostgreSQL writes them."""
    found = []
    for column in _key_columns(table):
        row = connection.execute("SELECT format_type(%s::oid, %s)", (column.type, column.modifier)).fetchone()
        assert row is not None, "a query without FROM has one row"
        found.append(str(row[0]))
    return found


def _asked(table: RemoteTable, keys: Sequence[Key], types: Sequence[str]) -> sql.Composed:
    """Return the COPY of the rows that have some keys."""
    names = [sql.Identifier(column.name) for column in _key_columns(table)]
    texts = [[v.decode() if isinstance(v, bytes) else None for v in values] for values in zip(*keys, strict=True)]
    arrays = sql.SQL(", ").join(sql.SQL("{}::text[]").format(sql.Literal(values)) for values in texts)
    listed = [sql.Identifier(f"k{number}") for number in range(len(names))]
    typed = (sql.SQL("k.{}::{}").format(name, sql.SQL(type_)) for name, type_ in zip(listed, types, strict=True))
    return sql.SQL(
        "COPY (SELECT {} FROM {}{} WHERE {} AND ({}) IN (SELECT {} FROM unnest({}) AS k ({}))) TO STDOUT (FORMAT csv)"
    ).format(
        sql.SQL(", ").join(sql.Identifier(c.name) for c in table.columns),
        sql.SQL("" if table.partitioned else "ONLY "),
        sql.Identifier(table.schema, table.name),
        condition(table),
        sql.SQL(", ").join(names),
        sql.SQL(", ").join(typed),
        arrays,
        sql.SQL(", ").join(listed),
    )
