"""Writes definitions, and history without publication, in the caller's transaction."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.coordination.notify import wake
from headrace.catalog.definitions import deployments, greens
from headrace.catalog.definitions.stored_details import stored_values
from headrace.catalog.definitions.stream_tables import read_streams
from headrace.catalog.many_rows import insert_rows, update_rows
from headrace.catalog.publishing import published_pointers as published
from headrace.catalog.records import Definition, HistoryEntry, RefreshMode, RelationKind, Status, StreamTable
from headrace.catalog.relations import (
    ensure_relations,
    forget_relations,
    lock_relations,
    name_condition,
    not_found,
    parse_name,
    read_by_others,
    relation_ids,
    stored_name,
    stream_id,
)
from headrace.catalog.safeguards import gates
from headrace.catalog.sinks import sink_rows
from headrace.catalog.state import history
from headrace.errors import EnvironmentFault, UserError
from headrace.names import TableName


def create_stream_table(connection: Connection, definition: Definition, now: dt.datetime) -> None:
    """Define a stream table; a source of that name becomes it, and keeps its versions.

    Raises:
        UserError: `STREAM_TABLE_EXISTS`.
    """
    ids = ensure_relations(connection, (definition.name, *definition.sources))
    own = ids[definition.name]
    lock_relations(connection, [own])
    exists = sa.select(t.stream_table.c.relation_id).where(t.stream_table.c.relation_id == own)
    if connection.execute(exists).first() is not None:
        raise UserError(
            "STREAM_TABLE_EXISTS",
            f"The stream table {definition.name} exists already.",
            hint="Use CREATE OR REPLACE or IF NOT EXISTS, or drop it first.",
        )
    connection.execute(
        sa.update(t.relation).where(t.relation.c.id == own).values(kind=RelationKind.STREAM.value, schema_json=None)
    )
    gates.forget(connection, [own])
    values = {
        **_definition_values(definition),
        **_settings(definition),
        "relation_id": own,
        "generation": 1,
        "created_at": now,
        "updated_at": now,
    }
    connection.execute(sa.insert(t.stream_table).values(values))
    insert_rows(connection, t.dependency, _dependencies(own, definition, ids))


def define(connection: Connection, definitions: Sequence[Definition], now: dt.datetime) -> None:
    """Create stream tables, or replace those that exist; a promotion replaces many at once."""
    if not definitions:
        return
    there = _locked(connection, [definition.name for definition in definitions])
    _replace(connection, there, [d for d in definitions if d.name in there], now)
    for definition in definitions:
        if definition.name not in there:
            create_stream_table(connection, definition, now)
    wake(connection)


def _locked(connection: Connection, names: Sequence[TableName]) -> dict[TableName, int]:
    """Return the ids of those names that are stream tables; locks them in a fixed order."""
    query = (
        sa.select(t.relation.c.name, t.stream_table.c.relation_id)
        .join(t.relation, t.relation.c.id == t.stream_table.c.relation_id)
        .where(name_condition(names))
        .order_by(t.stream_table.c.relation_id)
        .with_for_update(of=t.stream_table)
    )
    wanted = set(names)
    return {name: own for text, own in connection.execute(query) if (name := parse_name(text)) in wanted}


def _replace(
    connection: Connection, own: Mapping[TableName, int], definitions: Sequence[Definition], now: dt.datetime
) -> None:
    """Give stream tables new definitions, however many, by a fixed number of statements.

    Args:
        connection: Inside the transaction.
        own: Their ids.
        definitions: The definitions.
        now: The time.
    """
    if not definitions:
        return
    ids = ensure_relations(connection, [source for definition in definitions for source in definition.sources])
    for table in (t.dependency, t.frontier):
        connection.execute(sa.delete(table).where(table.c.stream_id.in_([own[d.name] for d in definitions])))
    cleared = {"stopped_code": None, "stopped_reason": None}
    again = {"generation": t.stream_table.c.generation + 1}
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for definition in definitions:
        values = _definition_values(definition) | ({} if definition.settings_kept else _settings(definition))
        row = {"of": own[definition.name], **values, **cleared, "updated_at": now}
        alike.setdefault(tuple(row), []).append(row)
    for rows in alike.values():
        update_rows(connection, t.stream_table, {"of": "relation_id"}, rows, again)
    insert_rows(connection, t.dependency, [row for d in definitions for row in _dependencies(own[d.name], d, ids)])


def alter_stream_table(
    connection: Connection,
    name: TableName,
    now: dt.datetime,
    *,
    refresh_mode: RefreshMode | None,
    schedule: str | None,
    clear_schedule: bool,
    details: Mapping[str, object] | None,
    options: Mapping[str, str] | None,
) -> StreamTable:
    """Change what does not change the contents; None leaves a field as it is.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`.
    """
    values: dict[str, Any] = {}
    if refresh_mode is not None:
        values["refresh_mode"] = refresh_mode.value
    if schedule is not None or clear_schedule:
        values["schedule"] = None if clear_schedule else schedule
    if details is not None:
        values |= stored_values(details)
    if options is not None:
        values["options_json"] = dict(options)
    _update(connection, name, now, values)
    wake(connection)
    return _one(connection, name)


def drop_stream_tables(connection: Connection, names: Sequence[TableName]) -> None:
    """Delete stream tables; a relation that others read stays.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`, `HAS_SINKS`; then none is dropped.
        EnvironmentFault: `DEPLOYMENT_CHANGED`: there is a green of one of them by now.
    """
    dropped = tuple(_one(connection, name) for name in names)
    sink_rows.refuse_written(connection, names)
    ids = [stream.id for stream in dropped]
    greens.forget(connection, ids)
    greens.refuse_left(connection, ids)
    deployments.forget_empty(connection)
    for table in (t.dependency, t.frontier, t.care, t.epoch):
        connection.execute(sa.delete(table).where(table.c.stream_id.in_(ids)))
    connection.execute(sa.delete(t.stream_table).where(t.stream_table.c.relation_id.in_(ids)))
    read = read_by_others(connection, ids)
    kind = sa.update(t.relation).values(kind=RelationKind.SOURCE.value)
    connection.execute(kind.where(t.relation.c.id.in_(read)))
    forget_relations(connection, [i for i in ids if i not in read])
    published.forget(connection, [name for stream in dropped for name in stream.stored])
    wake(connection)


def stop(connection: Connection, name: TableName, code: str, reason: str, now: dt.datetime) -> None:
    """Set a stream table to STOPPED, with the error code and the sentence for it."""
    _update(connection, name, now, {"status": Status.STOPPED.value, "stopped_code": code, "stopped_reason": reason})


def stop_if_there(connection: Connection, name: TableName, code: str, reason: str, now: dt.datetime) -> None:
    """Stop a stream table as `stop` does, unless it was dropped meanwhile."""
    if read_streams(connection, name):
        stop(connection, name, code, reason, now)


def set_log(connection: Connection, name: TableName, now: dt.datetime, log: TableName | None) -> None:
    """Say where a stream table's change log is; None means that it has none.

    Raises:
        EnvironmentFault: `DEFINITION_CHANGED` when it is to end and a stream table or a sink reads it by now.
    """
    own = stream_id(connection, name)
    if log is None and (read_by_others(connection, [own]) or sink_rows.has_sinks(connection, own)):
        raise EnvironmentFault(
            "DEFINITION_CHANGED",
            f"The change log of {name} was to end, and something reads it by now; nothing was published.",
            hint="Nothing needs to be done.",
            retryable=True,
        )
    _update(connection, name, now, {"log": None if log is None else stored_name(log)})


def record(connection: Connection, entries: Sequence[HistoryEntry]) -> None:
    """Write history that no publication belongs to."""
    history.write(connection, entries, relation_ids(connection, (e.stream for e in entries)))


def _definition_values(definition: Definition) -> dict[str, Any]:
    return {
        "query": definition.query,
        **stored_values(definition.details),
        "companion": None if definition.companion is None else stored_name(definition.companion),
        "log": None if definition.log is None else stored_name(definition.log),
        "companion_behind": False,
        "state": t.new_state(),
        "status": Status.NEW.value,
        **({} if definition.options is None else {"options_json": dict(definition.options)}),
    }


def _settings(definition: Definition) -> dict[str, Any]:
    return {"refresh_mode": definition.refresh_mode.value, "schedule": definition.schedule}


def _dependencies(own: int, definition: Definition, ids: Mapping[TableName, int]) -> list[dict[str, int]]:
    sources = dict.fromkeys(definition.sources)
    return [{"stream_id": own, "source_id": ids[s], "position": i} for i, s in enumerate(sources)]


def _update(connection: Connection, name: TableName, now: dt.datetime, values: Mapping[str, Any]) -> None:
    own = stream_id(connection, name)
    change = sa.update(t.stream_table).where(t.stream_table.c.relation_id == own)
    connection.execute(change.values({**values, "updated_at": now}))


def _one(connection: Connection, name: TableName) -> StreamTable:
    found = read_streams(connection, name)
    if not found:
        raise not_found(name)
    return found[0]
