"""Scheduling states, schedulers and events; a part of `Catalog`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from headrace.catalog import schema as t
from headrace.catalog.coordination import maintenance_turns, scheduler_rows
from headrace.catalog.coordination.lease_time import LeaseTime
from headrace.catalog.coordination.notify import listening, wake
from headrace.catalog.database import Database
from headrace.catalog.own_database import OwnDatabase
from headrace.catalog.publishing import epochs
from headrace.catalog.records import EventRecord, GroupEpoch, Json, SchedulerRecord, SchedulingState
from headrace.clock import Clock
from headrace.names import TableName

Pulse = tuple[object, ...]
"""Differs from another one when definitions, frontiers or scheduling states may have changed in between."""


class SchedulerCatalog:
    """Pauses, retries, groups, schedulers, events. Every method is one transaction."""

    _database: Database
    _clock: Clock
    _lease_time: LeaseTime
    _own: OwnDatabase

    def pulse(self) -> Pulse:
        """Return whether anything happened, for the price of one small query."""
        with self._database.read() as connection:
            return tuple(
                connection.execute(
                    sa.select(
                        sa.select(sa.func.max(t.publication.c.id)).scalar_subquery(),
                        sa.select(sa.func.count()).select_from(t.stream_table).scalar_subquery(),
                        sa.select(sa.func.max(t.stream_table.c.updated_at)).scalar_subquery(),
                        sa.select(sa.func.max(t.history.c.id)).scalar_subquery(),
                        sa.select(sa.func.count(t.care.c.paused_at)).scalar_subquery(),
                        sa.select(sa.func.max(t.care.c.paused_at)).scalar_subquery(),  # one paused, another resumed
                        sa.select(sa.func.sum(t.care.c.failures)).scalar_subquery(),
                        sa.select(sa.func.max(t.care.c.retry_at)).scalar_subquery(),
                        sa.select(sa.func.count(t.care.c.fuse_at)).scalar_subquery(),
                        sa.select(sa.func.count()).select_from(t.gate).scalar_subquery(),
                        sa.select(sa.func.max(t.gate.c.closed_at)).scalar_subquery(),
                        sa.select(sa.func.count()).select_from(t.watermark).scalar_subquery(),
                        sa.select(sa.func.max(t.watermark.c.advanced_at)).scalar_subquery(),
                    )
                ).one()
            )

    def scheduling_states(self) -> dict[TableName, SchedulingState]:
        """Return the scheduling states of stream tables that were paused or failed.

        When one is tried again is told by this host's clock.
        """
        with self._database.read() as connection:
            found = scheduler_rows.read(connection)
            if all(state.retry_at is None for state in found.values()):
                return found
            ahead = self._lease_time.ahead(connection)
        return {
            name: state if state.retry_at is None else replace(state, retry_at=state.retry_at + ahead)
            for name, state in found.items()
        }

    def pause(self, names: Sequence[TableName]) -> None:
        """Have schedulers leave stream tables alone.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`; then none is paused.
        """
        with self._database.write() as connection:
            scheduler_rows.change(connection, names, {"paused_at": self._clock.now()})
            wake(connection)

    def unpause(self, names: Sequence[TableName], failed: Sequence[TableName] = ()) -> None:
        """End pauses, suspensions and waits for a retry of stream tables.

        Args:
            names: The stream tables.
            failed: Others, of which waits and suspensions end, and pauses stay.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`; then none is resumed.
        """
        with self._database.write() as connection:
            scheduler_rows.resume(connection, names)
            scheduler_rows.forgive(connection, failed)
            wake(connection)

    def note_failure(
        self, names: Sequence[TableName], code: str, message: str, retry_at: Callable[[int], dt.datetime | None]
    ) -> int:
        """Count a failure of stream tables that were refreshed together.

        Args:
            names: The stream tables; those that were dropped meanwhile are an error.
            code: The error's code.
            message: Its text.
            retry_at: From the number of failures in a row, when to try again, by this host's clock; None suspends the
                tables.

        Returns:
            How many failures there were in a row.
        """
        with self._database.write() as connection:
            ahead = self._lease_time.ahead(connection)

            def by_lease_time(failures: int) -> dt.datetime | None:
                again = retry_at(failures)
                return None if again is None else again - ahead

            return scheduler_rows.note_failure(connection, names, code, message, by_lease_time, self._clock.now())

    def blow_fuse(self, name: TableName, evidence: Json) -> None:
        """Record a change beyond its fuse's limit; the next publication ends it.

        Args:
            name: The stream table.
            evidence: What was found, in the engine's own form.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        with self._database.write() as connection:
            scheduler_rows.blow_fuse(connection, name, evidence, self._clock.now())

    def mend_fuse(self, name: TableName) -> None:
        """Forget that a change was too large, so that the next refresh judges it anew.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        with self._database.write() as connection:
            scheduler_rows.mend_fuse(connection, name)

    def epochs(self) -> dict[TableName, GroupEpoch]:
        """Return, by stream table, the last publication that it had part in as member of a group."""
        with self._database.read() as connection:
            return epochs.read(connection)

    # ---- schedulers

    def schedulers(self) -> tuple[SchedulerRecord, ...]:
        """Return schedulers that run, by what they said last; the first to come first."""
        with self._database.read() as connection:
            now = self._lease_time.now(connection)
            return tuple(s for s in scheduler_rows.schedulers(connection) if s.expires_at > now)

    def register_scheduler(
        self, owner: str, ttl: dt.timedelta, *, is_dead: Callable[[str], bool] | None = None
    ) -> None:
        """Say that a scheduler runs. With SQLite there may be one at a time.

        Args:
            owner: Identifies it.
            ttl: Taken for dead when it is silent for so long.
            is_dead: Whether an owner is known to be gone.

        Raises:
            UserError: `SCHEDULER_RUNNING`, naming the first; `CATALOG_COPIED`.
        """
        with self._database.write() as connection:
            self._own.settle(connection)
            now = self._lease_time.now(connection)
            known = scheduler_rows.schedulers(connection, locked=True)
            scheduler_rows.unregister(connection, [s.owner for s in known if is_dead is not None and is_dead(s.owner)])
            live = [s for s in scheduler_rows.schedulers(connection) if s.expires_at > now]
            if live and self._database.is_sqlite:
                raise scheduler_rows.refuse_second(live[0])
            scheduler_rows.register(connection, owner, now + ttl, now)
            wake(connection)

    def scheduler_beat(
        self,
        owner: str,
        ttl: dt.timedelta,
        claim: Callable[[Sequence[SchedulerRecord]], Json | None] = lambda _: None,
        *,
        ending: bool = False,
    ) -> tuple[SchedulerRecord, ...]:
        """Say that a scheduler still runs.

        Args:
            owner: Which.
            ttl: Taken for dead when it is silent for so long.
            claim: From all that run, what it claims of what they share; one after the other is asked.
            ending: Whether it starts nothing more.

        Returns:
            All that run, as they were; it is missing if it was taken for dead.

        Raises:
            UserError: `CATALOG_COPIED`.
        """
        with self._database.write() as connection:
            self._own.check(connection)
            now = self._lease_time.now(connection)
            known = scheduler_rows.schedulers(connection, locked=True)
            own = next((s for s in known if s.owner == owner), None)
            alive = tuple(s for s in known if s is own or s.expires_at > now)
            if own is not None:
                claimed = claim(alive)
                scheduler_rows.beat(connection, owner, now + ttl, claimed, draining=own.draining or ending)
                if claimed != own.claim:
                    wake(connection)
            return alive

    def unregister_scheduler(self, owner: str) -> None:
        """Say that a scheduler ended."""
        with self._database.write() as connection:
            scheduler_rows.unregister(connection, [owner])
            wake(connection)

    def drain(self) -> tuple[SchedulerRecord, ...]:
        """Ask all schedulers to finish what runs and to start nothing; returns those that run."""
        with self._database.write() as connection:
            now = self._lease_time.now(connection)
            scheduler_rows.schedulers(connection, locked=True)  # in the order in which all others lock them
            scheduler_rows.drain(connection)
            wake(connection)
            return tuple(s for s in scheduler_rows.schedulers(connection) if s.expires_at > now)

    def listening(self, woken: Callable[[], None]) -> AbstractContextManager[None]:
        """Call a function during the block when definitions, pauses or drains change.

        On SQLite it is never called: who uses it looks now and then, and has to anyway.

        Args:
            woken: Called in a thread of its own.
        """
        return nullcontext() if self._database.is_sqlite else listening(self._database.url, woken)

    # ---- events

    def write_events(self, rows: Sequence[tuple[dt.datetime, str, Mapping[str, Any]]]) -> None:
        """Keep events: time, kind and fields of each."""
        with self._database.write(passing=True) as connection:
            scheduler_rows.write_events(connection, rows)

    def events(self, after: int | None = None, limit: int = 100, kinds: Sequence[str] = ()) -> tuple[EventRecord, ...]:
        """Return events later than an id, oldest first.

        For None the newest ones, oldest of them first.

        Args:
            after: The id.
            limit: How many at most.
            kinds: Only these; all for nothing.
        """
        with self._database.read() as connection:
            return scheduler_rows.events(connection, after, limit, kinds)

    def maintenance_turns(self) -> Mapping[TableName | None, dt.datetime]:
        """Return when tables' last turns in maintenance began; under None, when all had one."""
        with self._database.read() as connection:
            return maintenance_turns.read(connection)

    def note_maintenance_turn(self, name: TableName, at: dt.datetime) -> None:
        """Note that a table's turn in maintenance begins: after a crash it is not the first again."""
        with self._database.write() as connection:
            maintenance_turns.note(connection, name, at)

    def end_maintenance(self, at: dt.datetime, since: dt.datetime) -> None:
        """Note that all tables had their turn.

        Args:
            at: Now.
            since: When turns began to be given.
        """
        with self._database.write() as connection:
            maintenance_turns.end(connection, at, since)

    def forget_events(self, before: dt.datetime) -> int:
        """Forget events older than that; returns how many."""
        with self._database.write() as connection:
            return scheduler_rows.forget_events(connection, before)
