"""Rows of database sources and mirrors, read and changed in the caller's transaction."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.publishing import published_pointers
from headrace.catalog.records import Json
from headrace.catalog.relations import (
    ensure_relations,
    forget_relations,
    parse_name,
    read_by_others,
    relation_ids,
    stored_name,
)
from headrace.catalog.safeguards import gates
from headrace.catalog.sources.source_health import SourceFailure, captures_of, failure_of, looks_of, node_failures_of
from headrace.errors import EnvironmentFault, UserError
from headrace.names import TableName
from headrace.suggestions import did_you_mean


class SourceStatus(StrEnum):
    """The status of a database source: installed, landing, paused, or stopped."""

    NEW = "NEW"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A table of the lake that follows a table of a database.

    Args:
        name: The mirror.
        log: Its change log.
        details: What the capture knows of the table it was made of; None before the first landing.
        gone: The table was dropped; the mirror keeps its last rows.
    """

    name: TableName
    log: TableName
    details: Json | None = None
    gone: bool = False

    @property
    def stored(self) -> tuple[TableName, ...]:
        """Return the stored tables it consists of."""
        return (self.name, self.log)

    @property
    def key(self) -> tuple[str, ...]:
        """Return columns in which no two of its rows agree, as its database sees to it.

        None where there are no such.
        """
        return tuple((self.details or {}).get("key", ()))

    @property
    def key_since(self) -> int:
        """Return the first version of it in which its key is known to hold."""
        return int((self.details or {}).get("key_since", 0))


@dataclass(frozen=True, slots=True)
class DatabaseSource:
    """A database whose tables are mirrored.

    Args:
        name: Its name, which is the namespace of its mirrors.
        kind: What kind of database, as the registry of sources names it.
        options: Where it is and what is captured; holds no password.
        position: What is landed; None before the first landing.
        status: Its life.
        stopped_code: Error code that stopped it.
        stopped_reason: The sentence for it.
        landed_at: When something was last landed.
        created_at: When it was created.
        mirrors: Its mirrors, by name.
        failure: The last failure of landing it.
        looks: Looks at its server, oldest first.
        node_failures: Of a source of several nodes, the last failure of each.
        captures: Of such a source, what is to be installed on servers or removed there, by its name.
    """

    name: str
    kind: str
    options: Json
    position: Json | None
    status: SourceStatus
    stopped_code: str | None
    stopped_reason: str | None
    landed_at: dt.datetime | None
    created_at: dt.datetime
    mirrors: tuple[Mirror, ...]
    failure: SourceFailure | None = None
    looks: tuple[Json, ...] = ()
    node_failures: Mapping[str, SourceFailure] = field(default_factory=dict)
    captures: Mapping[str, Json] = field(default_factory=dict)

    @property
    def held(self) -> dict[str, str]:
        """Return the nodes of which nothing was landed last, with the codes of the errors."""
        return {node: failure.code for node, failure in self.node_failures.items() if failure.over is None}


@dataclass(frozen=True, slots=True)
class SourceMove:
    """A source's position after a publication.

    Args:
        source: Its name.
        expected: The position that the landing started from; another one in the catalog refuses the publication.
        position: The new one.
        mirrors: Mirrors that are made of another table, or another shape of it, or have another log from now on.
        activates: The source is ACTIVE from now on, as a new snapshot makes it; else it stays as it is, so that
            whoever pauses it while it is landed is heard.
        options: Where it is and what is captured from now on; None leaves that as it is.
        adds: Mirrors that it has from now on.
        removes: Mirrors that end; their stored tables go with the publication's `deletes`.
    """

    source: str
    expected: Json | None
    position: Json
    mirrors: tuple[Mirror, ...] = field(default=())
    activates: bool = False
    options: Json | None = None
    adds: tuple[Mirror, ...] = ()
    removes: tuple[TableName, ...] = ()


def read(connection: Connection, name: str | None = None) -> tuple[DatabaseSource, ...]:
    """Return all sources by name, or the one of that name if it exists."""
    query = sa.select(t.source).order_by(t.source.c.name)
    if name is not None:
        query = query.where(t.source.c.name == name)
    rows = connection.execute(query).mappings().all()
    of: defaultdict[int, list[Mirror]] = defaultdict(list)
    mirrors = (
        sa.select(t.relation.c.name, t.mirror)
        .join(t.relation, t.relation.c.id == t.mirror.c.relation_id)
        .order_by(t.relation.c.name)
    )
    for row in connection.execute(mirrors).mappings() if rows else ():
        mirror = Mirror(parse_name(row["name"]), parse_name(row["log"]), row["details_json"], bool(row["gone"]))
        of[row["source_id"]].append(mirror)
    return tuple(_source(row, tuple(of[row["id"]])) for row in rows)


def _source(row: sa.RowMapping, mirrors: tuple[Mirror, ...]) -> DatabaseSource:
    return DatabaseSource(
        name=row["name"],
        kind=row["kind"],
        options=row["options_json"],
        position=row["position_json"],
        status=SourceStatus(row["status"]),
        stopped_code=row["stopped_code"],
        stopped_reason=row["stopped_reason"],
        landed_at=row["landed_at"],
        created_at=row["created_at"],
        mirrors=mirrors,
        failure=failure_of(row["health_json"]),
        looks=looks_of(row["health_json"]),
        node_failures=node_failures_of(row["health_json"]),
        captures=captures_of(row["health_json"]),
    )


def one(connection: Connection, name: str) -> DatabaseSource:
    """Return the source of that name.

    Raises:
        UserError: `SOURCE_UNKNOWN`.
    """
    found = read(connection, name)
    if not found:
        raise UserError(
            "SOURCE_UNKNOWN",
            f"There is no database source {name}.",
            hint=did_you_mean(name, (source.name for source in read(connection)))
            + "`headrace source list` lists those that exist.",
        )
    return found[0]


def create(
    connection: Connection, name: str, kind: str, options: Json, mirrors: Sequence[Mirror], now: dt.datetime
) -> DatabaseSource:
    """Write a new source, status NEW; its mirrors become relations.

    Raises:
        UserError: `SOURCE_EXISTS`.
    """
    if read(connection, name):
        raise UserError(
            "SOURCE_EXISTS",
            f"The database source {name} exists already.",
            hint="Use IF NOT EXISTS, another name, or drop it first; ALTER SOURCE … ADD TABLES adds tables to it.",
        )
    values = {"name": name, "kind": kind, "options_json": dict(options), "status": SourceStatus.NEW.value}
    key = connection.execute(sa.insert(t.source).values(**values, created_at=now)).inserted_primary_key
    assert key is not None, "the row has an id"
    _add_mirrors(connection, key[0], mirrors)
    return one(connection, name)


def _add_mirrors(connection: Connection, source_id: int, mirrors: Sequence[Mirror]) -> None:
    ids = ensure_relations(connection, [m.name for m in mirrors])
    gates.forget(connection, list(ids.values()))  # they were of tables of these names that are gone
    rows = [
        {"relation_id": ids[m.name], "source_id": source_id, "log": stored_name(m.log), "gone": False} for m in mirrors
    ]
    connection.execute(sa.insert(t.mirror), rows)


def set_status(
    connection: Connection, name: str, status: SourceStatus, code: str | None = None, reason: str | None = None
) -> None:
    """Change the life of a source; a reason goes with STOPPED."""
    one(connection, name)
    values = {"status": status.value, "stopped_code": code, "stopped_reason": reason}
    connection.execute(sa.update(t.source).where(t.source.c.name == name).values(values))


def pause(connection: Connection, name: str) -> None:
    """Put an active source on hold.

    Raises:
        UserError: `SOURCE_NOT_ACTIVE`; a source that is stopped stays stopped.
    """
    status = _locked_status(connection, name)
    if status is not SourceStatus.ACTIVE:
        raise UserError(
            "SOURCE_NOT_ACTIVE",
            f"Source {name} cannot be paused; it is {status.value}.",
            hint="Only a source that is landed can be put on hold; the others are not landed anyway.",
        )
    set_status(connection, name, SourceStatus.PAUSED)


def resume(connection: Connection, name: str) -> None:
    """End a pause.

    Raises:
        UserError: `SOURCE_NOT_PAUSED`.
    """
    status = _locked_status(connection, name)
    if status is not SourceStatus.PAUSED:
        raise UserError(
            "SOURCE_NOT_PAUSED",
            f"Source {name} is not paused; it is {status.value}.",
            hint=f"Take a new snapshot of a stopped source: `headrace source resnapshot {name}`.",
        )
    set_status(connection, name, SourceStatus.ACTIVE)


def _locked_status(connection: Connection, name: str) -> SourceStatus:
    """Return a source's status, which nobody else changes before this transaction ends."""
    connection.execute(sa.select(t.source.c.id).where(t.source.c.name == name).with_for_update())
    return one(connection, name).status


def move(connection: Connection, moves: Sequence[SourceMove], now: dt.datetime) -> None:
    """Move the positions of sources.

    Raises:
        EnvironmentFault: `LANDING_OVERTAKEN` when somebody else landed meanwhile.
    """
    for wanted in moves:
        own = sa.select(t.source).where(t.source.c.name == wanted.source).with_for_update()
        row = connection.execute(own).mappings().one_or_none()
        if row is None or row["position_json"] != (None if wanted.expected is None else dict(wanted.expected)):
            raise EnvironmentFault(
                "LANDING_OVERTAKEN",
                f"Source {wanted.source} was landed by another process, or dropped; nothing was published.",
                hint="Refresh again.",
                retryable=True,
            )
        values: dict[str, Any] = {"position_json": dict(wanted.position), "landed_at": now}
        if wanted.activates:
            values |= {"status": SourceStatus.ACTIVE.value, "stopped_code": None, "stopped_reason": None}
        if wanted.options is not None:
            values["options_json"] = dict(wanted.options)
        connection.execute(sa.update(t.source).where(t.source.c.id == row["id"]).values(values))
        if wanted.adds:
            _add_mirrors(connection, row["id"], wanted.adds)
        if wanted.removes:
            own_mirrors = one(connection, wanted.source).mirrors
            _forget_mirrors(connection, [m for m in own_mirrors if m.name in wanted.removes])
        _write_mirrors(connection, wanted.mirrors)


def _write_mirrors(connection: Connection, mirrors: Sequence[Mirror]) -> None:
    ids = relation_ids(connection, [m.name for m in mirrors])
    for mirror in mirrors:
        details = None if mirror.details is None else dict(mirror.details)
        own = t.mirror.c.relation_id == ids[mirror.name]
        values = {"details_json": details, "gone": mirror.gone, "log": stored_name(mirror.log)}
        connection.execute(sa.update(t.mirror).where(own).values(values))


def drop(connection: Connection, names: Sequence[str]) -> None:
    """Delete sources and mirrors; relations that stream tables read stay as gone tables."""
    for name in names:
        source = one(connection, name)
        _forget_mirrors(connection, source.mirrors)
        connection.execute(sa.delete(t.source).where(t.source.c.name == name))


def _forget_mirrors(connection: Connection, mirrors: Sequence[Mirror]) -> None:
    ids = list(relation_ids(connection, [m.name for m in mirrors]).values())
    connection.execute(sa.delete(t.mirror).where(t.mirror.c.relation_id.in_(ids)))
    gates.forget(connection, ids)
    forget_relations(connection, set(ids) - read_by_others(connection, ids))
    published_pointers.forget(connection, [stored for m in mirrors for stored in m.stored])
