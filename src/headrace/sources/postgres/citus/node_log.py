"""Reads one node's log from where it was landed up to a cut's mark."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.errors import InternalError
from headrace.names import TableName
from headrace.sources.capture import Json
from headrace.sources.postgres.citus.cluster_catalog import other_storage
from headrace.sources.postgres.citus.cuts import PREFIX
from headrace.sources.postgres.connection import Connection, connected, in_motion
from headrace.sources.postgres.health import stop_reasons
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import Found, Server, server, tables
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.spool.landed_table import PostgresTable
from headrace.sources.postgres.wal import log_witness, slots
from headrace.sources.postgres.wal.net_changes import Key, KeyedChanges
from headrace.sources.postgres.wal.net_collector import Collector
from headrace.sources.postgres.wal.pgoutput_columns import Bytes
from headrace.sources.postgres.wal.wal_capture import PostgresCapture
from headrace.sources.source_kind import Check


@dataclass(frozen=True, slots=True)
class NodeChanges:
    """Changes of one node up to a cut.

    Args:
        tables: The mirrors' changes, in the node's words.
        position: Where the node stands once they are published.
        transactions: How many transactions.
        rows: How many changes of rows.
        unsure: Mirrors of which the stream does not tell enough: the table looked otherwise for a while, or was
            truncated, which the stream does not put in order with other nodes'.
        keys: The touched keys by mirror; None of a table without a key, and for more than were held in memory.
        told: What the user is told; None where there is nothing.
    """

    tables: tuple[PostgresTable, ...]
    position: dict[str, Any]
    transactions: int
    rows: int
    unsure: frozenset[TableName]
    keys: Mapping[TableName, Collection[Key] | None]
    told: str | None = None


_EMPTY, _UNFINISHED = re.compile(rb"BM*C"), re.compile(rb"BM*\Z")
"""A transaction without anything but logical messages; one that has nothing else yet."""


class NodeLog(PostgresCapture):
    """The log of one node; its tables have the identities that they have there."""

    _takes_shards = True

    def read(
        self,
        position: Json,
        mark: int,
        text: str,
        fresh: Mapping[TableName, RemoteTable] | None = None,
        since: int = 0,
        plain: Collection[TableName] = (),
        published: Mapping[str, str] | None = None,
    ) -> NodeChanges:
        """Return what was committed between a position and a mark.

        Args:
            position: Where the node is landed.
            mark: The mark's position.
            text: What the mark says.
            fresh: Further tables that are copied anew.
            since: Where their copy begins.
            plain: Mirrors of which this node alone has all rows, so that its stream has them in order.
            published: Marks of the further tables in the publication, from before they were copied.

        Raises:
            UserError: `SOURCE_CHANGED`, `SLOT_LOST`, `CAPTURE_REMOVED`.
        """
        with connected(self._what.url) as connection:
            now = server(connection)
            told = self._check(connection, now, position)
            flush(connection)
            changes = self._read(connection, now, position, mark, text, plain)
            if fresh:
                again = NodeLog(replace(self._what, known=fresh), self._spool, most=self._most)
                of_fresh = {**position, "lsn": since, "published": published or {}}
                rest = again._read(connection, now, of_fresh, mark, text, plain)
                changes = _together(changes, rest)
        return replace(changes, told=told)

    def _read(
        self, connection: Connection, now: Server, position: Json, mark: int, text: str, plain: Collection[TableName]
    ) -> NodeChanges:
        parts: list[PostgresTable] = []
        collector = self._collector(position, parts, mark)
        log = self._peeked(connection, position["lsn"], mark, messages=True)
        collector.feed(_with_mark(log, mark, text))
        landed = (*parts, *self._written(collector.changes))
        emptied = {t.name for t in landed if t.spooled.truncated}
        # the marks from before: who alters the publication while it is read may keep changes of a later landing out
        published = {oid: at for oid, at in position["published"].items() if int(oid) in self._known}
        moved = self.placed(now, mark, position.get("changes", 0) + collector.rows, published)
        moved |= log_witness.landed(collector.last, position)
        return NodeChanges(
            landed,
            moved,
            collector.transactions,
            collector.rows,
            frozenset((emptied - set(plain)) | {self._mirrors[oid] for oid in collector.stale}),
            self._keys(collector, parts),
        )

    def follow_from(self, former: Mapping[TableName, RemoteTable]) -> None:
        """Read changes of tables that were made to a former shape, too.

        Args:
            former: Tables of the node that were altered, as they were before.
        """
        self._former = {table.oid: table for table in former.values()}

    def _keys(self, collector: Collector, parts: Sequence[PostgresTable]) -> dict[TableName, Collection[Key] | None]:
        found: dict[TableName, Collection[Key] | None] = {
            self._mirrors[oid]: changes.touched() if isinstance(changes, KeyedChanges) else None
            for oid, changes in collector.changes.items()
            if len(changes) or changes.truncated
        }
        return found | {part.name: None for part in parts}

    def _withdraw(self, connection: Connection, published: Mapping[str, str]) -> None:
        """Leave the publication as it is: the cluster's capture sees to it, which knows all tables."""


class CoordinatorLog(NodeLog):
    """The log of the coordinator, which also knows the tables by identity.

    Args as for `PostgresCapture`, and what checks tables of all placements.
    """

    checks: Any = None

    def _tables(self, connection: Connection, version: int, oids: Collection[int]) -> tuple[Found, ...]:
        """Return captured tables as they are now.

        Raises:
            UserError: `CAPTURE_REMOVED` for one whose changes are not in the log any more.
        """
        found = super()._tables(connection, version, oids)
        stored = other_storage(connection, [f.table for f in found])
        for f in found:
            if f.table.oid in stored:
                raise stop_reasons.removed(f"{f.table} is {stored[f.table.oid]} now, whose changes are not in the log.")
        return found

    def _checks(
        self,
        connection: Connection,
        names: Sequence[tuple[str, str]],
        known: Mapping[int, RemoteTable],
        parts: Mapping[tuple[str, str], Part],
    ) -> tuple[tuple[Check, ...], tuple[Found, ...]]:
        found: tuple[tuple[Check, ...], tuple[Found, ...]] = self.checks(connection, names, known, parts)
        return found


def _together(one: NodeChanges, other: NodeChanges) -> NodeChanges:
    return replace(
        one,
        position={**one.position, "published": {**one.position["published"], **other.position["published"]}},
        tables=(*one.tables, *other.tables),
        rows=one.rows + other.rows,
        unsure=one.unsure | other.unsure,
        keys={**one.keys, **other.keys},
    )


def flush(connection: Connection) -> int:
    """Flush the node's log, marks included; return up to where."""
    connection.execute("SELECT pg_logical_emit_message(true, 'headrace', '')")
    row = connection.execute("SELECT pg_current_wal_flush_lsn() - '0/0'").fetchone()
    assert row is not None, "a query without FROM has one row"
    return int(str(row[0]))


def _with_mark(log: Iterable[Bytes], mark: int, text: str) -> Iterator[Bytes]:
    """Pass messages on but for marks; refuse a log that lacks the mark of this cut.

    Transactions that have nothing but such messages are left out, too: those by which a log is flushed.
    """
    wanted, seen = PREFIX.encode() + b"\0" + len(text).to_bytes(4) + text.encode(), False
    begun: bytes | None = None  # by the end of the block before
    for block in log:
        joined = block if begun is None else Bytes.of([begun, *block])
        kinds = joined.values[joined.starts].tobytes()
        passed = np.frombuffer(kinds, np.uint8) != ord("M")
        seen = seen or any(joined[place][10:] == wanted for place in np.flatnonzero(~passed).tolist())
        for empty in _EMPTY.finditer(kinds):
            passed[empty.start() : empty.end()] = False
        unfinished = _UNFINISHED.search(kinds)
        begun = None if unfinished is None else joined[unfinished.start()]
        if unfinished is not None:
            passed[unfinished.start() :] = False
        yield joined.pick(np.flatnonzero(passed))
    if not seen:
        raise InternalError(
            "CAPTURE_DIVERGED",
            f"The log of a node does not have the mark {text} at {slots.lsn_of(mark)}; nothing was landed.",
            hint="Take a new snapshot with `headrace source resnapshot`, and please report this.",
        )


def on_node(
    connection: Connection, wanted: Mapping[TableName, RemoteTable], as_text: Collection[str]
) -> dict[TableName, RemoteTable]:
    """Return tables as a node has them, by name: identities are the node's own.

    Args:
        connection: To the node.
        wanted: The tables as the coordinator has them.
        as_text: Columns that are kept as text.

    Raises:
        EnvironmentFault: `SOURCE_IN_MOTION` for one that looks otherwise there.
    """
    names = [(t.schema, t.name) for t in wanted.values()]
    found = tables(connection, server(connection).version, names=names, as_text=as_text)
    by_name = {(f.table.schema, f.table.name): f.table for f in found}
    there = {}
    for mirror, table in wanted.items():
        here = by_name.get((table.schema, table.name))
        if here is None:
            continue  # a local table of the coordinator
        text = {c.name for c in table.columns if c.as_text}
        columns = tuple(replace(c, as_text=c.name in text) for c in here.columns)
        there[mirror] = replace(here, columns=columns)
        if not _alike(there[mirror], table):
            raise in_motion()
    return there


_PARTITIONS = """
SELECT n.nspname, c.relname, string_agg(concat_ws(':', p.oid, p.relfilenode), ',' ORDER BY p.oid)
FROM unnest(%s::text[], %s::text[]) AS w (schema, name) JOIN pg_namespace n ON n.nspname = w.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name,
    pg_partition_tree(c.oid) t JOIN pg_class p ON p.oid = t.relid
WHERE p.oid <> c.oid GROUP BY n.nspname, c.relname
"""


def partitions_on(connection: Connection, wanted: Collection[RemoteTable]) -> dict[str, str]:
    """Return texts that change when a node empties a partition, by the tables' oids at the head.

    No message tells of it, and the coordinator's own partitions stay as they are.

    Args:
        connection: To the node.
        wanted: The partitioned tables as the coordinator has them.
    """
    names = [t.schema for t in wanted], [t.name for t in wanted]
    marks = {(schema, name): str(mark) for schema, name, mark in connection.execute(_PARTITIONS, names).fetchall()}
    return {str(t.oid): marks[t.schema, t.name] for t in wanted if (t.schema, t.name) in marks}


def narrower(table: RemoteTable, former: RemoteTable) -> RemoteTable:
    """Return a table of a node as it was before it gained columns.

    Args:
        table: As the node has it now.
        former: As the coordinator had it before.
    """
    names = {c.name for c in former.columns}
    return replace(table, columns=tuple(c for c in table.columns if c.name in names))


def _alike(one: RemoteTable, other: RemoteTable) -> bool:
    def seen(table: RemoteTable) -> object:
        columns = [(c.name, c.modifier, c.base, c.base_modifier, c.element) for c in table.columns]
        return columns, table.identity, sorted(table.key)

    return seen(one) == seen(other)
