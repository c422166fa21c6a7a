"""Versions of relations and the publications that made them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.records import PublicationRecord, RelationKind, Version
from headrace.catalog.relations import name_condition, parse_name, relation_ids, stored_name
from headrace.errors import UserError
from headrace.names import TableName

_AT_ONCE = 5_000
"""Values that one statement names at most."""

_ALL: sa.Select[Any] = sa.select(
    t.relation.c.name,
    t.version.c.version,
    t.version.c.snapshot_id,
    t.version.c.row_count,
    t.version.c.committed_at,
    t.version.c.publication_id,
    t.version.c.table_uuid,
).join(t.relation, t.relation.c.id == t.version.c.relation_id)
"""Versions, with columns as `Version` has them."""


_LINE = (
    sa.text(f"SELECT pg_advisory_xact_lock({0x6864726163650000} + 'hr_publication'::regclass::oid::bigint)"),
    sa.text("LOCK TABLE hr_publication IN ROW EXCLUSIVE MODE"),
)
"""Locks that a publisher takes.

The first is that of all publishers. A stronger lock of the table would do, which former releases take: but each VACUUM
and ANALYZE of it would hold publishers up, and be given up for one that waits. The second one keeps those releases out.
"""


def stand_in_line(connection: Connection) -> None:
    """Keep others from publishing until the transaction ends; readers are not blocked.

    On SQLite every writer does so.
    """
    if connection.dialect.name == "postgresql":
        for lock in _LINE:
            connection.execute(lock)


def newest(connection: Connection) -> dict[TableName, Version]:
    """Return the newest version of every relation that has one."""
    return _fetch(connection, _EVERY_NEWEST)


def newest_of(connection: Connection, names: Sequence[TableName]) -> dict[TableName, Version]:
    """Return the newest version of some relations; more may be returned when there are many."""
    if not names:
        return {}
    if len(names) == 1:
        return _fetch(connection, _NEWEST_OF_ONE, {"one": stored_name(names[0])})
    return _fetch(connection, _newest(sa.true(), name_condition(names, _AT_ONCE)))


def at(connection: Connection, wanted: Mapping[TableName, int]) -> dict[TableName, Version]:
    """Return given versions of relations; those that do not exist are left out."""
    if not wanted:
        return {}
    numbers = sorted(set(wanted.values()))
    query = _ALL.where(name_condition(wanted), t.version.c.version.between(numbers[0], numbers[-1]))
    found = _fetch_all(connection, query)
    return {v.relation: v for v in found if wanted.get(v.relation) == v.version}


def at_each(connection: Connection, wanted: Mapping[TableName, Collection[int]]) -> list[Version]:
    """Return several versions of each of many relations; those that do not exist are left out."""
    ids = relation_ids(connection, wanted)
    pairs = sorted({(ids[name], number) for name, numbers in wanted.items() if name in ids for number in numbers})
    found: list[Version] = []
    for start in range(0, len(pairs), _AT_ONCE):
        # pairs, as between the lowest and the highest number may be all that a mirror ever had
        exact = sa.tuple_(t.version.c.relation_id, t.version.c.version).in_(pairs[start : start + _AT_ONCE])
        found += _fetch_all(connection, _ALL.where(exact))
    return found


def later_than(connection: Connection, name: TableName, after: int) -> tuple[Version, ...]:
    """Return all versions of a relation later than `after`, oldest first."""
    query = _ALL.where(t.relation.c.name == stored_name(name), t.version.c.version > after)
    return tuple(_fetch_all(connection, query.order_by(t.version.c.version)))


def first_later(connection: Connection, name: TableName, after: int) -> Version | None:
    """Return the first version of a relation later than `after`, or None."""
    query = _ALL.where(t.relation.c.name == stored_name(name), t.version.c.version > after)
    return next(_fetch_all(connection, query.order_by(t.version.c.version).limit(1)), None)


def first_unreflected(connection: Connection, names: Collection[TableName]) -> dict[tuple[TableName, int], dt.datetime]:
    """Return when the first version was committed that a stream table does not reflect.

    Of each relation and each version that some frontier has of it one row is read: what nobody refreshes may be behind
    by a million versions.

    Args:
        connection: A connection.
        names: The relations; more may be returned when there are many.

    Returns:
        By relation and version reflected; those after which nothing came are left out.
    """
    of = sa.select(t.frontier.c.source_id, t.frontier.c.version).distinct().subquery()
    first = (
        sa.select(t.version.c.committed_at)
        .where(t.version.c.relation_id == of.c.source_id, t.version.c.version > of.c.version)
        .order_by(t.version.c.version)
        .limit(1)
        .correlate(of)
        .scalar_subquery()
    )
    query = (
        sa.select(t.relation.c.name, of.c.version, first)
        .join(t.relation, t.relation.c.id == of.c.source_id)
        .where(name_condition(names))
    )
    rows = connection.execute(query).all() if names else ()
    return {(parse_name(text), seen): at for text, seen, at in rows if at is not None}


def first_shown(connection: Connection, name: TableName, snapshots: Collection[int]) -> dict[int, dt.datetime]:
    """Return when snapshots of a relation were first published; others are left out."""
    found: dict[int, dt.datetime] = {}
    every = sorted(snapshots)
    for start in range(0, len(every), _AT_ONCE):
        query = (
            sa.select(t.version.c.snapshot_id, sa.func.min(t.version.c.committed_at))
            .join(t.relation, t.relation.c.id == t.version.c.relation_id)
            .where(t.relation.c.name == stored_name(name), t.version.c.snapshot_id.in_(every[start : start + _AT_ONCE]))
            .group_by(t.version.c.snapshot_id)
        )
        found |= {snapshot: at for snapshot, at in connection.execute(query)}
    return found


def committed_since(
    connection: Connection, since: dt.datetime, limit: int
) -> dict[TableName, list[tuple[int, dt.datetime]]]:
    """Return, by source, versions and their commit times since a time, oldest first.

    Where they exceed the limit, the newest of all sources are kept.
    """
    query = (
        sa.select(t.relation.c.name, t.version.c.version, t.version.c.committed_at)
        .join(t.relation, t.relation.c.id == t.version.c.relation_id)
        .where(t.relation.c.kind == RelationKind.SOURCE.value, t.version.c.committed_at >= since)
        .order_by(t.version.c.committed_at.desc(), t.version.c.version.desc())
        .limit(limit)
    )
    found: dict[str, list[tuple[int, dt.datetime]]] = {}
    for name, version, at in connection.execute(query):
        found.setdefault(name, []).append((version, at))
    return {parse_name(name): sorted(numbered) for name, numbered in found.items()}


def made_since(
    connection: Connection, names: Collection[TableName], publication: int
) -> dict[TableName, list[tuple[int, int]]]:
    """Return, by stream table, publications since one and the versions they made.

    More tables than those asked for may be returned when there are many.
    """
    query = (
        sa.select(t.relation.c.name, t.version.c.publication_id, t.version.c.version)
        .join(t.relation, t.relation.c.id == t.version.c.relation_id)
        .where(name_condition(names), t.version.c.publication_id >= publication)
        .order_by(t.version.c.publication_id)
    )
    found: dict[str, list[tuple[int, int]]] = {}
    for name, made_by, version in connection.execute(query):
        found.setdefault(name, []).append((made_by, version))
    return {parse_name(name): numbered for name, numbered in found.items()}


def as_of(connection: Connection, when: dt.datetime | int) -> dict[TableName, Version]:
    """Return the versions that were newest at a time or a publication.

    At a publication, a source counts by time: what it had committed when the publication was made.
    """
    if isinstance(when, int):
        moment = published_at(connection, when)
        own = t.version.c.publication_id
        reached = sa.or_(own <= when, sa.and_(own.is_(None), t.version.c.committed_at <= moment))
    else:
        reached = t.version.c.committed_at <= when
    return _fetch(connection, _newest(reached))


def publication(connection: Connection, uuid: str) -> PublicationRecord | None:
    """Return the publication of that UUID, or None."""
    row = connection.execute(sa.select(t.publication).where(t.publication.c.uuid == uuid)).one_or_none()
    return None if row is None else PublicationRecord(*row)


def publications(connection: Connection, limit: int | None) -> tuple[PublicationRecord, ...]:
    """Return publications, newest first."""
    query = sa.select(t.publication).order_by(t.publication.c.id.desc()).limit(limit)
    return tuple(PublicationRecord(*row) for row in connection.execute(query))


def published_at(connection: Connection, publication_id: int) -> dt.datetime:
    """Return when a publication was made.

    Raises:
        UserError: `PUBLICATION_NOT_FOUND`.
    """
    query = sa.select(t.publication.c.published_at).where(t.publication.c.id == publication_id)
    found: dt.datetime | None = connection.execute(query).scalar_one_or_none()
    if found is None:
        raise UserError(
            "PUBLICATION_NOT_FOUND",
            f"There is no publication {publication_id}.",
            hint="`headrace history` shows the publication of every refresh.",
        )
    return found


def _newest(condition: sa.ColumnElement[bool], of: sa.ColumnElement[bool] | None = None) -> sa.Select[Any]:
    """Select each relation's newest version under a condition, searching from the end.

    Args:
        condition: Of versions.
        of: Of relations; None for all.
    """
    last = (
        sa.select(t.version.c.version)
        .where(t.version.c.relation_id == t.relation.c.id, condition)
        .order_by(t.version.c.version.desc())
        .limit(1)
        .correlate(t.relation)
    )
    heads = sa.select(t.relation.c.id, last.scalar_subquery())
    if of is not None:
        heads = heads.where(of)
    # a condition, not a join, for SQLite would look for the newest once for each version there is
    return _ALL.where(sa.tuple_(t.version.c.relation_id, t.version.c.version).in_(heads))


_EVERY_NEWEST = _newest(sa.true())
_NEWEST_OF_ONE = _newest(sa.true(), t.relation.c.name == sa.bindparam("one"))


def _fetch(
    connection: Connection, query: sa.Select[Any], given: Mapping[str, str] | None = None
) -> dict[TableName, Version]:
    return {version.relation: version for version in _fetch_all(connection, query, given)}


def _fetch_all(
    connection: Connection, query: sa.Select[Any], given: Mapping[str, str] | None = None
) -> Iterator[Version]:
    for name, *columns in connection.execute(query, given or {}).all():
        yield Version(parse_name(name), *columns)
