"""Gates: sources that are held back at a version while somebody loads them.

A gate holds at the newest version that is known when it closes. Whoever reads a source numbers what he sees before he
uses it, and looks for gates after he has seen it; so nobody uses a later version than that once the gate is closed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.publishing import versions
from headrace.catalog.relations import lock_relations, parse_name, relation_ids
from headrace.errors import UserError
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class Gate:
    """A source that is held back.

    Args:
        source: The source.
        closed_at: Since when.
        version: Its version then, past which no frontier moves.
    """

    source: TableName
    closed_at: dt.datetime
    version: int


def read(connection: Connection) -> dict[TableName, Gate]:
    """Return the closed gates."""
    query = sa.select(t.relation.c.name, t.gate).join(t.relation, t.relation.c.id == t.gate.c.relation_id)
    rows = connection.execute(query.order_by(t.relation.c.name)).mappings()
    found = (Gate(parse_name(row["name"]), row["closed_at"], row["version"]) for row in rows)
    return {gate.source: gate for gate in found}


def close(connection: Connection, sources: Sequence[TableName], now: dt.datetime) -> None:
    """Close gates; one that is closed stays where it is. Sources without a version are left out.

    Nobody may number or publish a version between the look at the newest and the end of the transaction: he would see
    no gate yet, and use what the gate is to hold back.
    """
    versions.stand_in_line(connection)
    ids = relation_ids(connection, sources)
    lock_relations(connection, ids.values())
    newest = versions.newest_of(connection, sources)
    rows = [{"relation_id": ids[s], "closed_at": now, "version": newest[s].version} for s in sources if s in newest]
    if rows:
        connection.execute(t.insert_or_skip(t.gate, "relation_id", "closed_at", "version"), rows)


def open_(connection: Connection, sources: Sequence[TableName]) -> None:
    """Open gates.

    Raises:
        UserError: `GATE_NOT_CLOSED`; then none is opened.
    """
    closed = read(connection)
    if missing := [source for source in sources if source not in closed]:
        raise UserError(
            "GATE_NOT_CLOSED", f"{missing[0]} has no closed gate.", hint="`headrace gate list` shows closed gates."
        )
    ids = relation_ids(connection, sources)
    connection.execute(sa.delete(t.gate).where(t.gate.c.relation_id.in_(ids.values())))


def forget(connection: Connection, relations: Sequence[int]) -> None:
    """Forget gates, watermarks and declared keys of relations that end, or become stream tables."""
    for table in (t.gate, t.watermark, t.key):
        connection.execute(sa.delete(table).where(table.c.relation_id.in_(relations)))
