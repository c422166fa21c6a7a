"""Watermarks: up to which moment sources are complete, and groups of sources."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.relations import ensure_relations, parse_name, stored_name
from headrace.errors import UserError
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class WatermarkGroup:
    """Sources whose watermarks must agree.

    Args:
        name: The group.
        tolerance: By how much they may be apart.
        marks: The watermark of every source; None before it was ever advanced.
    """

    name: str
    tolerance: dt.timedelta
    marks: Mapping[TableName, dt.datetime | None] = field(default_factory=dict)


def read(connection: Connection) -> tuple[WatermarkGroup, ...]:
    """Return all groups, by name."""
    marks: dict[str, dict[TableName, dt.datetime | None]] = {}
    of = sa.select(t.relation.c.name, t.watermark).join(t.relation, t.relation.c.id == t.watermark.c.relation_id)
    for row in connection.execute(of.order_by(t.relation.c.name)).mappings():
        marks.setdefault(row["group_name"], {})[parse_name(row["name"])] = row["complete_until"]
    groups = connection.execute(sa.select(t.watermark_group).order_by(t.watermark_group.c.name)).mappings()
    return tuple(
        WatermarkGroup(g["name"], dt.timedelta(milliseconds=g["tolerance_ms"]), marks.get(g["name"], {}))
        for g in groups
    )


def create(connection: Connection, name: str, sources: Sequence[TableName], tolerance: dt.timedelta) -> None:
    """Write a group.

    Raises:
        UserError: `WATERMARK_GROUP_EXISTS`, `WATERMARK_TAKEN`.
    """
    for group in read(connection):
        if group.name == name:
            raise UserError(
                "WATERMARK_GROUP_EXISTS",
                f"There is a watermark group {name} already.",
                hint=f"DROP WATERMARK GROUP {name} first.",
            )
        if taken := sorted(set(sources) & group.marks.keys()):
            raise UserError(
                "WATERMARK_TAKEN",
                f"{taken[0]} is in watermark group {group.name} already.",
                hint=f"DROP WATERMARK GROUP {group.name} first, or make one group of all of them.",
            )
    tolerated = tolerance // dt.timedelta(milliseconds=1)
    connection.execute(sa.insert(t.watermark_group).values(name=name, tolerance_ms=tolerated))
    ids = ensure_relations(connection, sources)
    connection.execute(sa.insert(t.watermark), [{"relation_id": ids[s], "group_name": name} for s in sources])


def drop(connection: Connection, name: str) -> bool:
    """Forget a group with its watermarks; whether there was one."""
    connection.execute(sa.delete(t.watermark).where(t.watermark.c.group_name == name))
    return bool(connection.execute(sa.delete(t.watermark_group).where(t.watermark_group.c.name == name)).rowcount)


def advance(connection: Connection, source: TableName, until: dt.datetime, now: dt.datetime) -> None:
    """Say up to which moment a source is complete.

    Raises:
        UserError: `WATERMARK_UNKNOWN`, `WATERMARK_BACKWARDS`.
    """
    query = (
        sa.select(t.watermark)
        .join(t.relation, t.relation.c.id == t.watermark.c.relation_id)
        .where(t.relation.c.name == stored_name(source))
        .with_for_update(of=t.watermark)
    )
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise UserError(
            "WATERMARK_UNKNOWN", f"{source} is in no watermark group.", hint="`headrace watermark list` shows groups."
        )
    if row["complete_until"] is not None and until < row["complete_until"]:
        raise UserError(
            "WATERMARK_BACKWARDS",
            f"The watermark of {source} is at {row['complete_until'].isoformat()} and cannot go back.",
            hint="If it was advanced by mistake, drop the group and create it again.",
        )
    own = t.watermark.c.relation_id == row["relation_id"]
    connection.execute(sa.update(t.watermark).where(own).values(complete_until=until, advanced_at=now))
