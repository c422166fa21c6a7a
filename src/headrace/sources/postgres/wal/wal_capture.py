"""Captures PostgreSQL tables from the write-ahead log.

The position is that of commits: all transactions whose commit record begins before `lsn` are landed. It is published
with their rows, and only then is the slot moved, so that a crash repeats and never skips; what the slot gives again is
left out by its position (`collector.py`).

A table whose mirror is no longer right (`tables.RemoteTable.same_shape`) and cannot be made so by altering its columns
(`evolving.py`), or that is to be taken anew or added, is copied at one cut with all others: a snapshot is exported at a
position S, the stream is landed exactly up to S, and both are published together.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from psycopg import sql

from headrace.errors import UserError
from headrace.names import TableName
from headrace.sources.capture import Json, Landing
from headrace.sources.postgres.connection import Connection, connected, in_motion
from headrace.sources.postgres.health import stop_reasons
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import Found, Server, server, settled, tables
from headrace.sources.postgres.setup import preflight
from headrace.sources.postgres.setup.projection import (
    Part,
    as_before,
    as_published,
    by_present_names,
    narrowed,
)
from headrace.sources.postgres.snapshot.copy_ledger import Ledger
from headrace.sources.postgres.snapshot.resume_snapshot import Touched, copied_on, keys_of
from headrace.sources.postgres.snapshot.snapshots import Told, copied
from headrace.sources.postgres.spool.landed_table import PostgresTable
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.table_names import NAMES, with_names
from headrace.sources.postgres.wal import log_witness, slots
from headrace.sources.postgres.wal.followed_ddl import followed
from headrace.sources.postgres.wal.net_changes import Key, KeyedChanges, WeighedChanges
from headrace.sources.postgres.wal.net_collector import MOST, Collector
from headrace.sources.postgres.wal.pgoutput_columns import Bytes
from headrace.sources.postgres.wal.server_promotion import require_goes_on
from headrace.sources.source_kind import Check

LIMIT = 1_000_000
"""Messages of one landing, about; a transaction is never cut. What they come to is spilled as it grows."""

IDLE_BYTES = 16 << 20
"""Bytes of write-ahead log without a captured change that are worth moving the slot."""


@dataclass(frozen=True, slots=True)
class Captured:
    """Options and mirrors of a captured source.

    Args:
        url: Connection string, without a password.
        slot: Name of the slot and of the publication.
        names: The mirrors' tables, by schema and name.
        as_text: Columns kept as text, as `schema.table.column`.
        known: The tables as the mirrors were made of them; without those that were never landed, or are gone.
        gone: Mirrors whose table was dropped.
        parts: What is captured of tables of which not all is.
        position: What is landed; None before the first landing.
        failover: Replicas keep the slot in step, and capture goes on where one is promoted.
    """

    url: str
    slot: str
    names: Mapping[TableName, tuple[str, str]]
    as_text: tuple[str, ...] = ()
    known: Mapping[TableName, RemoteTable] = field(default_factory=dict)
    gone: frozenset[TableName] = frozenset()
    position: Json | None = None
    parts: Mapping[TableName, Part] = field(default_factory=dict)
    failover: bool = False


class PostgresCapture:
    """Captures one source; see `Capture`.

    Args:
        captured: What is captured.
        spool: Where rows are written.
        limit: Messages of one landing, about.
        most: Changes that are held in memory at most.
        told: Told how far a snapshot is.
    """

    _takes_shards = False
    """True where tables are captured whose rows Citus keeps in shards."""

    def __init__(
        self,
        captured: Captured,
        spool: Spool,
        *,
        limit: int = LIMIT,
        most: int = MOST,
        told: Told = lambda _: None,
    ) -> None:
        self._what = captured
        self._spool = spool
        self._limit = limit
        self._most = most
        self._told = told
        self.installed = False
        self._mirrors = {table.oid: name for name, table in captured.known.items()}
        self._former: Mapping[int, RemoteTable] = {}
        self._between = False
        self._copying = False
        self._notices: tuple[str, ...] = ()

    # ---- the protocol

    def begin(self) -> Landing:
        """Install publication and slot, and take or resume the first snapshot."""
        with connected(self._what.url) as connection:
            now = server(connection)
            found = self._required(connection, now, self._begun_with(connection, now), anew=True)
            wanted = {mirror: f.table for mirror, f in found.items()}
            ledger = self._left(connection, now, wanted)
            self.installed = True
            if ledger is None:
                slots.drop_slot(connection, self._what.slot)
                slots.publish_tables(connection, self._what.slot, tuple(wanted.values()), now.version, anew=True)
            published = slots.published(connection, self._what.slot)
            wanted = as_published(connection, self._what.slot, wanted)
            once = None if ledger is None else f"headrace_tmp_{uuid.uuid4().hex[:12]}"
            slot = slots.exported(
                self._what.url,
                once or self._what.slot,
                temporary=once is not None,
                failover=self._what.failover,
                told=self._told,
            )
            with self._locked(connection, wanted) as locked, slot as (start, snapshot):

                def touched(tables: Mapping[TableName, RemoteTable]) -> Iterator[tuple[TableName, set[Key] | None]]:
                    log = self._peeked(connection, kept.mark["lsn"], start)
                    return keys_of(chain.from_iterable(log), tables)

                kept = ledger or Ledger(self._spool, self._mark(now, {"published": published, "lsn": start}))
                landed = self._copied_on(locked, snapshot, kept, touched)
        rows = sum(t.spooled.rows for t in landed)
        position = self.placed(now, start, self._counted + rows, published)
        if once is None:  # else the slot begins earlier
            position |= log_witness.NOTHING
        position |= {NAMES: {str(t.oid): str(t) for t in wanted.values()}}
        return Landing(landed, position, True, 0, rows, True, notices=self._notices, begins=True)

    def land(self, position: Json) -> Landing:
        """Read changes committed since a position."""
        with connected(self._what.url) as connection:
            now = server(connection)
            told = self._check(connection, now, position)
            landing = self._landed(connection, now, position)
        return landing if told is None else replace(landing, keep_position=True, notices=(*landing.notices, told))

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        """Land up to a new snapshot of some mirrors' tables, and that snapshot.

        Args:
            position: Up to where the source is landed.
            mirrors: The mirrors to copy again; also ones never landed before.
        """
        with connected(self._what.url) as connection:
            now = server(connection)
            self._check(connection, now, position)
            wanted = self._required(connection, now, mirrors)
            found = self._tables(connection, now.version, self._known)
            same = {f.table.oid for f in found if f.table.same_shape(self._known[f.table.oid])}
            same -= {f.table.oid for f in wanted.values()} | {self._oid(m) for m in mirrors}
            stale = self._stale(connection, now, same, found)
            landing = self._replacing(connection, now, position, {**stale, **wanted})
            landing = with_names(connection, landing, position, self._what.known, [f.table for f in found])
            return replace(landing, notices=(*landing.notices, *self._notices), caught_up=True)

    def acknowledge(self, position: Json) -> None:
        """Move the slot."""
        with connected(self._what.url) as connection:
            slots.advance(connection, self._what.slot, position["lsn"])

    def tidy(self) -> None:
        """Take tables that have no mirror out of the publication."""
        with connected(self._what.url) as connection:
            self._withdraw(connection, slots.published(connection, self._what.slot))

    def remove(self) -> None:
        """Drop slot and publication."""
        with connected(self._what.url) as connection:
            slots.drop_slot(connection, self._what.slot)
            slots.drop_publication(connection, self._what.slot)
        self._spool.clear()

    def clear(self) -> None:
        """Remove this landing's files, but for those of an unfinished first snapshot."""
        if not self._copying:
            self._spool.clear()

    def sweep(self, age: dt.timedelta | None) -> None:
        """Remove the files of landings that did not end."""
        self._spool.sweep(age)

    # ---- for other ways to capture

    def present(self, connection: Connection) -> tuple[Found, ...]:
        """Return the tables of the mirrors as they are now."""
        return self._tables(connection, server(connection).version, self._known)

    def up_to(self, connection: Connection, position: Json, until: int) -> Landing:
        """Return all changes committed between two places in the log.

        Args:
            connection: To the server.
            position: Up to where the source is landed.
            until: The later place, a position as a number.

        Raises:
            EnvironmentFault: `SOURCE_IN_MOTION` when a table was altered between them.
        """
        now = server(connection)
        self._check(connection, now, position)
        parts: list[PostgresTable] = []
        collector = self._collector(position, parts, until)
        collector.feed(self._peeked(connection, position["lsn"], until))
        if collector.stale:
            raise in_motion()
        landed = (*parts, *self._written(collector.changes))
        moved = self.placed(now, until, position["changes"] + collector.rows, position["published"])
        moved |= log_witness.landed(collector.last, position)
        return Landing(landed, moved, True, collector.transactions, collector.rows, False)

    # ---- changes

    def _landed(self, connection: Connection, now: Server, position: Json) -> Landing:
        parts: list[PostgresTable] = []
        until = settled(connection)
        collector = self._collect(connection, position, until, self._limit, parts)
        found = self._tables(connection, now.version, self._known)
        landing = self._brought(connection, now, position, until, collector, parts, found)
        return with_names(connection, landing, position, self._what.known, [f.table for f in found])

    def _brought(
        self,
        connection: Connection,
        now: Server,
        position: Json,
        until: int,
        collector: Collector,
        parts: list[PostgresTable],
        found: Sequence[Found],
    ) -> Landing:
        """Return the landing of what was collected, by the way that the tables' shapes ask for."""
        same = {f.table.oid for f in found if f.table.same_shape(self._known[f.table.oid])} - collector.stale
        outdated = self._known.keys() - same
        ways: list[tuple[Collection[int], int | None]] = [(outdated, None)] if self._followable(found, same) else []
        if ways and collector.messages >= self._limit:
            ways.insert(0, (collector.stale, self._limit))  # the others come in a later part of the stream
        if not (ways[0][0] if ways else outdated):
            return self._landing(replace(now, position=until), collector, position, parts)
        for altered, limit in ways:  # what was altered several times is read to its end: no later part knows how
            if landing := self._reshaping(connection, now, position, found, altered, limit):
                return landing
        return self._replacing(connection, now, position, self._stale(connection, now, same, found))

    @property
    def _known(self) -> dict[int, RemoteTable]:
        return {table.oid: table for table in self._what.known.values()}

    def _collect(
        self, connection: Connection, position: Json, until: int, limit: int | None, parts: list[PostgresTable]
    ) -> Collector:
        collector = self._collector(position, parts)
        if until > position["lsn"]:
            collector.feed(self._peeked(connection, position["lsn"], until, limit))
        if limit is None or collector.messages < limit:
            collector.end = max(collector.end, until)
        return collector

    def _peeked(
        self, connection: Connection, since: int, until: int, limit: int | None = None, *, messages: bool = False
    ) -> Iterator[Bytes]:
        """Yield what the slot gives up to a position; fail where it began too late.

        Whoever moves the slot in the moment before it is read is not noticed by a look before that.

        Args:
            connection: To the server.
            since: Everything from here on must be there.
            until: Up to where; see `slots.peek`.
            limit: How many messages, about; None for no limit.
            messages: Also those that are about no table.

        Raises:
            UserError: `SLOT_LOST`.
        """
        name = self._what.slot
        yield from slots.peek(connection, name, name, until, limit, messages=messages)
        self._require_unmoved(slots.find_slot(connection, name), since)

    def _require_unmoved(self, slot: slots.Slot | None, since: int) -> slots.Slot:
        """Return a slot that has everything from a position on.

        Raises:
            UserError: `SLOT_LOST`.
        """
        if slot is None or slot.lost:
            raise stop_reasons.lost(self._what.slot, slot)
        if slot.confirmed > since:
            raise stop_reasons.moved(self._what.slot)
        return slot

    def _collector(self, position: Json, parts: list[PostgresTable], until: int | None = None) -> Collector:
        """Return a collector that writes what it has as parts when that has become much."""

        def spill(changes: Mapping[int, KeyedChanges | WeighedChanges]) -> None:
            parts.extend(self._written(changes))

        landed = position["lsn"]
        return Collector(self._known, landed, until, spill, self._most, former=self._former, between=self._between)

    def _landing(self, now: Server, collector: Collector, position: Json, parts: list[PostgresTable]) -> Landing:
        end = max(collector.end, position["lsn"])
        changed = (*parts, *self._written(collector.changes))
        caught_up = end >= now.position
        keep_position = bool(changed) or not caught_up or end - position["lsn"] >= IDLE_BYTES
        moved = self.placed(now, end, position["changes"] + collector.rows, position["published"])
        moved |= log_witness.landed(collector.last, position)
        return Landing(changed, moved, keep_position, collector.transactions, collector.rows, caught_up)

    def _written(self, by_table: Mapping[int, KeyedChanges | WeighedChanges]) -> Iterator[PostgresTable]:
        for oid, changes in by_table.items():
            if len(changes) or changes.truncated:
                table = self._known[oid]
                former, spooled = self._former.get(oid, table), self._spool.write_changes(table, changes)
                if not spooled.empty or spooled.truncated:
                    yield PostgresTable(self._mirrors[oid], table, spooled, former=former)

    # ---- altered tables

    def _followable(self, found: Sequence[Found], same: set[int]) -> bool:
        """Return whether altering columns alone makes all outdated mirrors right."""
        known, shapes = self._known, {f.table.oid: f for f in found}
        return shapes.keys() == known.keys() and all(
            not shapes[oid].table.same_shape(known[oid]) and followed(shapes[oid], known[oid])
            for oid in known.keys() - same
        )

    def _reshaping(
        self,
        connection: Connection,
        now: Server,
        position: Json,
        found: Sequence[Found],
        altered: Collection[int],
        limit: int | None,
    ) -> Landing | None:
        """Land altered tables with all rows from before; None where one must be copied anew.

        A row of the former shape that came only after the mirror has the new one would have the table copied: what is
        read ends behind the alterations, which are in `found`.
        """
        known, shapes = self._known, {f.table.oid: f.table for f in found}
        until = settled(connection)
        there = {n: shapes[t.oid] if t.oid in altered else t for n, t in self._what.known.items()}
        capture = PostgresCapture(replace(self._what, known=there), self._spool, most=self._most)
        capture._former, capture._between = {oid: known[oid] for oid in altered}, limit is None
        parts: list[PostgresTable] = []
        collector = capture._collect(connection, position, until, limit, parts)
        again = self._tables(connection, now.version, known)
        if collector.stale or [f.table for f in again] != [f.table for f in found]:
            return None
        landing = capture._landing(replace(now, position=until), collector, position, parts)
        silent = set(altered) - {t.table.oid for t in landing.tables if isinstance(t, PostgresTable)}
        bare = tuple(
            PostgresTable(self._mirrors[oid], shapes[oid], Spooled(None, 0), former=known[oid]) for oid in silent
        )
        return replace(landing, tables=(*landing.tables, *bare), keep_position=True)

    # ---- snapshots

    def _stale(
        self, connection: Connection, now: Server, same: set[int], found: Sequence[Found]
    ) -> dict[TableName, Found | None]:
        """Return outdated mirrors with their present tables; None for dropped ones.

        Another table takes a dropped one's place if it has the name that the source was created with, whatever the
        dropped one was called at last.
        """
        again = {f.table.oid: f for f in found}
        stale = {n: t for n, t in self._what.known.items() if t.oid not in same}
        missing = {n: self._what.names[n] for n, t in stale.items() if t.oid not in again}
        recreated = tables(connection, now.version, names=list(missing.values()), as_text=self._what.as_text)
        by_name = {(f.table.schema, f.table.name): f for f in recreated if f.table.oid not in self._known}
        back = {n: by_name[of] for n, of in missing.items() if of in by_name}
        new = {n: narrowed(f, self._what.parts.get(n, Part())) for n, f in back.items()}
        return {n: again.get(t.oid) or new.get(n) for n, t in stale.items()}

    def _replacing(
        self, connection: Connection, now: Server, position: Json, anew: Mapping[TableName, Found | None]
    ) -> Landing:
        """Land up to a new snapshot of some tables, and that snapshot.

        The log is read before they are copied. What is met there stays, so that trying again would meet it again: a
        table that was to be kept, and looked otherwise for a while, is copied with them.

        Args:
            connection: The connection.
            now: The server.
            position: What is landed.
            anew: The mirrors that are taken anew, with their tables; None for those that are gone.
        """
        wanted = {n: f for n, f in anew.items() if f is not None}
        role = _role(connection)
        for f in wanted.values():
            preflight.require(preflight.check_table(f, role))
        kept = {n: t for n, t in self._what.known.items() if n not in anew}
        self._distinct([*(t.oid for t in kept.values()), *(f.table.oid for f in wanted.values())])
        others = self._tables(connection, now.version, [t.oid for t in kept.values()])
        preflight.require(preflight.check_apart([*others, *wanted.values()]))
        present = {f.table.oid: f.table for f in others}
        listed = {n: present.get(t.oid, t) for n, t in kept.items()} | {n: f.table for n, f in wanted.items()}
        listed = as_published(connection, self._what.slot, listed)  # columns may have other names in conditions by now
        slots.publish_tables(connection, self._what.slot, tuple(listed.values()), now.version)
        published = slots.published(connection, self._what.slot) | {
            str(t.oid): position["published"].get(str(t.oid)) for t in kept.values()
        }
        mine = replace(self._what, known=kept)
        rest = PostgresCapture(mine, self._spool, most=self._most)
        copying = as_published(connection, self._what.slot, {n: f.table for n, f in wanted.items()})
        with self._locked(connection, copying) as locked:
            temporary = f"headrace_tmp_{uuid.uuid4().hex[:12]}"
            with slots.exported(self._what.url, temporary, temporary=True, told=self._told) as (start, snapshot):
                parts: list[PostgresTable] = []
                collector = rest._collector(position, parts, start)
                if kept:  # else what is in the log does not matter, and perhaps cannot be read
                    collector.feed(self._peeked(connection, position["lsn"], start))
                fresh = () if collector.stale else self._copied(locked, snapshot)
        if collector.stale:
            again = {self._mirrors[f.table.oid]: f for f in others if f.table.oid in collector.stale}
            if len(again) < len(collector.stale):  # dropped meanwhile
                raise in_motion()
            return self._replacing(connection, now, position, {**anew, **again})
        landed = (*parts, *rest._written(collector.changes), *fresh)
        rows = collector.rows + sum(t.spooled.rows for t in fresh)
        moved = self.placed(now, start, position["changes"] + rows, published)
        if kept:
            moved |= log_witness.landed(collector.last, position)
        gone = tuple(n for n, f in anew.items() if f is None)
        return Landing(landed, moved, True, collector.transactions, rows, False, gone)

    @contextmanager
    def _locked(
        self, connection: Connection, wanted: Mapping[TableName, RemoteTable]
    ) -> Iterator[Mapping[TableName, RemoteTable]]:
        """Lock tables against DDL and TRUNCATE, not against changes; yield their shapes."""
        with connected(self._what.url) as holder, holder.transaction():
            if wanted:
                listed = sql.SQL(", ").join(
                    sql.SQL("ONLY {}").format(sql.Identifier(t.schema, t.name)) for t in wanted.values()
                )
                holder.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(listed))
            version = server(connection).version
            oids = [t.oid for t in wanted.values()]
            found = tables(holder, version, oids=oids, as_text=self._what.as_text, known=self._known)
            now = {f.table.oid: f for f in found}
            if now.keys() != set(oids):
                raise in_motion()  # dropped, and there is another one of that name
            yield {name: as_before(now[table.oid], table).table for name, table in wanted.items()}

    def _copied(self, wanted: Mapping[TableName, RemoteTable], snapshot: str) -> tuple[PostgresTable, ...]:
        """Return rows of tables in an exported snapshot."""
        spooled = copied(self._what.url, snapshot, wanted, self._spool, self._told)
        former = self._what.known
        return tuple(PostgresTable(n, t, spooled[n], True, former.get(n)) for n, t in wanted.items())

    def _copied_on(
        self, wanted: Mapping[TableName, RemoteTable], snapshot: str, ledger: Ledger, touched: Touched
    ) -> tuple[PostgresTable, ...]:
        """Return rows of a first snapshot's tables, as far as earlier attempts have not copied them."""
        self._copying = True
        spooled = copied_on(self._what.url, snapshot, wanted, self._spool, self._told, ledger, touched)
        self._copying = False
        former = self._what.known
        return tuple(PostgresTable(n, t, spooled[n], True, former.get(n)) for n, t in wanted.items())

    def _left(self, connection: Connection, now: Server, wanted: Mapping[TableName, RemoteTable]) -> Ledger | None:
        """Return the ledger of a killed first snapshot if all changes since are known."""
        slot, published = slots.find_slot(connection, self._what.slot), slots.published(connection, self._what.slot)
        if slot is None or slot.lost or published.keys() != {str(t.oid) for t in wanted.values()}:
            return None
        ledger = Ledger(self._spool, self._mark(now, {"published": published, "lsn": slot.confirmed}))
        return ledger if ledger.continues else None

    def _mark(self, now: Server, installed: Json) -> dict[str, Any]:
        """Return the identity of a first snapshot: installation and published position."""
        return {"system": now.system, "timeline": now.timeline, "position": self._what.position, **installed}

    # ---- surroundings

    @property
    def _counted(self) -> int:
        """Return the number of changes landed before the source began anew."""
        return int((self._what.position or {}).get("changes", 0))

    def _tables(self, connection: Connection, version: int, oids: Collection[int]) -> tuple[Found, ...]:
        """Return captured tables as they are now, as far as they are captured.

        Raises:
            UserError: `CAPTURE_REMOVED` for one whose rows are in shards by now.
        """
        found = tables(connection, version, oids=oids, as_text=self._what.as_text, known=self._known)
        for f in found:
            if f.sharded and not self._takes_shards:
                raise stop_reasons.removed(f"{f.table} is {f.sharded} now, whose changes this source does not capture.")
        return tuple(as_before(f, self._known[f.table.oid]) for f in found)

    def _begun_with(self, connection: Connection, now: Server) -> tuple[TableName, ...]:
        """Return the mirrors that a first snapshot fills: all but those whose table is gone."""
        there = tables(connection, now.version, names=[self._what.names[n] for n in self._what.gone])
        back = {(f.table.schema, f.table.name) for f in there}
        return tuple(n for n, of in self._what.names.items() if n not in self._what.gone or of in back)

    def _required(
        self, connection: Connection, now: Server, mirrors: Collection[TableName], *, anew: bool = False
    ) -> dict[TableName, Found]:
        """Return the mirrors' present tables, by identity if landed from this server.

        Args:
            connection: The connection.
            now: The server.
            mirrors: The mirrors.
            anew: The slot, if it is still there, makes room for another one.

        Raises:
            UserError: `SOURCE_NOT_READY`, `DUPLICATE_TABLE`, `COLUMN_NOT_FOUND`.
        """
        landed = self._what.position or {}
        known = self._known if landed.get("system") == now.system else {}  # elsewhere identities mean nothing
        former = {f.table.oid: f.table for f in tables(connection, now.version, oids=known)}
        names = {n: self._what.names[n] for n in mirrors}
        parts = {n: self._what.parts.get(n, Part()) for n in mirrors}
        marks, published = landed.get("published", {}), slots.published(connection, self._what.slot)
        ours = {n: t for n, t in self._what.known.items() if marks.get(str(t.oid)) == published.get(str(t.oid))}
        for name, table in {**self._what.known, **as_published(connection, self._what.slot, ours)}.items():
            if name in names and table.oid in former:
                names[name] = (former[table.oid].schema, former[table.oid].name)
                parts[name] = by_present_names(parts[name], table, former[table.oid])
        wanted = {names[n]: part for n, part in parts.items()}
        checks, found = self._checks(connection, tuple(names.values()), known, wanted)
        if anew and slots.find_slot(connection, self._what.slot) is not None:
            checks = tuple(c for c in checks if c.name != "slots")
        preflight.require(checks)
        self._check_text_columns([f for f in found if f.table.oid not in known])
        self._notices = tuple(f"Table {f.table}: {f.without}." for f in found if f.without)
        by_name = {(f.table.schema, f.table.name): f for f in found}
        self._distinct([by_name[of].table.oid for of in names.values()])
        return {mirror: by_name[of] for mirror, of in names.items()}

    def _checks(
        self,
        connection: Connection,
        names: Sequence[tuple[str, str]],
        known: Mapping[int, RemoteTable],
        parts: Mapping[tuple[str, str], Part],
    ) -> tuple[tuple[Check, ...], tuple[Found, ...]]:
        """Check what capturing tables needs; return them as they were found, too."""
        return preflight.check(connection, names, self._what.as_text, known, parts, self._what.failover)

    def _check_text_columns(self, found: Sequence[Found]) -> None:
        fresh = {f"{f.table.schema}.{f.table.name}" for f in found}
        there = {f"{f.table.schema}.{f.table.name}.{c.name}" for f in found for c in f.table.columns}
        meant = [name for name in self._what.as_text if name.rpartition(".")[0] in fresh]
        strange = [] if self._what.known else [name for name in self._what.as_text if name not in meant]
        if missing := [*strange, *(name for name in meant if name not in there)]:
            raise UserError(
                "COLUMN_NOT_FOUND",
                f"No captured table has the column {missing[0]}, which should be kept as text.",
                hint="Write schema.table.column, of a table that is captured.",
            )

    @staticmethod
    def _distinct(oids: Sequence[int]) -> None:
        if len(set(oids)) < len(oids):
            raise UserError(
                "DUPLICATE_TABLE",
                "Two mirrors of one source would follow the same table.",
                hint="Name each table once; stream tables may read one mirror as often as they like.",
            )

    def _oid(self, mirror: TableName) -> int | None:
        return self._what.known[mirror].oid if mirror in self._what.known else None

    def _withdraw(self, connection: Connection, published: Mapping[str, str]) -> None:
        """Remove tables from the publication that no mirror has any more."""
        if strange := {int(oid) for oid in published} - self._known.keys():
            slots.withdraw(connection, self._what.slot, strange)

    @staticmethod
    def placed(now: Server, lsn: int, changes: int, published: Mapping[str, str]) -> dict[str, Any]:
        """Return the source's new position.

        Args:
            now: The server.
            lsn: Up to where it is landed, as a number.
            changes: How many changes were landed since the source began.
            published: Marks of the publication's tables by oid, as `slots.published` returns them.
        """
        server = {"system": now.system, "timeline": now.timeline}
        return {"lsn": lsn, "changes": changes, **server, "published": dict(published)}

    def _check(self, connection: Connection, now: Server, position: Json) -> str | None:
        """Refuse to go on where changes may be missed; return a notice where it can go on.

        Raises:
            UserError: `SOURCE_CHANGED`, `SLOT_LOST`, `CAPTURE_REMOVED`; a new snapshot cures them.
        """
        found = slots.find_slot(connection, self._what.slot)
        told = require_goes_on(self._what.url, now, position, found, self._what.failover)
        if now.position < position["lsn"]:
            raise stop_reasons.changed("The source's server went back to an earlier state.")
        slot = self._require_unmoved(found, position["lsn"])
        published = slots.published(connection, self._what.slot)
        marks = position["published"]
        changed = [o for o in self._known if str(o) not in marks or marks[str(o)] != published.get(str(o))]
        if still := tables(connection, now.version, oids=changed) if changed else ():
            first, oid = str(still[0].table), str(still[0].table.oid)
            what = slots.what_happened(connection, self._what.slot, first, marks.get(oid), published.get(oid))
            raise stop_reasons.removed(what)
        if slot.confirmed < position["lsn"]:
            log_witness.require_same_log(connection, self._what.slot, slot.confirmed, position)
            slots.advance(connection, self._what.slot, position["lsn"])
        self._withdraw(connection, published)
        return told


def _role(connection: Connection) -> str:
    row = connection.execute("SELECT current_user::text").fetchone()
    return str(row[0]) if row else ""
