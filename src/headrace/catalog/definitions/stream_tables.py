"""Rows of stream tables as records."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from headrace.catalog import schema as t
from headrace.catalog.records import RefreshMode, Status, StreamTable
from headrace.catalog.relations import optional_name, parse_name, stored_name
from headrace.names import TableName

# built once: SQLAlchemy takes longer to build a statement than SQLite to answer it
_DETAILS = sa.cast(t.stream_table.c.definition_json, sa.Text).label("details")
_ALL = (
    sa.select(t.relation.c.name, *(c for c in t.stream_table.c if c.name != "definition_json"), _DETAILS)
    .join(t.relation, t.relation.c.id == t.stream_table.c.relation_id)
    .order_by(t.relation.c.name)
)
_SOURCES = (
    sa.select(t.dependency.c.stream_id, t.relation.c.name)
    .join(t.relation, t.relation.c.id == t.dependency.c.source_id)
    .order_by(t.dependency.c.stream_id, t.dependency.c.position)
)
_ONE = _ALL.where(t.relation.c.name == sa.bindparam("name"))
_SOURCES_OF = _SOURCES.where(t.dependency.c.stream_id.in_(sa.bindparam("ids", expanding=True)))


def read_streams(connection: Connection, name: TableName | None = None) -> tuple[StreamTable, ...]:
    """Return stream tables by name, from two queries: all, or the one of that name if it exists."""
    if name is None:
        rows = connection.execute(_ALL).mappings().all()
        sources = connection.execute(_SOURCES)
    else:
        rows = connection.execute(_ONE, {"name": stored_name(name)}).mappings().all()
        sources = connection.execute(_SOURCES_OF, {"ids": [row["relation_id"] for row in rows]})
    of: defaultdict[int, list[TableName]] = defaultdict(list)
    for stream_id, text in sources:
        of[stream_id].append(parse_name(text))
    return tuple(_stream(row, tuple(of[row["relation_id"]])) for row in rows)


@lru_cache(maxsize=4096)
def _details(text: str) -> Mapping[str, Any]:
    """Parse a definition's details; cached, since few change between refreshes."""
    found: dict[str, Any] = json.loads(text)
    return found


def _stream(row: RowMapping, sources: tuple[TableName, ...]) -> StreamTable:
    return StreamTable(
        id=row["relation_id"],
        name=parse_name(row["name"]),
        query=row["query"],
        sources=sources,
        refresh_mode=RefreshMode(row["refresh_mode"]),
        schedule=row["schedule"],
        details=_details(row["details"]),
        companion=optional_name(row["companion"]),
        log=optional_name(row["log"]),
        generation=row["generation"],
        status=Status(row["status"]),
        stopped_code=row["stopped_code"],
        stopped_reason=row["stopped_reason"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        options=row["options_json"] or {},
        companion_behind=row["companion_behind"],
    )
