"""Brings one sink's table to a version: by a first load, a change, or a difference.

All of it happens in a transaction that somebody else commits. A first load needs no second table and no swap: what is
copied into the table, or into one that was just made, shows to nobody before that; and a table that exists keeps its
indexes, grants, views and identity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from headrace.errors import UserError
from headrace.sinks.postgres import position_table
from headrace.sinks.postgres.cluster_rows import row_sets
from headrace.sinks.postgres.cluster_transactions import wait_until_done
from headrace.sinks.postgres.column_types import recorded
from headrace.sinks.postgres.made_tables import remake
from headrace.sinks.postgres.placement import (
    AUTO,
    FEW,
    Placement,
    has_citus,
    planned,
    put,
    refuse_unfit,
    requested_placement,
)
from headrace.sinks.postgres.position_table import Kept
from headrace.sinks.postgres.row_sets import RowSets, key_not_unique, violated
from headrace.sinks.postgres.target_connection import Connection
from headrace.sinks.postgres.target_names import target_text
from headrace.sinks.postgres.target_table import TargetTable, add_key, find_table, make_table, refuse_unknown_key
from headrace.sinks.sink_kind import Delivery, Told, Written

OVERWRITE = "overwrite"
"""The option by which rows of others give way; by the other (`refuse`) nothing is written."""


def deliver(
    connection: Connection, options: Mapping[str, Any], delivery: Delivery, kept: Kept | None, number: int, told: Told
) -> Written:
    """Write what a sink lacks, and its new position.

    Args:
        connection: Inside a transaction.
        options: The sink's.
        delivery: What it is to be brought to.
        kept: Its position, locked.
        number: Which delivery of the transaction it is.
        told: Told how far it is.
    """
    going_on = None if delivery.anew else kept
    set_back = going_on is not None and _was_set_back(delivery, going_on)
    if going_on is not None and going_on.version == delivery.version and not set_back:
        return Written("nothing", 0, 0, going_on.rows)  # somebody wrote it, and may not have lived to say so
    _refuse_lost_key(delivery, options)
    if going_on is not None:
        _refuse_others(delivery, going_on)
    if going_on is not None and set_back and options["on_conflict"] != OVERWRITE:
        raise UserError(
            "SINK_CATALOG_SET_BACK",
            f"Sink {delivery.name} has version {going_on.version} of {delivery.stream}, which is not in the catalog, "
            "or is another one there; nothing was written.",
            detail="The catalog was set back, as by a backup or a replica that lacks what was published last; or "
            "two copies of the project write the same sink.",
            hint=f"`headrace sink resync {delivery.name}` makes the target equal to what the stream table is now.",
        )
    schema, name = options["table"]
    of = _Delivering(connection, options, delivery, kept, number, told)
    if kept is not None and delivery.anew and kept.made:
        of.remake(schema, name)
    table = find_table(connection, schema, name, delivery.columns, options["key"])
    if table is None and kept is not None and not delivery.anew:
        raise _changed(delivery, f"{schema}.{name}", "it was dropped")
    written, table = of.made(schema, name) if table is None else (of.written(table), table)
    made = kept.made if kept is not None else written.how == "load" and of.is_new
    log, columns = delivery.log or position_table.NO_LOG, recorded(delivery.columns)
    snapshot = delivery.snapshot_at(delivery.version)
    moved = Kept(delivery.version, delivery.relation, log, table.oid, columns, written.rows, made, snapshot)
    position_table.move(connection, delivery.sink, delivery.name, delivery.stream, str(table), moved)
    channel = sql.Literal(f"headrace_{delivery.name}")
    connection.execute(sql.SQL("SELECT pg_notify({}, {})").format(channel, sql.Literal(_told_to(delivery, written))))
    told("positioned")
    return replace(written, placement=str(table.placement))


def undo_load(connection: Connection, options: Mapping[str, Any], kept: Kept) -> None:
    """Drop the table that a first load has made, or empty the one that it found empty.

    Where others have written rows meanwhile, or it did not ask whose rows there were, these stay with its own.

    Args:
        connection: Inside a transaction.
        options: The sink's.
        kept: Its position after the load.
    """
    table = sql.Identifier(*options["table"])
    found = connection.execute("SELECT to_regclass(%s)::oid::bigint", (table.as_string(connection),)).fetchone()
    if found != (kept.target,):
        return
    if kept.made:
        connection.execute(sql.SQL("DROP TABLE {}").format(table))
    elif options["on_conflict"] != OVERWRITE:
        with connection.transaction():
            if connection.execute(sql.SQL("DELETE FROM {}").format(table)).rowcount != kept.rows:
                raise psycopg.Rollback


def _told_to(delivery: Delivery, written: Written) -> str:
    return json.dumps(
        {
            "sink": delivery.name,
            "version": delivery.version,
            "inserted": written.inserted,
            "deleted": written.deleted,
            "rows": written.rows,
        }
    )


def _was_set_back(delivery: Delivery, kept: Kept) -> bool:
    """Return whether the catalog has not the state any more of which the target's rows are.

    The position is locked before the catalog is read: a catalog that goes only forward has its version.
    """
    there = delivery.snapshot_at(kept.version)
    return kept.version > delivery.version or (None not in (there, kept.snapshot) and there != kept.snapshot)


def _refuse_others(delivery: Delivery, kept: Kept) -> None:
    if kept.relation != delivery.relation:
        raise UserError(
            "SINK_STREAM_RECREATED",
            f"{delivery.stream} was dropped and created again since sink {delivery.name} was last written.",
            hint=f"`headrace sink resync {delivery.name}` makes the target equal to what it is now.",
        )
    if [list(c) for c in kept.columns] != recorded(delivery.columns):
        before = {name: type_ for name, type_ in kept.columns}
        now = {name: type_ for name, type_ in recorded(delivery.columns)}
        different = [n for n in {**before, **now} if before.get(n) != now.get(n)]
        raise UserError(
            "SINK_COLUMNS_CHANGED",
            f"{delivery.stream} has other columns than when sink {delivery.name} was last written: "
            f"{', '.join(different) or 'they are in another order'}.",
            hint=f"`headrace sink resync {delivery.name}` goes on with them; a target that Headrace did not make "
            "has to be altered first.",
        )


def _refuse_lost_key(delivery: Delivery, options: Mapping[str, Any]) -> None:
    """Refuse a stream table without a column of the key, which cannot be altered."""
    refuse_unknown_key(
        delivery.stream,
        delivery.columns,
        options["key"],
        f"Have its query return that again, or drop sink {delivery.name} and the table "
        f"{target_text(*options['table'])} on the server, and create the sink with another KEY. ",
    )


def _changed(delivery: Delivery, table: str, how: str) -> UserError:
    return UserError(
        "SINK_TARGET_CHANGED",
        f"Somebody else has changed {table}, the target of sink {delivery.name}; nothing was written.",
        detail=f"By what Headrace wrote it should be otherwise: {how}.",
        hint=f"`headrace sink verify {delivery.name}` shows what differs, and `headrace sink resync {delivery.name}` "
        "makes the target equal to the stream table. A sink with ON CONFLICT OVERWRITE does not ask.",
    )


class _Delivering:
    """One delivery into one table."""

    def __init__(
        self,
        connection: Connection,
        options: Mapping[str, Any],
        delivery: Delivery,
        kept: Kept | None,
        number: int,
        told: Told,
    ) -> None:
        self._connection = connection
        self._delivery = delivery
        self._kept = kept
        self._number = number
        self._told = told
        self._key: Sequence[str] = options["key"]
        self._overwrite = options["on_conflict"] == OVERWRITE
        self._request = requested_placement(options)
        self._emptied = False
        self.is_new = False

    def _plan(self) -> Placement:
        """Return where rows of a table that is made are to be; counts them where that decides."""
        few = self._request.kind == AUTO and has_citus(self._connection) and self._are_few()
        return planned(self._connection, self._request, self._delivery.columns, self._key, few=few)

    def _are_few(self) -> bool:
        rows = 0
        for batch in self._delivery.rows():
            rows += batch.num_rows
            if rows >= FEW:
                return False
        return True

    def remake(self, schema: str, name: str) -> None:
        """Give a table that Headrace made the columns and the placement that it is to have."""
        self._emptied = remake(
            self._connection, schema, name, self._delivery.columns, self._key, self._plan(), self._request
        )

    def made(self, schema: str, name: str) -> tuple[Written, TargetTable]:
        """Make the table, and load it; the index of its key comes last, which is fastest."""
        self.is_new = True
        plan = self._plan()
        table = make_table(self._connection, schema, name, self._delivery.columns, self._key, plan)
        put(self._connection, table.sql, plan, self._request)
        rows = row_sets(self._connection, table, self._number).copy_directly(self._delivery.rows())
        self._told("copied")
        try:
            add_key(self._connection, table)
        except psycopg.errors.UniqueViolation as error:
            raise key_not_unique(table, violated(error)) from error
        if not table.placement.is_in_cluster:  # where other sessions would look for what only this one has made yet
            self._connection.execute(sql.SQL("ANALYZE {}").format(table.sql))
        return Written("load", rows, 0, rows), table

    def written(self, table: TargetTable) -> Written:
        """Write into a table that exists."""
        if other := position_table.other_sink(self._connection, self._delivery.sink, table.oid, str(table)):
            raise UserError(
                "SINK_TARGET_TAKEN",
                f"{table} is the target of another sink, {other}; nothing was written.",
                hint=f"Give each sink a table of its own. Of a sink that is gone, DELETE FROM {position_table.TABLE} "
                "WHERE name = … on the server.",
            )
        rows, kept = row_sets(self._connection, table, self._number), self._kept
        if table.placement.is_in_cluster:
            wait_until_done(self._connection)
        if kept is None or (self._delivery.anew and not kept.made):
            refuse_unfit(str(table), table.placement, self._request, self._plan())
        if self._emptied or (kept is None and not self._delivery.anew):
            return self._first(rows, table)
        if kept is None or self._delivery.anew:
            return self._difference(rows, table)
        if kept.target != table.oid:
            raise _changed(self._delivery, str(table), "it was dropped and created again")
        delivery = self._delivery
        if delivery.log is None or kept.log != delivery.log or kept.version < delivery.log_after:
            return self._difference(rows, table)  # the log that would tell is gone, or these entries of it are
        return self._difference(rows, table) if _was_set_back(delivery, kept) else self._change(rows, table, kept)

    def _first(self, rows: RowSets, table: TargetTable) -> Written:
        rows.lock()
        if not rows.is_empty():
            if not self._overwrite:
                raise UserError(
                    "SINK_TARGET_NOT_EMPTY",
                    f"{table} has rows that sink {self._delivery.name} has not written; nothing was written.",
                    hint="Empty it, name another table, or write ON CONFLICT OVERWRITE to have it made equal to the "
                    "stream table.",
                )
            return self._difference(rows, table)
        try:
            loaded = rows.copy_directly(self._delivery.rows())
        except psycopg.errors.UniqueViolation as error:
            raise key_not_unique(table, violated(error)) from error
        self._told("copied")
        return Written("load", loaded, 0, loaded)

    def _difference(self, rows: RowSets, table: TargetTable) -> Written:
        rows.lock()
        loaded = rows.load_rows(self._delivery.rows())
        self._told("copied")
        if table.key:
            rows.refuse_doubtful_rows()
        inserted, deleted = rows.apply_difference()
        self._told("applied")
        return Written("difference", inserted, deleted, loaded)

    def _change(self, rows: RowSets, table: TargetTable, kept: Kept) -> Written:
        if not rows.load_change(self._delivery.changes(kept.version)):
            return Written("nothing", 0, 0, kept.rows)
        self._told("copied")
        if table.key:
            rows.refuse_doubtful()
        applied = self._by_row_locks(rows) if rows.can_lock_rows() else None
        if applied is None:
            rows.lock()
            if not self._overwrite and (found := rows.foreign_change()) is not None:
                raise _changed(self._delivery, str(table), found)
            applied = rows.apply_change(overwrite=self._overwrite)
        inserted, deleted = applied
        self._told("applied")
        return Written("change", inserted, deleted, kept.rows + inserted - deleted)

    def _by_row_locks(self, rows: RowSets) -> tuple[int, int] | None:
        """Apply a change to rows that nobody else has changed; None where that is not known.

        Without a lock of the table, which would keep VACUUM away as often as is written. What it does not allow gives
        its locks back, so that whoever waits for a row is not waited for with it.
        """
        applied: tuple[int, int] | None = None
        try:
            with self._connection.transaction():
                if not rows.lock_leaving() or not (self._overwrite or rows.foreign_change() is None):
                    raise psycopg.Rollback
                applied = rows.apply_change(overwrite=self._overwrite)
        except psycopg.errors.UniqueViolation:  # somebody has a key that came, since nobody was seen with it
            return None
        return applied
