"""Rows of second generations: which stream table stands beside which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.definitions import deployments
from headrace.catalog.many_rows import insert_rows, update_rows
from headrace.catalog.records import Green, Json, Role
from headrace.catalog.relations import former_names, name_condition, parse_name, relation_ids, stored_name
from headrace.catalog.unused_relations import forget_unused
from headrace.errors import EnvironmentFault
from headrace.names import TableName

_BLUE = t.relation.alias("blue")
_ALL = (
    sa.select(t.relation.c.name, t.green, _BLUE.c.name.label("blue_name"))
    .join(t.relation, t.relation.c.id == t.green.c.relation_id)
    .join(_BLUE, _BLUE.c.id == t.green.c.blue_id)
    .order_by(t.green.c.deployment, t.relation.c.name)
)


def read(connection: Connection) -> tuple[Green, ...]:
    """Return all second generations, by deployment and name."""
    return tuple(
        Green(
            parse_name(row["name"]),
            row["deployment"],
            parse_name(row["public_name"] or row["blue_name"]),
            row["blue_json"],
            row["created_at"],
            row["promoted_at"],
            row["keep_until"],
            Role(row["role"]),
            row["watch_json"],
        )
        for row in connection.execute(_ALL).mappings()
    )


def loads(connection: Connection) -> dict[TableName, Json]:
    """Return how far second generations are that are being loaded, or were; by name."""
    query = sa.select(t.relation.c.name, t.green.c.load_json).join(t.green, t.green.c.relation_id == t.relation.c.id)
    return {parse_name(row[0]): row[1] for row in connection.execute(query.where(t.green.c.load_json.is_not(None)))}


def note_load(connection: Connection, name: TableName, progress: Json) -> None:
    """Write down how far the load of a second generation is; nothing for another table."""
    own = sa.select(t.relation.c.id).where(t.relation.c.name == stored_name(name)).scalar_subquery()
    connection.execute(sa.update(t.green).where(t.green.c.relation_id == own).values(load_json=dict(progress)))


def put(connection: Connection, greens: Sequence[Green]) -> None:
    """Write second generations down, each in place of what was known of it.

    A promotion ends the conditions on which its deployment was to promote itself, so that one that is taken back is
    not made again at once.

    Raises:
        EnvironmentFault: `DEPLOYMENT_CHANGED` when somebody else has made one of the same table meanwhile, or has
            dropped that.
    """
    if not greens:
        return
    ids = relation_ids(connection, (name for green in greens for name in (green.name, green.original)))
    streams = sa.select(t.stream_table.c.relation_id)
    there = set(connection.execute(streams.where(t.stream_table.c.relation_id.in_(ids.values()))).scalars())
    if gone := next((g.original for g in greens if not {ids.get(g.name), ids.get(_beside(g))} <= there), None):
        raise changed(gone)
    forget(connection, [ids[green.name] for green in greens])
    try:
        insert_rows(connection, t.green, [_row(green, ids) for green in greens])
    except exc.IntegrityError as error:
        raise changed(greens[0].original) from error
    deployments.forget(connection, {green.deployment for green in greens if green.promoted_at is not None})


def forget(connection: Connection, ids: Sequence[int]) -> None:
    """Forget second generations, by the ids of their relations."""
    connection.execute(sa.delete(t.green).where(t.green.c.relation_id.in_(ids)))


def end(connection: Connection, names: Sequence[TableName]) -> None:
    """Forget members of deployments that stay the stream tables that they are."""
    if names:
        forget(connection, list(relation_ids(connection, names).values()))
        deployments.forget_empty(connection)


def refuse_left(connection: Connection, ids: Sequence[int]) -> None:
    """Refuse to drop public stream tables of which second generations would be left.

    Raises:
        EnvironmentFault: `DEPLOYMENT_CHANGED`.
    """
    left = connection.execute(
        sa.select(_BLUE.c.name).join(t.green, t.green.c.blue_id == _BLUE.c.id).where(_BLUE.c.id.in_(ids))
    )
    if found := left.scalars().first():
        raise changed(parse_name(found))


def rename(connection: Connection, names: Sequence[tuple[TableName, TableName]]) -> None:
    """Call relations otherwise; whatever refers to them does so by their ids.

    Args:
        connection: Inside the transaction.
        names: Old and new names.

    Raises:
        EnvironmentFault: `DEPLOYMENT_CHANGED` when there is none of an old name, or one of a new.
    """
    if not names:
        return
    forget_unused(connection, [new for _, new in names])
    former = former_names(connection, [old for old, _ in names])
    rows = [
        {
            "old": stored_name(old),
            "name": stored_name(new),
            "table_namespace": new.namespace_text,
            "table_name": new.table,
            "former_json": sorted({*former.get(old, ()), stored_name(old)} - {stored_name(new)}),
        }
        for old, new in names
    ]
    try:
        found = update_rows(connection, t.relation, {"old": "name"}, rows)
    except exc.IntegrityError as error:
        raise changed(names[0][0]) from error
    if found != len(rows):
        raise changed(names[0][0])
    renamed = sa.select(t.relation.c.id).where(name_condition([new for _, new in names]))
    readers = sa.select(t.dependency.c.stream_id).where(t.dependency.c.source_id.in_(renamed))
    own = t.stream_table.c.relation_id
    changed_rows = sa.or_(own.in_(renamed), own.in_(readers))
    connection.execute(sa.update(t.stream_table).where(changed_rows).values(state=t.new_state()))


def changed(name: TableName) -> EnvironmentFault:
    """Return the error for a deployment that somebody else has changed meanwhile."""
    return EnvironmentFault(
        "DEPLOYMENT_CHANGED",
        f"The deployment of {name} was changed by somebody else at the same time; nothing was changed by this.",
        hint="Look at `headrace deploy status`, then try again.",
        retryable=True,
    )


def _beside(green: Green) -> TableName:
    """Return the stream table that a member stands beside; itself where it has none."""
    return green.original if green.role is Role.EXCHANGE else green.name


def _row(green: Green, ids: Mapping[TableName, int]) -> dict[str, object]:
    return {
        "relation_id": ids[green.name],
        "deployment": green.deployment,
        "blue_id": ids[_beside(green)],
        "blue_json": dict(green.blue),
        "created_at": green.created_at,
        "promoted_at": green.promoted_at,
        "keep_until": green.keep_until,
        "role": green.role.value,
        "public_name": None if green.role is Role.EXCHANGE else stored_name(green.original),
        "watch_json": None if green.watch is None else dict(green.watch),
    }
