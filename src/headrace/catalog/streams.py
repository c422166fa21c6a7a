"""Rows of stream tables as records."""

from __future__ import annotations

from collections import defaultdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from headrace.catalog import schema as t
from headrace.catalog.records import RefreshMode, Status, StreamTable
from headrace.catalog.relations import optional_name, parse_name, stored_name
from headrace.names import TableName


def read_streams(connection: Connection, name: TableName | None = None) -> tuple[StreamTable, ...]:
    """Stream tables by name, from two queries: all, or the one of that name if it exists."""
    tables = (
        sa.select(t.relation.c.name, t.stream_table)
        .join(t.relation, t.relation.c.id == t.stream_table.c.relation_id)
        .order_by(t.relation.c.name)
    )
    sources = (
        sa.select(t.dependency.c.stream_id, t.relation.c.name)
        .join(t.relation, t.relation.c.id == t.dependency.c.source_id)
        .order_by(t.dependency.c.stream_id, t.dependency.c.position)
    )
    if name is not None:
        tables = tables.where(t.relation.c.name == stored_name(name))
    rows = connection.execute(tables).mappings().all()
    if name is not None:
        sources = sources.where(t.dependency.c.stream_id.in_([r["relation_id"] for r in rows]))
    of: defaultdict[int, list[TableName]] = defaultdict(list)
    for stream_id, text in connection.execute(sources):
        of[stream_id].append(parse_name(text))
    return tuple(_stream(row, tuple(of[row["relation_id"]])) for row in rows)


def _stream(row: RowMapping, sources: tuple[TableName, ...]) -> StreamTable:
    return StreamTable(
        id=row["relation_id"],
        name=parse_name(row["name"]),
        query=row["query"],
        sources=sources,
        refresh_mode=RefreshMode(row["refresh_mode"]),
        schedule=row["schedule"],
        details=row["definition_json"],
        companion=optional_name(row["companion"]),
        log=optional_name(row["log"]),
        generation=row["generation"],
        status=Status(row["status"]),
        stopped_code=row["stopped_code"],
        stopped_reason=row["stopped_reason"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        options=row["options_json"] or {},
    )
