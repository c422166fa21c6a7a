"""Rows of sinks, read and changed in the caller's transaction."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.records import Json
from headrace.catalog.relations import parse_name, relation_ids
from headrace.errors import HeadraceError, UserError
from headrace.names import TableName
from headrace.suggestions import did_you_mean


class SinkStatus(StrEnum):
    """The status of a sink: never written, written, on hold, or stopped until somebody decides."""

    NEW = "NEW"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class SinkFailure:
    """The last failure of writing a sink.

    Args:
        code: Error code.
        message: What happened.
        detail: Why, where that is known.
        remedy: What to do about it.
        retryable: Whether it may pass by itself.
        at: When.
    """

    code: str
    message: str
    detail: str | None
    remedy: str | None
    retryable: bool
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Sink:
    """A stream table's rows in a database.

    Args:
        name: Its name.
        uuid: Its identity, by which its target knows it.
        kind: What kind of database, as the registry of sinks names it.
        stream: The stream table.
        options: Where it is and how it is written; holds no password.
        schedule: When it is written; None: as soon as something is published.
        status: Its life.
        version: The version of the stream table that its target has, as far as is known; None before the first load.
        rows: Rows of the target by what was written.
        written_at: When something was last written.
        stopped_code: Error code that stopped it.
        stopped_reason: The sentence for it.
        failures: How many writes in a row failed.
        retry_at: Not to be tried again before.
        failure: The last failure, while it lasts.
        created_at: When it was created.
        placement: Where the target's rows were when it was last written, in its kind's words.
    """

    name: str
    uuid: str
    kind: str
    stream: TableName
    options: Json
    schedule: str | None
    status: SinkStatus
    version: int | None
    rows: int | None
    written_at: dt.datetime | None
    stopped_code: str | None
    stopped_reason: str | None
    failures: int
    retry_at: dt.datetime | None
    failure: SinkFailure | None
    created_at: dt.datetime
    placement: str | None = None


def read(connection: Connection, name: str | None = None) -> tuple[Sink, ...]:
    """Return all sinks by name, or the one of that name if it exists."""
    query = (
        sa.select(t.sink, t.relation.c.name.label("stream"))
        .join(t.relation, t.relation.c.id == t.sink.c.relation_id)
        .order_by(t.sink.c.name)
    )
    if name is not None:
        query = query.where(t.sink.c.name == name)
    return tuple(_sink(row) for row in connection.execute(query).mappings())


def _sink(row: sa.RowMapping) -> Sink:
    return Sink(
        name=row["name"],
        uuid=row["uuid"],
        kind=row["kind"],
        stream=parse_name(row["stream"]),
        options=row["options_json"],
        schedule=row["schedule"],
        status=SinkStatus(row["status"]),
        version=row["version"],
        rows=row["rows"],
        written_at=row["written_at"],
        stopped_code=row["stopped_code"],
        stopped_reason=row["stopped_reason"],
        failures=row["failures"],
        retry_at=row["retry_at"],
        failure=_failure_of(row["failure_json"]),
        created_at=row["created_at"],
        placement=row["placement"],
    )


def _failure_of(found: Mapping[str, Any] | None) -> SinkFailure | None:
    return None if found is None else SinkFailure(**{**found, "at": dt.datetime.fromisoformat(found["at"])})


def one(connection: Connection, name: str) -> Sink:
    """Return the sink of that name.

    Raises:
        UserError: `SINK_UNKNOWN`.
    """
    found = read(connection, name)
    if not found:
        raise UserError(
            "SINK_UNKNOWN",
            f"There is no sink {name}.",
            hint=did_you_mean(name, (sink.name for sink in read(connection)))
            + "`headrace sink list` lists those that exist.",
        )
    return found[0]


def create(
    connection: Connection,
    name: str,
    uuid: str,
    kind: str,
    stream: TableName,
    options: Json,
    schedule: str | None,
    now: dt.datetime,
) -> Sink:
    """Write a new sink, status NEW.

    Raises:
        UserError: `SINK_EXISTS`.
    """
    if read(connection, name):
        raise UserError(
            "SINK_EXISTS", f"The sink {name} exists already.", hint="Use IF NOT EXISTS, another name, or drop it first."
        )
    values = {
        "name": name,
        "uuid": uuid,
        "kind": kind,
        "relation_id": relation_ids(connection, [stream])[stream],
        "options_json": dict(options),
        "schedule": schedule,
        "status": SinkStatus.NEW.value,
        "failures": 0,
        "created_at": now,
    }
    connection.execute(sa.insert(t.sink).values(**values))
    return one(connection, name)


def change(connection: Connection, name: str, **values: object) -> Sink:
    """Change columns of a sink's row.

    Raises:
        UserError: `SINK_UNKNOWN`.
    """
    one(connection, name)
    connection.execute(sa.update(t.sink).where(t.sink.c.name == name).values(**values))
    return one(connection, name)


def note_written(
    connection: Connection,
    uuid: str,
    version: int,
    rows: int,
    now: dt.datetime,
    *,
    anew: bool,
    placement: str | None,
) -> None:
    """Remember which version a target has; one that was dropped meanwhile is left alone.

    A sink that is paused while it is written stays paused; a resync ends a stop.
    """
    own = t.sink.c.uuid == uuid
    ended: dict[str, object] = {"failures": 0, "retry_at": None, "failure_json": None}
    if placement is not None:
        ended["placement"] = placement
    connection.execute(sa.update(t.sink).where(own).values(version=version, rows=rows, written_at=now, **ended))
    begun = [SinkStatus.NEW.value, *([SinkStatus.STOPPED.value] if anew else [])]
    active = {"status": SinkStatus.ACTIVE.value, "stopped_code": None, "stopped_reason": None}
    connection.execute(sa.update(t.sink).where(own, t.sink.c.status.in_(begun)).values(**active))


def note_failure(
    connection: Connection,
    name: str,
    error: HeadraceError,
    retry_at: Callable[[int], dt.datetime],
    now: dt.datetime,
    *,
    stops: bool,
) -> None:
    """Remember why a sink was not written, and when to try again.

    Nothing happens when there is no such sink.
    """
    row = connection.execute(sa.select(t.sink.c.failures).where(t.sink.c.name == name).with_for_update()).one_or_none()
    if row is None:
        return
    failures = row[0] + 1
    failure = {
        "code": error.code,
        "message": error.message,
        "detail": error.detail,
        "remedy": error.hint,
        "retryable": error.retryable,
        "at": now.isoformat(),
    }
    values: dict[str, object] = {"failures": failures, "retry_at": retry_at(failures), "failure_json": failure}
    if stops:
        stopped = {"stopped_code": error.code, "stopped_reason": error.message}
        values |= {"status": SinkStatus.STOPPED.value, "retry_at": None, **stopped}
    connection.execute(sa.update(t.sink).where(t.sink.c.name == name).values(**values))


def drop(connection: Connection, name: str) -> None:
    """Delete a sink.

    Raises:
        UserError: `SINK_UNKNOWN`.
    """
    one(connection, name)
    connection.execute(sa.delete(t.sink).where(t.sink.c.name == name))


def has_sinks(connection: Connection, relation: int) -> bool:
    """Return whether there are sinks of a stream table."""
    return bool(connection.execute(sa.select(sa.exists().where(t.sink.c.relation_id == relation))).scalar())


def refuse_written(connection: Connection, streams: Collection[TableName]) -> None:
    """Refuse to drop stream tables that sinks write.

    Raises:
        UserError: `HAS_SINKS`.
    """
    found = [sink for sink in read(connection) if sink.stream in streams]
    if found:
        names = ", ".join(sink.name for sink in found)
        raise UserError(
            "HAS_SINKS",
            f"{found[0].stream} is written to a database by {names}; nothing was dropped.",
            hint=f"Drop that first: DROP SINK {found[0].name}. The rows stay where they were written.",
        )
