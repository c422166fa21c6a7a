"""Keys of sources that users declare: columns in which no two rows agree."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.relations import ensure_relations, parse_name, relation_ids
from headrace.errors import UserError
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """A key that somebody vouches for.

    Args:
        source: The source.
        columns: Its columns, in the table's spelling, by name.
        declared_at: Since when.
    """

    source: TableName
    columns: tuple[str, ...]
    declared_at: dt.datetime


def read(connection: Connection) -> tuple[DeclaredKey, ...]:
    """Return all declared keys, by source and columns."""
    query = sa.select(t.relation.c.name, t.key).join(t.relation, t.relation.c.id == t.key.c.relation_id)
    rows = connection.execute(query.order_by(t.relation.c.name, t.key.c.columns)).mappings()
    return tuple(DeclaredKey(parse_name(r["name"]), tuple(json.loads(r["columns"])), r["declared_at"]) for r in rows)


def declare(connection: Connection, source: TableName, columns: Sequence[str], now: dt.datetime) -> None:
    """Write a key down; one that is there stays."""
    own = ensure_relations(connection, [source])[source]
    row = {"relation_id": own, "columns": _text(columns), "declared_at": now}
    connection.execute(t.insert_or_skip(t.key, "relation_id", "columns", "declared_at"), [row])


def drop(connection: Connection, source: TableName, columns: Sequence[str]) -> None:
    """Forget a key.

    Raises:
        UserError: `KEY_NOT_DECLARED`.
    """
    own = relation_ids(connection, [source]).get(source)
    wanted = (t.key.c.relation_id == own) & (t.key.c.columns == _text(columns))
    if own is None or not connection.execute(sa.delete(t.key).where(wanted)).rowcount:
        raise UserError(
            "KEY_NOT_DECLARED",
            f"No key ({', '.join(columns)}) of {source} is declared.",
            hint="`headrace key list` shows declared keys.",
        )


def _text(columns: Sequence[str]) -> str:
    return json.dumps(sorted(columns), ensure_ascii=False)
