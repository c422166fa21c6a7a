"""Rows of stream tables as records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from headrace.catalog import schema as t
from headrace.catalog.definitions.stored_details import StoredDetails
from headrace.catalog.records import RefreshMode, Status, StreamTable
from headrace.catalog.relations import MANY, optional_name, parse_name, stored_name
from headrace.names import TableName

# built once: SQLAlchemy takes longer to build a statement than SQLite to answer it
_OWN = t.stream_table.c
# as one text: to fetch ten thousand rows takes longer than all else that a refresh asks of the catalog
_STATES = sa.select(sa.func.aggregate_strings(sa.cast(_OWN.relation_id, sa.Text) + ":" + _OWN.state, ","))
_ALL: sa.Select[Any] = sa.select(
    t.relation.c.name,
    *(column for column in _OWN if column.key not in ("definition_json", "summary_json", "updated_at")),
    sa.cast(_OWN.summary_json, sa.Text).label("summary_text"),
    sa.cast(_OWN.definition_json, sa.Text).label("definition_text"),
).join(t.relation, t.relation.c.id == _OWN.relation_id)
_SOURCES = (
    sa.select(t.dependency.c.stream_id, t.relation.c.name)
    .join(t.relation, t.relation.c.id == t.dependency.c.source_id)
    .order_by(t.dependency.c.stream_id, t.dependency.c.position)
)
_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_ONE = _ALL.where(t.relation.c.name == sa.bindparam("name"))
_SOME = _ALL.where(_OWN.relation_id.in_(_IDS))
_SOURCES_OF = _SOURCES.where(t.dependency.c.stream_id.in_(_IDS))


@dataclass(frozen=True, slots=True)
class ReadStream:
    """A stream table as it was read.

    Args:
        name: Its name as stored, by which all are in order.
        table: The stream table.
    """

    name: str
    table: StreamTable


def read_streams(connection: Connection, name: TableName | None = None) -> tuple[StreamTable, ...]:
    """Return stream tables by name: all, or the one of that name if it exists."""
    if name is None:
        return tuple(one.table for one in in_order(read_rows(connection, row_ids(states(connection)))).values())
    rows = connection.execute(_ONE, {"name": stored_name(name)}).all()
    return tuple(one.table for one in _read(connection, rows, [row.relation_id for row in rows]).values())


def states(connection: Connection) -> frozenset[str]:
    """Return which stream tables there are, and the states of their rows, as `id:state`."""
    text: str | None = connection.execute(_STATES).scalar_one()
    return frozenset(text.split(",") if text else ())


def row_ids(states_: Iterable[str]) -> set[int]:
    """Return the ids of some of what `states` returned."""
    return {int(state.partition(":")[0]) for state in states_}


def read_rows(connection: Connection, ids: Set[int]) -> dict[int, ReadStream]:
    """Return stream tables by id, in no order.

    Args:
        connection: Inside a transaction in which every query sees the same state.
        ids: Whose; those that do not exist are left out.
    """
    if not ids:
        return {}
    found = connection.execute(_ALL) if len(ids) > MANY else connection.execute(_SOME, {"ids": list(ids)})
    return _read(connection, [row for row in found.all() if row.relation_id in ids], list(ids))


def in_order(read: Mapping[int, ReadStream]) -> dict[int, ReadStream]:
    """Return the same in the order of their names."""
    return dict(sorted(read.items(), key=lambda item: item[1].name))


def _read(connection: Connection, rows: Sequence[Row[Any]], ids: Sequence[int]) -> dict[int, ReadStream]:
    """Return what rows say, with the names of their sources."""
    if not rows:
        return {}
    found = connection.execute(_SOURCES) if len(ids) > MANY else connection.execute(_SOURCES_OF, {"ids": ids})
    sources = _by_stream(found.all())
    return {row.relation_id: ReadStream(row.name, _stream(row, sources.get(row.relation_id, ()))) for row in rows}


def _by_stream(rows: Iterable[Any]) -> dict[int, tuple[str, ...]]:
    of: defaultdict[int, list[str]] = defaultdict(list)
    for stream_id, name in rows:
        of[stream_id].append(name)
    return {stream_id: tuple(names) for stream_id, names in of.items()}


def _stream(row: Sequence[Any], sources: tuple[str, ...]) -> StreamTable:
    """Return a row of `_ALL` as a record."""
    # by places, as to look columns up by their names takes longer than all else
    name, id_, query, mode, schedule, companion, log, generation, status, *rest, checksum, summary, details = row
    stopped_code, stopped_reason, created_at, options, companion_behind, _state = rest
    return StreamTable(
        id=id_,
        name=parse_name(name),
        query=query,
        sources=tuple(map(parse_name, sources)),
        refresh_mode=RefreshMode(mode),
        schedule=schedule,
        details=StoredDetails(details, summary, checksum),
        companion=optional_name(companion),
        log=optional_name(log),
        generation=generation,
        status=Status(status),
        stopped_code=stopped_code,
        stopped_reason=stopped_reason,
        created_at=created_at,
        options=options or {},
        companion_behind=companion_behind,
    )
