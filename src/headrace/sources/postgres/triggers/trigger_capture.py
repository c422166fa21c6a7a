"""Captures tables by triggers that write old and new rows to change tables.

**The position** is a snapshot: which transactions are over. A landing takes, in one repeatable-read transaction, all
changes whose transaction is over in its own snapshot and was not in the position. So a transaction's changes are landed
together, by the first landing after its commit, however long it took, whatever began or ended meanwhile, and prepared
transactions and subtransactions too: a snapshot knows the outermost transaction, whose id each change carries. The new
snapshot is published with the rows; only then the changes it shows are deleted. A crash between the two leaves changes
that the position already shows, and they are not taken again.

**The order of changes** does not matter, so that it need not be known: triggers give whole old and new rows, and what
changes a mirror is the sum of new rows minus the sum of old ones, which is the same in every order. That holds for
tables without a key, for equal rows, for keys that are swapped or violated for a moment, and for several transactions
that changed one row between two landings.

TRUNCATE is the exception: it takes rows away without naming them. What counts is the last one that the landing's
snapshot shows, and what was written after it (`truncations`); where that cannot be told, the table is taken anew.

**The shape** of a table is read in the same snapshot as its changes. When it is not that of the mirror, the triggers
are made anew first, so that each transaction that is not over then has its changes captured in the new shape; then the
table is copied in a snapshot taken after that, in which the changes of all other tables are landed, too: one cut.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from headrace.errors import EnvironmentFault
from headrace.names import TableName
from headrace.sources.capture import Json, Landing
from headrace.sources.postgres.connection import Connection, connected, in_motion
from headrace.sources.postgres.health import stop_reasons
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import Found, Server, server, tables
from headrace.sources.postgres.setup import preflight
from headrace.sources.postgres.setup.projection import Part, by_present_names
from headrace.sources.postgres.snapshot.copy_ledger import Ledger
from headrace.sources.postgres.snapshot.open_transactions import Waiting
from headrace.sources.postgres.snapshot.resume_snapshot import key_places, keys_in
from headrace.sources.postgres.snapshot.snapshots import Told
from headrace.sources.postgres.spool.landed_table import PostgresTable
from headrace.sources.postgres.spool.landing_sql import WEIGHED, Spooled
from headrace.sources.postgres.spool.spool import Spool, csv_texts
from headrace.sources.postgres.table_names import NAMES, with_names
from headrace.sources.postgres.triggers import install_triggers, transaction_snapshots
from headrace.sources.postgres.triggers.change_tables import (
    EMPTIED,
    PER_PARTITION,
    PER_TABLE,
    changes_of,
    reading,
    reading_keys,
    suffix_of,
)
from headrace.sources.postgres.triggers.row_conditions import as_read
from headrace.sources.postgres.triggers.tampering import deleted_changes, what_happened, what_is_missing
from headrace.sources.postgres.triggers.trigger_requirements import casting, fitness, installed
from headrace.sources.postgres.triggers.trim import trim_change_tables
from headrace.sources.postgres.triggers.truncations import Truncation, truncations
from headrace.sources.postgres.wal import log_witness, slots
from headrace.sources.postgres.wal.net_changes import Key
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.postgres.wal.server_promotion import other_server
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured, PostgresCapture

if TYPE_CHECKING:
    import pyarrow as pa
    from pyroaring import BitMap64


def _no_ids() -> BitMap64:
    """Return a set for numbers that lie close together: millions of ids take a bit each."""
    from pyroaring import BitMap64

    return BitMap64()


@dataclass(slots=True)
class Tally:
    """Counts of rows and transactions read from change tables.

    Args:
        transactions: Ids of the transactions.
        images: Old and new rows.
        before: Old rows of updates.
        after: New rows of updates; with a row filter not as many.
        deleted: Old rows that were among it.
    """

    transactions: BitMap64 = field(default_factory=_no_ids)
    images: int = 0
    before: int = 0
    after: int = 0
    deleted: int = 0

    @property
    def rows(self) -> int:
        """Return how many rows were changed."""
        return self.images - min(self.before, self.after)

    def weighed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches with a weight instead of transaction and operation."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in batches:
            xids, ops, columns = batch.column(0), batch.column(1), batch.columns[2:]
            self.transactions.update(pc.unique(xids).to_numpy())
            deleted = pc.sum(pc.less(ops, 0)).as_py()
            self.deleted += deleted
            self.images += batch.num_rows
            self.before += pc.sum(pc.equal(ops, -2)).as_py()
            self.after += pc.sum(pc.equal(ops, 2)).as_py()
            weights = pc.sign(ops).cast(pa.int32())
            yield pa.RecordBatch.from_arrays([*columns, weights], names=[*batch.schema.names[2:], WEIGHED])


class TriggerCapture(PostgresCapture):
    """Captures one source by triggers; see `Capture`. Snapshots are taken as in the other way."""

    def __init__(
        self,
        captured: Captured,
        spool: Spool,
        *,
        limit: int = LIMIT,
        most: int = MOST,
        told: Told = lambda _: None,
    ) -> None:
        known = {n: replace(t, identity="f") for n, t in captured.known.items()}
        super().__init__(replace(captured, known=known), spool, limit=limit, most=most, told=told)

    # ---- the protocol

    def begin(self) -> Landing:
        """Install triggers and take the first snapshot, or resume one."""
        with connected(self._what.url) as connection:
            now = server(connection)
            wanted = self._wanted(connection, now, self._begun_with(connection, now))
            ledger = self._begun(connection, now, wanted)
            self.installed = True
            if ledger is None:
                install_triggers.remove(connection, self._schema)
                install_triggers.create_schema(connection, self._schema)
            landing = self._anew(connection, now, wanted, {}, None, (), ledger, first=True)
            landing = with_names(connection, landing, {}, {}, list(wanted.values()))
            landing = replace(landing, notices=(*landing.notices, *self._notices), begins=True, caught_up=True)
            return self._witnessed(connection, landing)

    def land(self, position: Json) -> Landing:
        """Read the changes of the transactions that have come to their end since a position."""
        with connected(self._what.url) as connection:
            now = server(connection)
            known = self._what.known
            try:
                with transaction_snapshots.moment(connection, self._change_tables(known)) as at:
                    self._check_server(connection, now, position, at)
                    found = self._tables(connection, now.version, self._known)
                    same = self._right(connection, position, found)
                    landing = None
                    if same == set(self._known):
                        self._check_captured(connection, position, known)
                        landing = self._changes(connection, now, position, known, at)
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
                tables = [(self._suffix(n), t) for n, t in known.items()]
                raise stop_reasons.removed(what_is_missing(connection, self._schema, tables)) from error
            if landing is None:
                stale = self._stale(connection, now, same, found)
                role = transaction_snapshots.one(connection, "SELECT current_user")
                for f in stale.values():
                    preflight.require(preflight.check_table_for_triggers(connection, f, role) if f else ())
                landing = self._taking_anew(
                    connection, now, position, {n: _whole(f).table if f else None for n, f in stale.items()}
                )
            landing = with_names(connection, landing, position, known, [f.table for f in found])
            return self._witnessed(connection, landing) if landing.keep_position else landing

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        """Land up to a new snapshot of some mirrors' tables, and that snapshot.

        Args:
            position: Up to where the source is landed.
            mirrors: The mirrors to copy again; also ones never landed before.
        """
        with connected(self._what.url) as connection:
            now = server(connection)
            wanted = self._wanted(connection, now, mirrors)
            with transaction_snapshots.moment(connection) as at:
                self._check_server(connection, now, position, at)
                found = self._tables(connection, now.version, self._known)
                same = self._right(connection, position, found)
                whole = {
                    n for n, t in self._what.known.items() if t.oid in same and self._intact(connection, position, n)
                }
            stale = self._stale(connection, now, same, found)
            anew = {**{n: _whole(f).table if f else None for n, f in stale.items()}, **wanted}
            landing = self._taking_anew(connection, now, position, anew, whole)
            landing = with_names(connection, landing, position, self._what.known, [f.table for f in found])
            notices = (*landing.notices, *self._notices)
            return self._witnessed(connection, replace(landing, notices=notices, caught_up=True))

    def acknowledge(self, position: Json) -> None:
        """Delete landed changes, and the capture of tables without a mirror."""
        with connected(self._what.url) as connection:
            self._withdraw_strange(connection)
            install_triggers.settle_beginnings(connection, self._schema)
            trim_change_tables(connection, self._schema, position["snapshot"])

    def tidy(self) -> None:
        """Stop capturing tables without a mirror."""
        with connected(self._what.url) as connection:
            self._withdraw_strange(connection)

    def remove(self) -> None:
        """Drop triggers, functions and change tables."""
        with connected(self._what.url) as connection:
            install_triggers.remove(connection, self._schema)
        self._spool.clear()

    # ---- for another way to capture

    def shown_by(self, snapshot: str, position: Json) -> Landing:
        """Return changes of transactions that a snapshot shows and a position does not.

        Args:
            snapshot: The exported snapshot's name.
            position: Up to where the source is landed.

        Raises:
            EnvironmentFault: `SOURCE_IN_MOTION` when a table was altered, or is to be taken anew.
            UserError: `SOURCE_CHANGED`, `CAPTURE_REMOVED`.
        """
        known = self._what.known
        with (
            connected(self._what.url) as reader,
            transaction_snapshots.moment(reader, self._change_tables(known), snapshot) as at,
        ):
            now = server(reader)
            self._check_server(reader, now, position, at)
            self._same(reader, now)
            if self._cast(reader):  # the next landing takes such tables anew
                raise in_motion()
            self._check_captured(reader, position, known)
            return self._changes(reader, now, position, known, at)

    def installed_at(self, now: Server, patience: float | None = None) -> tuple[int, dict[str, Any]]:
        """Install triggers; return a log position, and the trigger position that covers it.

        Args:
            now: The server.
            patience: Seconds to wait for others, for each table; as long as for a first snapshot when None.

        Raises:
            EnvironmentFault: `SOURCE_IN_MOTION` when a table was altered.
        """
        known = self._what.known
        with connected(self._what.url) as connection:
            present = {t.oid: t for t in self._same(connection, now)}
            install_triggers.remove(connection, self._schema, patience)
            install_triggers.create_schema(connection, self._schema)
            for name, table in known.items():
                install_triggers.install(connection, self._schema, self._suffix(name), present[table.oid], patience)
        waiting = None if patience is None else f"{patience}s"
        once = f"headrace_tmp_{uuid.uuid4().hex[:12]}"
        temporary = slots.exported(self._what.url, once, temporary=True, patience=waiting)
        with (
            temporary as (start, snapshot),
            connected(self._what.url) as reader,
            transaction_snapshots.moment(reader, self._change_tables(known), snapshot) as at,
        ):
            names = {NAMES: {str(t.oid): str(t) for t in self._same(reader, now)}}
            moved = self._moved(now, at, 0, self._captured(reader, known))
        with connected(self._what.url) as connection:
            return start, {**moved, **names, "witness": log_witness.leave(connection, self._schema)}

    def _same(self, connection: Connection, now: Server) -> tuple[RemoteTable, ...]:
        """Return the tables under the names they have now, when all are as their mirrors."""
        found = self._tables(connection, now.version, self._known)
        if {f.table.oid for f in found if f.table.same_shape(self._known[f.table.oid])} != self._known.keys():
            raise in_motion()
        return tuple(f.table for f in found)

    # ---- changes

    def _changes(
        self, connection: Connection, now: Server, position: Json, known: Mapping[TableName, RemoteTable], at: str
    ) -> Landing:
        """Read the changes between the position and the connection's snapshot `at`.

        Raises:
            EnvironmentFault: `SOURCE_IN_MOTION` when a table must be taken anew after a TRUNCATE.
        """
        tally, parts = Tally(), []
        emptied = self._emptied(connection, position, known)
        for name, table in known.items():
            truncation = emptied.get(name)
            if truncation is not None and not truncation.clear:
                raise in_motion()
            after = None if truncation is None else truncation.moment
            spooled = self._read(connection, name, table, position["snapshot"], after, tally)
            if spooled.rows or spooled.truncated:
                parts.append(PostgresTable(name, table, spooled, former=table))
        rows = tally.rows + sum(p.spooled.truncated for p in parts)
        moved = self._moved(now, at, position["changes"] + rows, position["captured"])
        return Landing(tuple(parts), moved, bool(parts), len(tally.transactions), rows, True)

    def _emptied(
        self, connection: Connection, position: Json, known: Mapping[TableName, RemoteTable]
    ) -> dict[TableName, Truncation]:
        """Return the last TRUNCATE of each table that was emptied since a position."""
        mirrors = {self._suffix(name): name for name in known}
        found = truncations(connection, self._schema, position["snapshot"], mirrors)
        return {mirrors[suffix]: truncation for suffix, truncation in found.items()}

    def _right(self, connection: Connection, position: Json, found: Sequence[Found]) -> set[int]:
        """Return the tables, by oid, whose changes bring their mirrors up to date."""
        emptied = self._emptied(connection, position, self._what.known)
        unclear = {self._what.known[n].oid for n, truncation in emptied.items() if not truncation.clear}
        unclear |= self._cast(connection)
        return {f.table.oid for f in found if f.table.same_shape(self._known[f.table.oid])} - unclear

    def _cast(self, connection: Connection) -> set[int]:
        """Return the tables, by oid, of which texts were captured by casts of their types."""
        cast = casting(connection, self._schema)
        return {table.oid for name, table in self._what.known.items() if self._suffix(name) in cast}

    def _read(
        self, connection: Connection, name: TableName, table: RemoteTable, landed: str, after: int | None, tally: Tally
    ) -> Spooled:
        query = reading(self._schema, self._suffix(name), len(table.columns), landed, after)
        with _naming(name, table), connection.cursor() as cursor, cursor.copy(query) as copy:
            batches = csv_texts(table, copy.read, ("xid", "op"))
            return self._spool.write_weighed(table, tally.weighed(batches), truncated=after is not None)

    # ---- snapshots

    def _taking_anew(
        self,
        connection: Connection,
        now: Server,
        position: Json,
        anew: Mapping[TableName, RemoteTable | None],
        intact: Collection[TableName] = (),
    ) -> Landing:
        """Land some tables as they are now, and the changes of the others up to then.

        Args:
            connection: The connection.
            now: The server.
            position: What is landed.
            anew: The mirrors that are taken anew, with their tables; None for those that are gone.
            intact: Mirrors whose tables are captured as they are, so that nothing needs to be installed for them.
        """
        wanted = {n: t for n, t in anew.items() if t is not None}
        kept = {n: t for n, t in self._what.known.items() if n not in anew}
        self._distinct([t.oid for t in (*kept.values(), *wanted.values())])
        landing = self._anew(connection, now, wanted, kept, position, intact)
        return replace(landing, gone=tuple(n for n, t in anew.items() if t is None))

    def _anew(
        self,
        connection: Connection,
        now: Server,
        wanted: Mapping[TableName, RemoteTable],
        kept: Mapping[TableName, RemoteTable],
        position: Json | None,
        intact: Collection[TableName] = (),
        ledger: Ledger | None = None,
        *,
        first: bool = False,
    ) -> Landing:
        """Install capture of tables, and land them and the changes of others at one moment.

        Args:
            ledger: What there is of a first snapshot; what captures its tables is installed.
            first: This is a first snapshot.
        """
        wanted = {n: as_read(connection, t, self._former_names(n, t)) for n, t in wanted.items()}
        for name, table in wanted.items():
            if name in intact or ledger is not None:
                continue
            waiting = Waiting(table.oid, str(table), self._told)
            install_triggers.install(connection, self._schema, self._suffix(name), table, waiting=waiting)
        landing = Landing((), {}, True, 0, 0, False)
        with (
            self._locked(connection, wanted) as locked,
            connected(self._what.url) as reader,
            transaction_snapshots.moment(reader, self._change_tables(kept)) as at,
        ):
            still = {f.table.oid: f.table for f in self._tables(reader, now.version, [t.oid for t in kept.values()])}
            before = {**wanted, **kept}
            whole = {n: replace(t, identity="f") for n, t in locked.items()}
            after = {**whole, **{n: still.get(t.oid) for n, t in kept.items()}}
            if any(t is None or not t.same_shape(before[n]) for n, t in after.items()):
                raise in_motion()
            if position is not None:
                self._check_captured(reader, position, kept)
                landing = self._changes(reader, now, position, kept, at)
            captured = self._captured(reader, before)
            if first:
                log_witness.leave(
                    connection, self._schema
                )  # what is copied counts even if this process ends in a crash
                ledger = ledger or Ledger(self._spool, self._mark(now, {"captured": captured}))
                copied = self._copied_on(
                    locked, transaction_snapshots.export(reader), ledger, partial(self._touched, reader)
                )
            else:
                copied = self._copied(locked, transaction_snapshots.export(reader))
        copies = sum(t.spooled.rows for t in copied)
        moved = self._moved(now, at, landing.position.get("changes", self._counted) + copies, captured)
        return replace(
            landing,
            tables=(*landing.tables, *copied),
            position=moved,
            keep_position=True,
            rows=landing.rows + copies,
            caught_up=False,
        )

    def _begun(self, connection: Connection, now: Server, wanted: Mapping[TableName, RemoteTable]) -> Ledger | None:
        """Return the ledger of a killed first snapshot if all changes since are known."""
        fit = fitness(connection, [t.oid for t in wanted.values()])
        captured = {
            str(t.oid): installed(connection, self._schema, self._suffix(n), fit[t.oid]).mark for n, t in wanted.items()
        }
        ledger = Ledger(self._spool, self._mark(now, {"captured": captured}))
        former = {n: ledger.table(n) for n in wanted}
        same = all(t is not None and replace(t, identity="f").same_shape(wanted[n]) for n, t in former.items())
        return ledger if same and former else None  # what captures an altered table is made anew, and begins anew

    def _former_names(self, name: TableName, table: RemoteTable) -> dict[int, str]:
        """Return column names, by number, in a row filter as first written."""
        before = self._what.known.get(name)
        if before is None or (before.oid, before.filter) != (table.oid, table.filter):
            return {}
        return {c.number: c.name for c in before.columns}

    def _touched(
        self, connection: Connection, tables: Mapping[TableName, RemoteTable]
    ) -> Iterator[tuple[TableName, set[Key] | None]]:
        """Return the keys of all changes that triggers have captured."""
        return keys_in(connection, tables, lambda n, t: reading_keys(self._schema, self._suffix(n), key_places(t)))

    # ---- surroundings

    @property
    def _schema(self) -> str:
        return self._what.slot

    def _suffix(self, name: TableName) -> str:
        """Return the suffix by the user's name: a renamed table keeps its change table."""
        return suffix_of(*self._what.names[name])

    def _change_tables(self, known: Mapping[TableName, RemoteTable]) -> list[sql.Identifier]:
        emptied = sql.Identifier(self._schema, EMPTIED)
        return [emptied, *(changes_of(self._schema, self._suffix(n)) for n in known)]

    def _tables(self, connection: Connection, version: int, oids: Collection[int]) -> tuple[Found, ...]:
        return tuple(map(_whole, super()._tables(connection, version, oids)))

    def _captured(self, connection: Connection, known: Mapping[TableName, RemoteTable]) -> dict[str, str]:
        """Return the present triggers of tables, by oid.

        Raises:
            EnvironmentFault: `SOURCE_IN_MOTION` when somebody has already touched what was just installed.
        """
        fit = fitness(connection, [t.oid for t in known.values()])
        found = {}
        for name, table in known.items():
            of = installed(connection, self._schema, self._suffix(name), fit[table.oid])
            if of.triggers != PER_TABLE + PER_PARTITION * len(fit[table.oid].partitions):
                raise in_motion()
            found[str(table.oid)] = of.mark
        return found

    def _check_captured(self, connection: Connection, position: Json, known: Mapping[TableName, RemoteTable]) -> None:
        """Refuse to go on where changes may not have been captured.

        Raises:
            UserError: `CAPTURE_REMOVED`.
        """
        deleted = deleted_changes(connection, self._schema, position["snapshot"])
        fit = fitness(connection, [t.oid for t in known.values()])
        for name, table in known.items():
            suffix, before = self._suffix(name), position["captured"].get(str(table.oid), "")
            now = installed(connection, self._schema, suffix, fit[table.oid]).mark
            if now != before:
                what = what_happened(connection, self._schema, suffix, table, fit[table.oid], before, now)
                raise stop_reasons.removed(what)
            if suffix in deleted:
                raise stop_reasons.removed(
                    f"Somebody deleted or updated changes of {table} in the change table {self._schema}.t_{suffix}."
                )

    def _check_server(self, connection: Connection, now: Server, position: Json, at: str) -> None:
        """Refuse to go on with another server, or an earlier state of it.

        Raises:
            UserError: `SOURCE_CHANGED`; `CAPTURE_REMOVED`.
        """
        if (now.system, now.timeline) != (position["system"], position["timeline"]):
            raise other_server(now, position)
        if transaction_snapshots.next_of(at) < transaction_snapshots.next_of(position["snapshot"]):
            raise stop_reasons.changed("The source's server went back to an earlier state.")
        log_witness.require(connection, self._schema, position)

    def _witnessed(self, connection: Connection, landing: Landing) -> Landing:
        """Return a landing that left its row on the server, as everything that is published does."""
        return replace(landing, position={**landing.position, "witness": log_witness.leave(connection, self._schema)})

    def _intact(self, connection: Connection, position: Json, name: TableName) -> bool:
        """Return whether what captures a table is what was installed, and always was since."""
        oid = self._what.known[name].oid
        of = installed(connection, self._schema, self._suffix(name), fitness(connection, [oid])[oid])
        return bool(of.mark == position["captured"].get(str(oid)))

    def _wanted(
        self, connection: Connection, now: Server, mirrors: Collection[TableName]
    ) -> dict[TableName, RemoteTable]:
        """Return the tables of mirrors, by identity where known, else by name.

        Raises:
            UserError: `SOURCE_NOT_READY`, `DUPLICATE_TABLE`, `COLUMN_NOT_FOUND`.
        """
        known = self._known if (self._what.position or {}).get("system") == now.system else {}
        former = {f.table.oid: f.table for f in tables(connection, now.version, oids=known)}
        names = {n: self._what.names[n] for n in mirrors}
        parts = {n: self._what.parts.get(n, Part()) for n in mirrors}
        for name, table in self._what.known.items():
            if name in names and table.oid in known and table.oid in former:
                names[name] = (former[table.oid].schema, former[table.oid].name)
                parts[name] = by_present_names(parts[name], table, former[table.oid])
        wanted = {names[n]: part for n, part in parts.items()}
        checks, found = preflight.check_for_triggers(
            connection, tuple(names.values()), self._what.as_text, known, wanted
        )
        preflight.require(checks)
        self._check_text_columns([f for f in found if f.table.oid not in known])
        self._notices = tuple(f"Table {f.table}: {f.without}." for f in found if f.without)
        by_name = {(f.table.schema, f.table.name): _whole(f).table for f in found}
        self._distinct([by_name[of].oid for of in names.values()])
        return {mirror: by_name[of] for mirror, of in names.items()}

    def _withdraw_strange(self, connection: Connection) -> None:
        """Remove what was left by adding tables that failed, or by dropping them."""
        install_triggers.withdraw(connection, self._schema, {self._suffix(n) for n in self._what.names})

    @staticmethod
    def _moved(now: Server, at: str, changes: int, captured: Mapping[str, str]) -> dict[str, Any]:
        """Return the source's new position; `captured` has the triggers by oid."""
        identity = {"system": now.system, "timeline": now.timeline, "clock": now.clock}
        return {"snapshot": at, "changes": changes, **identity, "captured": dict(captured)}


def by_triggers(position: Json) -> bool:
    """Return whether a position is one of capture by triggers."""
    return "snapshot" in position


@contextmanager
def _naming(name: TableName, table: RemoteTable) -> Iterator[None]:
    """Name the table whose changes have bytes that are no text, and the remedy.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE`.
    """
    try:
        yield
    except (psycopg.errors.CharacterNotInRepertoire, psycopg.errors.UntranslatableCharacter) as error:
        raise EnvironmentFault(
            "VALUE_NOT_REPRESENTABLE",
            f"A change of {table} has bytes that are no text in its database's encoding; nothing was landed.",
            detail=str(error).strip(),
            hint="Correct the value, or delete its row, then take the table anew, as the change is captured as it was: "
            f"headrace source resnapshot {name.namespace[-1]} -t {name.table}",
        ) from error


def _whole(found: Found) -> Found:
    """Return a table as triggers see it.

    Old rows are given whole, whatever its replica identity.
    """
    return replace(found, table=replace(found.table, identity="f"))
