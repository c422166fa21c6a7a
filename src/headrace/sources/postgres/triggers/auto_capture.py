"""Captures by triggers at first, and from the write-ahead log once that is possible.

**Hand-over.** A new slot comes with a snapshot that shows exactly the transactions committed before the position where
the slot begins. While triggers are still on, what they captured is landed up to that snapshot, and the position of the
source becomes the slot's: a transaction that the snapshot shows was landed from change tables, every other one comes
from the slot. Only when that is published, the triggers are dropped.

**Back to triggers**, when the slot is about to be lost: triggers are put first, which waits for all who have written,
so that every transaction not over by then is captured whole. Then a temporary slot gives a snapshot with its position:
the log is landed exactly up to there, and what the snapshot does not show comes from change tables. When the slot is
lost already, changes were missed: the tables are taken anew, and the difference is landed. Both are told, and for a
while triggers stay.

Whichever way is in force is seen by the position: it is a snapshot, or a place in the log.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg

from headrace.errors import EnvironmentFault, UserError
from headrace.names import TableName
from headrace.sources.capture import Json, Landing
from headrace.sources.postgres.connection import EXHAUSTED, Connection, connected, in_motion
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import server
from headrace.sources.postgres.setup import preflight
from headrace.sources.postgres.snapshot.snapshots import Told
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.table_names import NAMES
from headrace.sources.postgres.triggers import install_triggers, transaction_snapshots
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture, by_triggers
from headrace.sources.postgres.wal import log_witness, slots
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured, PostgresCapture

RESTING = dt.timedelta(minutes=10)
"""Time for which triggers stay after the slot could not keep up."""

BRIEFLY = "2s"
"""Time that a new slot waits for open transactions; nothing is landed meanwhile."""

PATIENCE = 10.0
"""Seconds that triggers wait for others, for each table, when they take over; the slot is in danger meanwhile."""

PAUSE = dt.timedelta(minutes=1)
"""Between attempts to hand over."""

GIVEN_UP = frozenset(
    {"SOURCE_BUSY", "SOURCE_IN_MOTION", EXHAUSTED, "SOURCE_REFUSED", "SOURCE_ERROR", "SLOT_IN_USE"},
)
"""Errors that end an attempt to hand over, while the present capture goes on."""


class AutoCapture:
    """Captures one source in both ways, one after the other; see `Capture`.

    Args:
        captured: What is captured.
        spool: Where rows are written.
        limit: Messages of the write-ahead log in one landing, about.
        most: Changes that are held in memory at most.
        told: Told how far a snapshot is.
    """

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
        self._wal = PostgresCapture(captured, spool, limit=limit, most=most, told=told)
        self._triggers = TriggerCapture(captured, spool, limit=limit, most=most, told=told)
        self._rests = 0.0

    # ---- the protocol

    @property
    def installed(self) -> bool:
        """Return whether something may be installed on the server."""
        return self._triggers.installed or self._wal.installed

    def begin(self) -> Landing:
        """Install triggers and take the first snapshot."""
        return self._triggers.begin()

    def land(self, position: Json) -> Landing:
        """Read changes committed since a position, and switch the way of capture where possible."""
        if by_triggers(position):
            landing = self._handed_over(position)
            if landing is None:
                landing = self._waiting(position, self._triggers.land(position))
            return landing
        try:
            return self._returned(position) or self._wal.land(position)
        except UserError as error:
            if error.code != "SLOT_LOST":
                raise
            return self._taken_anew(error)

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        """Copy some mirrors anew by the present way of capture.

        Where the slot is lost, all of them, by triggers.
        """
        try:
            landing = self._now(position).renew(position, mirrors)
        except UserError as error:
            if error.code != "SLOT_LOST":
                raise
            return self._taken_anew(error)
        if by_triggers(position) and "rests" in position:
            landing = replace(landing, position={**landing.position, "rests": position["rests"]})
        return landing

    def tidy(self) -> None:
        """Stop capturing tables without a mirror."""
        self._now(self._what.position or {}).tidy()

    def acknowledge(self, position: Json) -> None:
        """Acknowledge what is published; end a way of capture no longer in force."""
        self._now(position).acknowledge(position)
        with connected(self._what.url) as connection:
            if by_triggers(position):
                with suppress(psycopg.errors.ObjectInUse):  # a killed landing's session has not ended yet: then, too
                    self._drop_slot(connection)
                return
            with suppress(*install_triggers.BUSY):  # others write: after the next landing then
                install_triggers.remove(connection, self._what.slot, patience=1.0)

    def remove(self) -> None:
        """Take away triggers, slot and publication."""
        try:
            self._triggers.remove()
        finally:
            self._wal.remove()  # a slot that nobody reads would keep write-ahead log for ever

    def clear(self) -> None:
        """Remove the files of this landing."""
        self._triggers.clear()  # theirs is the first snapshot; both write to one spool

    def sweep(self, age: dt.timedelta | None) -> None:
        """Remove the files of landings that did not end."""
        self._wal.sweep(age)

    # ---- from one way to the other

    def _now(self, position: Json) -> PostgresCapture:
        return self._triggers if by_triggers(position) else self._wal

    def _handed_over(self, position: Json) -> Landing | None:
        """Land up to where a new slot begins; None where that is not possible, or not now."""
        try:
            with connected(self._what.url) as connection:
                self._drop_slot(connection)  # of a hand-over that was not published
                self._rests = float(position.get("rests", 0))
                if time.time() < self._rests or not self._can_use_log(connection):
                    return None
            with connected(self._what.url) as connection:
                return self._hand_over(connection, position)
        except BaseException as error:
            with suppress(EnvironmentFault), connected(self._what.url) as connection:
                self._drop_slot(connection)  # it would keep write-ahead log for nobody
            if not isinstance(error, EnvironmentFault) or error.code not in GIVEN_UP:
                raise
            self._rests = time.time() + PAUSE.total_seconds()
            return None

    def _hand_over(self, connection: Connection, position: Json) -> Landing:
        connection.execute(f"SET lock_timeout = '{BRIEFLY}'")
        now, tables = server(connection), self._as_named(connection)
        slots.publish_tables(connection, self._what.slot, tables, now.version, anew=True)
        published = slots.published(connection, self._what.slot)
        if published.keys() != {str(t.oid) for t in tables}:
            raise in_motion()  # renamed just now: another table has the name
        what = self._what
        slot = slots.exported(what.url, what.slot, temporary=False, patience=BRIEFLY, failover=what.failover)
        with slot as (start, snapshot):
            landing = self._triggers.shown_by(snapshot, position)
        moved = self._wal.placed(now, start, landing.position["changes"], published) | log_witness.NOTHING
        moved |= {NAMES: {str(t.oid): str(t) for t in tables}}
        told = "The source is captured from the write-ahead log from now on."
        return replace(landing, position=moved, keep_position=True, caught_up=False, notices=(told,))

    def _as_named(self, connection: Connection) -> tuple[RemoteTable, ...]:
        """Return the tables under the names that they have now.

        Under the old ones there may be others.
        """
        found = tuple(f.table for f in self._wal.present(connection))
        if {t.oid for t in found} != {t.oid for t in self._what.known.values()}:
            raise in_motion()
        return found

    def _can_use_log(self, connection: Connection) -> bool:
        """Return whether the log can be used for all tables as their mirrors are."""
        if not all(c.ok for c in preflight.check_server(connection, self._what.failover)):
            return False
        known = {t.oid: _unidentified(t) for t in self._what.known.values()}
        found = self._wal.present(connection)
        role = transaction_snapshots.one(connection, "SELECT current_user")
        fit = all(c.ok for f in found for c in preflight.check_table(f, role))
        same = {f.table.oid for f in found if _unidentified(f.table).same_shape(known[f.table.oid])} == known.keys()
        return bool(known) and fit and same

    def _returned(self, position: Json) -> Landing | None:
        """Hand over to triggers when the slot is about to be lost; else return None."""
        try:
            with connected(self._what.url) as connection:
                slot = slots.find_slot(connection, self._what.slot)
                if slot is None or slot.lost or not slot.endangered or not _slots_are_free(connection):
                    return None  # without one there is no hand-over; where the log goes before, tables are taken anew
                start, moved = self._triggers.installed_at(server(connection), PATIENCE)
                landing = self._wal.up_to(connection, position, start)
        except EnvironmentFault as error:
            if error.code not in GIVEN_UP:
                raise
            return None  # the log can still be landed, which lets the slot go on, too
        told = "The replication slot cannot keep up; the source is captured by triggers from now on."
        return replace(
            landing, position=self._resting(moved, landing.position["changes"]), keep_position=True, notices=(told,)
        )

    def _taken_anew(self, error: UserError) -> Landing:
        landing = self._triggers.begin()
        told = f"{error.message.partition('. ')[0]}. The tables were taken anew, and are captured by triggers."
        moved = self._resting(landing.position, landing.position["changes"])
        return replace(landing, position=moved, notices=(told,), caught_up=False)

    def _waiting(self, position: Json, landing: Landing) -> Landing:
        """Return a landing that keeps when to attempt the hand-over again.

        Also one that is not worth it otherwise.
        """
        keep_position = landing.keep_position or self._rests != float(position.get("rests", 0))
        kept = landing.position if landing.keep_position else position
        return replace(landing, position={**kept, "rests": self._rests}, keep_position=keep_position)

    @staticmethod
    def _resting(position: Json, changes: int) -> dict[str, Any]:
        return {**position, "changes": changes, "rests": time.time() + RESTING.total_seconds()}

    def _drop_slot(self, connection: Connection) -> None:
        slots.drop_slot(connection, self._what.slot)
        slots.drop_publication(connection, self._what.slot)


def _slots_are_free(connection: Connection) -> bool:
    return all(c.ok for c in preflight.check_server(connection) if c.name in ("slots", "senders"))


def _unidentified(table: RemoteTable) -> RemoteTable:
    """Return a table without its replica identity, which triggers do not need.

    The log's first landing follows it.
    """
    return replace(table, identity="")
