"""Forgets sources that nothing reads any more, so that a stream table can get their name."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.records import RelationKind
from headrace.catalog.relations import forget_relations, name_condition, parse_name
from headrace.names import TableName

_USES = (
    t.dependency.c.source_id,
    t.frontier.c.source_id,
    t.mirror.c.relation_id,
    t.gate.c.relation_id,
    t.key.c.relation_id,
    t.watermark.c.relation_id,
)
"""Columns that refer to a source, besides those of its versions."""


def unused(connection: Connection, names: Iterable[TableName]) -> dict[TableName, int]:
    """Return the ids of those names that are sources which nothing refers to any more."""
    wanted = set(names)
    query = sa.select(t.relation.c.name, t.relation.c.id).where(
        name_condition(wanted),
        t.relation.c.kind == RelationKind.SOURCE.value,
        *(~sa.exists().where(use == t.relation.c.id) for use in _USES),
    )
    return {name: row for text, row in connection.execute(query) if (name := parse_name(text)) in wanted}


def forget_unused(connection: Connection, names: Iterable[TableName]) -> None:
    """Forget those names that are sources which nothing refers to any more, with their versions."""
    if ids := unused(connection, names).values():
        forget_relations(connection, ids)
