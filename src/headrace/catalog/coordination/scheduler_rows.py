"""Rows of scheduling states, schedulers and events.

Each function works inside the caller's transaction.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.records import EventRecord, Json, SchedulerRecord, SchedulingState
from headrace.catalog.relations import parse_name, stream_id
from headrace.errors import UserError
from headrace.names import TableName

_CARE_ROW = t.insert_or_skip(t.care, "stream_id", "failures")
_NOTHING: dict[str, Any] = {c: None for c in ("retry_at", "suspended_at", "error_code", "error_message")}
_CLEAN = {"failures": 0, **_NOTHING}
_WHOLE: dict[str, Any] = {"fuse_at": None, "fuse_json": None}


def read(connection: Connection) -> dict[TableName, SchedulingState]:
    """Read the scheduling states of stream tables that have one."""
    query = sa.select(t.relation.c.name, t.care).join(t.relation, t.relation.c.id == t.care.c.stream_id)
    return {
        parse_name(row["name"]): SchedulingState(
            row["paused_at"],
            row["failures"],
            row["retry_at"],
            row["suspended_at"],
            row["error_code"],
            row["error_message"],
            row["fuse_at"],
            row["fuse_json"],
            row["skipped_at"],
            row["skipped_rows"] or 0,
        )
        for row in connection.execute(query).mappings()
    }


def change(connection: Connection, names: Sequence[TableName], values: Mapping[str, Any]) -> None:
    """Write what is known of some stream tables.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`.
    """
    ids = [stream_id(connection, name) for name in names]
    if ids:
        connection.execute(_CARE_ROW, [{"stream_id": i, "failures": 0} for i in ids])
        connection.execute(sa.update(t.care).where(t.care.c.stream_id.in_(ids)).values(dict(values)))


def note_failure(
    connection: Connection,
    names: Sequence[TableName],
    code: str,
    message: str,
    retry_at: Callable[[int], dt.datetime | None],
    now: dt.datetime,
) -> int:
    """Count a failure of tables refreshed together; return how many came in a row."""
    known = read(connection)
    failures = 1 + max((known.get(name, SchedulingState()).failures for name in names), default=0)
    again = retry_at(failures)
    values = {"failures": failures, "retry_at": again, "suspended_at": None if again else now}
    change(connection, names, {**values, "error_code": code, "error_message": message})
    return failures


def resume(connection: Connection, names: Sequence[TableName]) -> None:
    """Let stream tables be refreshed again, at once."""
    change(connection, names, {"paused_at": None, **_CLEAN})


def forgive(connection: Connection, names: Sequence[TableName]) -> None:
    """Let stream tables that failed be tried again, at once; a pause stays."""
    change(connection, names, _CLEAN)


def note_published(connection: Connection, stream_ids: Sequence[int]) -> None:
    """End the row of failures, and a blown fuse, of published stream tables."""
    troubled = sa.or_(t.care.c.failures > 0, t.care.c.fuse_at.is_not(None))
    mended = sa.update(t.care).where(t.care.c.stream_id.in_(stream_ids), troubled)
    connection.execute(mended.values({**_CLEAN, **_WHOLE}))


def note_skipped(
    connection: Connection, skipped: Mapping[int, tuple[int, dt.datetime]], recomputed: Sequence[int]
) -> None:
    """Record which stream tables differ from their queries by skipped rows.

    Recomputed ones differ no longer.

    Args:
        connection: Inside the transaction.
        skipped: Changed rows of sources that were skipped, and since when, by the stream table's id.
        recomputed: Ids of stream tables that were recomputed whole.
    """
    known = sa.and_(t.care.c.stream_id.in_(recomputed), t.care.c.skipped_at.is_not(None))
    if recomputed:
        connection.execute(sa.update(t.care).where(known).values(skipped_at=None, skipped_rows=None))
    for stream, (rows, since) in skipped.items():
        connection.execute(_CARE_ROW, [{"stream_id": stream, "failures": 0}])
        values = {
            "skipped_at": sa.func.coalesce(t.care.c.skipped_at, sa.literal(since, t.UtcTime)),
            "skipped_rows": sa.func.coalesce(t.care.c.skipped_rows, 0) + rows,
        }
        connection.execute(sa.update(t.care).where(t.care.c.stream_id == stream).values(values))


def blow_fuse(connection: Connection, name: TableName, evidence: Json, now: dt.datetime) -> None:
    """Note that a change was too large; see `SchedulerCatalog.blow_fuse`."""
    change(connection, [name], {"fuse_at": now, "fuse_json": dict(evidence)})


def mend_fuse(connection: Connection, name: TableName) -> None:
    """Forget a blown fuse; see `SchedulerCatalog.mend_fuse`."""
    change(connection, [name], _WHOLE)


# ---- schedulers


def schedulers(connection: Connection, *, locked: bool = False) -> tuple[SchedulerRecord, ...]:
    """Return processes that run schedules, also such as died without a word.

    The first to come first.

    Args:
        connection: Inside the transaction.
        locked: Whether who else asks so is to wait for the end of the transaction.
    """
    query = sa.select(t.scheduler).order_by(t.scheduler.c.started_at, t.scheduler.c.owner)
    query = query.with_for_update() if locked else query
    return tuple(SchedulerRecord(*row) for row in connection.execute(query))


def register(connection: Connection, owner: str, until: dt.datetime, now: dt.datetime) -> None:
    """Register a scheduler; a SQLite catalog allows only one."""
    connection.execute(sa.delete(t.scheduler).where(t.scheduler.c.expires_at <= now))
    row = {"owner": owner, "started_at": now, "expires_at": until, "draining": False}
    connection.execute(sa.insert(t.scheduler).values(row))


def beat(connection: Connection, owner: str, until: dt.datetime, claim: Json | None, *, draining: bool) -> None:
    """Say that a scheduler still runs, and what it claims."""
    values = {"expires_at": until, "claim_json": claim, "draining": draining}
    connection.execute(sa.update(t.scheduler).where(t.scheduler.c.owner == owner).values(values))


def unregister(connection: Connection, owners: Sequence[str]) -> None:
    """Forget schedulers."""
    connection.execute(sa.delete(t.scheduler).where(t.scheduler.c.owner.in_(owners)))


def drain(connection: Connection) -> None:
    """Ask all schedulers to finish what runs and to start nothing."""
    connection.execute(sa.update(t.scheduler).values(draining=True))


# ---- events


def write_events(connection: Connection, rows: Sequence[tuple[dt.datetime, str, Mapping[str, Any]]]) -> None:
    """Keep events."""
    if rows:
        values = [{"at": at, "kind": kind, "fields_json": dict(fields)} for at, kind, fields in rows]
        connection.execute(sa.insert(t.event), values)


def events(connection: Connection, after: int | None, limit: int, kinds: Sequence[str] = ()) -> tuple[EventRecord, ...]:
    """Return events later than an id, oldest first; the newest ones for None."""
    query = sa.select(t.event).limit(limit)
    if kinds:
        query = query.where(t.event.c.kind.in_(kinds))
    if after is None:
        newest = connection.execute(query.order_by(t.event.c.id.desc())).all()
        return tuple(EventRecord(*row) for row in reversed(newest))
    later = query.where(t.event.c.id > after).order_by(t.event.c.id)
    return tuple(EventRecord(*row) for row in connection.execute(later))


def forget_events(connection: Connection, before: dt.datetime) -> int:
    """Forget old events; returns how many."""
    return connection.execute(sa.delete(t.event).where(t.event.c.at < before)).rowcount


def refuse_second(live: SchedulerRecord) -> UserError:
    """Return the error for a second scheduler where only one may run."""
    return UserError(
        "SCHEDULER_RUNNING",
        f"Schedules of this project are run by {live.owner} already, since {live.started_at:%Y-%m-%d %H:%M:%S} UTC.",
        hint="Stop that process, or `headrace drain` it; several may run where the catalog is in PostgreSQL.",
    )
