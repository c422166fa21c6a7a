"""Rows of stream tables as records."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from headrace.catalog import schema as t
from headrace.catalog.records import Json, RefreshMode, Status, StreamTable
from headrace.catalog.relations import MANY, optional_name, parse_name, stored_name
from headrace.names import TableName

# built once: SQLAlchemy takes longer to build a statement than SQLite to answer it
_ALL = (
    sa.select(
        t.relation.c.name,
        *(c for c in t.stream_table.c if c.name not in ("query", "definition_json", "options_json")),
    )
    .join(t.relation, t.relation.c.id == t.stream_table.c.relation_id)
    .order_by(t.relation.c.name)
)
_SOURCES = (
    sa.select(t.dependency.c.stream_id, t.relation.c.name)
    .join(t.relation, t.relation.c.id == t.dependency.c.source_id)
    .order_by(t.dependency.c.stream_id, t.dependency.c.position)
)
_TEXTS = sa.select(
    t.stream_table.c.relation_id,
    t.stream_table.c.query,
    sa.cast(t.stream_table.c.definition_json, sa.Text),
    t.stream_table.c.options_json,
)
_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_ONE = _ALL.where(t.relation.c.name == sa.bindparam("name"))
_SOURCES_OF = _SOURCES.where(t.dependency.c.stream_id.in_(_IDS))
_TEXTS_OF = _TEXTS.where(t.stream_table.c.relation_id.in_(_IDS))


@dataclass(frozen=True, slots=True)
class _Texts:
    """Columns that are long and hardly ever change."""

    query: str
    details: Json
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReadStream:
    """A stream table as it was read, with what tells whether it is still the same.

    Args:
        row: Its row without the long columns; the name of the state that these are in is one of the others.
        sources: The names of its sources, as stored.
        table: The stream table.
    """

    row: Row[Any]
    sources: tuple[str, ...]
    table: StreamTable


def read_streams(connection: Connection, name: TableName | None = None) -> tuple[StreamTable, ...]:
    """Return stream tables by name: all, or the one of that name if it exists."""
    if name is None:
        return tuple(one.table for one in read_again(connection, {}).values())
    rows = connection.execute(_ONE, {"name": stored_name(name)}).all()
    ids = [row.relation_id for row in rows]
    sources, texts = _by_stream(connection.execute(_SOURCES_OF, {"ids": ids})), _texts(connection, ids)
    return tuple(_stream(row, sources.get(row.relation_id, ()), texts[row.relation_id]) for row in rows)


def read_again(connection: Connection, known: Mapping[int, ReadStream]) -> dict[int, ReadStream]:
    """Read all stream tables, the long columns of those only that are not known as they are.

    Args:
        connection: Inside a transaction in which every query sees the same state.
        known: What was read of them before, by id.

    Returns:
        All of them by id, in the order of their names.
    """
    rows = connection.execute(_ALL).all()
    sources = _by_stream(connection.execute(_SOURCES))
    texts = _texts(connection, [row.relation_id for row in rows if not _lasts(row, known.get(row.relation_id))])
    return {row.relation_id: _again(row, sources.get(row.relation_id, ()), texts, known) for row in rows}


def _lasts(row: Row[Any], own: ReadStream | None) -> bool:
    """Return whether the long columns are what they were."""
    return own is not None and own.row.text_state == row.text_state != ""


def _again(
    row: Row[Any], sources: tuple[str, ...], texts: Mapping[int, _Texts], known: Mapping[int, ReadStream]
) -> ReadStream:
    if (new := texts.get(row.relation_id)) is None:
        own = known[row.relation_id]
        if own.row == row and own.sources == sources:
            return own
        new = _Texts(own.table.query, own.table.details, own.table.options)
    return ReadStream(row, sources, _stream(row, sources, new))


def _by_stream(rows: Iterable[Any]) -> dict[int, tuple[str, ...]]:
    of: defaultdict[int, list[str]] = defaultdict(list)
    for stream_id, name in rows:
        of[stream_id].append(name)
    return {stream_id: tuple(names) for stream_id, names in of.items()}


def _texts(connection: Connection, ids: Sequence[int]) -> dict[int, _Texts]:
    if not ids:
        return {}
    rows = connection.execute(_TEXTS) if len(ids) > MANY else connection.execute(_TEXTS_OF, {"ids": ids})
    wanted = frozenset(ids)
    return {i: _Texts(query, json.loads(text), options or {}) for i, query, text, options in rows if i in wanted}


def _stream(row: Row[Any], sources: tuple[str, ...], texts: _Texts) -> StreamTable:
    return StreamTable(
        id=row.relation_id,
        name=parse_name(row.name),
        query=texts.query,
        sources=tuple(map(parse_name, sources)),
        refresh_mode=RefreshMode(row.refresh_mode),
        schedule=row.schedule,
        details=texts.details,
        companion=optional_name(row.companion),
        log=optional_name(row.log),
        generation=row.generation,
        status=Status(row.status),
        stopped_code=row.stopped_code,
        stopped_reason=row.stopped_reason,
        created_at=row.created_at,
        updated_at=row.updated_at,
        options=texts.options,
        companion_behind=row.companion_behind,
    )
