"""The history of refreshes."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from headrace.catalog import schema as t
from headrace.catalog.many_rows import insert_rows
from headrace.catalog.publishing import versions
from headrace.catalog.records import HistoryEntry, LastRefresh, Outcome, RanAs, Reached
from headrace.catalog.relations import former_names, parse_name, relation_ids, stored_name
from headrace.frontier import Frontier
from headrace.names import TableName

PAST = 200
"""Newest refreshes of a stream table whose frontiers are read."""


def read(
    connection: Connection, name: TableName | None, limit: int | None, *, succeeded: bool = False
) -> tuple[HistoryEntry, ...]:
    """Return history entries of one stream table or of all, newest first.

    Those that it has under names which it had before, as before a promotion, too. Only of refreshes that ended well, if
    asked for.
    """
    own, former = _before_renamed(connection, name)
    query = _newest_first(one=name is not None, limited=limit is not None, succeeded=succeeded, renamed=bool(former))
    given = {"stream": None if name is None else stored_name(name), "most": limit, "own": own, "former": former}
    return tuple(_entry(row) for row in connection.execute(query, given).mappings())


def after(connection: Connection, id_: int, limit: int) -> tuple[HistoryEntry, ...]:
    """Return entries that were written after one, oldest first."""
    query = sa.select(t.history).where(t.history.c.id > id_).order_by(t.history.c.id).limit(limit)
    return tuple(_entry(row) for row in connection.execute(query).mappings())


def newest_id(connection: Connection) -> int:
    """Return the id of the newest entry; 0 when there is none."""
    return connection.execute(sa.select(sa.func.max(t.history.c.id))).scalar() or 0


@cache
def _newest_first(*, one: bool, limited: bool, succeeded: bool, renamed: bool) -> sa.Select[Any]:
    query = sa.select(t.history).order_by(t.history.c.id.desc())
    if limited:
        query = query.limit(sa.bindparam("most", type_=sa.Integer))
    if one:
        own = t.history.c.stream_name == sa.bindparam("stream")
        former = t.history.c.stream_name.in_(sa.bindparam("former", expanding=True))
        before = sa.and_(former, t.history.c.stream_id == sa.bindparam("own", type_=sa.BigInteger))
        query = query.where(sa.or_(own, before) if renamed else own)
    return query.where(t.history.c.outcome == Outcome.OK.value) if succeeded else query


def _before_renamed(connection: Connection, name: TableName | None) -> tuple[int | None, tuple[str, ...]]:
    """Return the id of a relation that had other names before, and these."""
    if name is None or not (former := former_names(connection, [name])):
        return None, ()
    return relation_ids(connection, [name])[name], former[name]


def past_frontiers(connection: Connection, name: TableName) -> tuple[tuple[int, Frontier], ...]:
    """Return version and frontier after a table's newest refreshes, oldest first."""
    query = _published().where(t.history.c.stream_name == stored_name(name)).limit(PAST)
    return tuple((reached.version, reached.frontier) for reached in _reached(connection, query))


def reached_since(connection: Connection, since: dt.datetime, limit: int) -> tuple[Reached, ...]:
    """Return the frontiers that stream tables reached since a time, oldest first.

    Where they exceed the limit, the newest are kept.
    """
    first = sa.select(sa.func.min(t.publication.c.id)).where(t.publication.c.published_at >= since)
    # of histories that are far longer: from their end only as far back as publications are numbered after that time
    recent = t.history.c.publication_id >= first.scalar_subquery()
    return tuple(_reached(connection, _published().where(recent).limit(limit)))


def _published() -> sa.Select[Any]:
    """Return published refreshes of stream tables that exist, newest first."""
    return (
        sa.select(t.history.c.stream_name, t.publication.c.id, t.publication.c.published_at, t.history.c.frontier_json)
        .join(t.stream_table, t.stream_table.c.relation_id == t.history.c.stream_id)
        .join(t.publication, t.publication.c.id == t.history.c.publication_id)
        .where(t.history.c.frontier_json.is_not(None))
        .order_by(t.history.c.id.desc())
    )


def _reached(connection: Connection, query: sa.Select[Any]) -> Iterator[Reached]:
    """Yield the refreshes with the versions that tables had by then.

    A refresh need not have made one.
    """
    rows = connection.execute(query).all()[::-1]
    names = {text: parse_name(text) for text, *_ in rows}
    first = min((publication for _, publication, *_ in rows), default=0)
    made = versions.made_since(connection, set(names.values()), first)
    newest = versions.newest_of(connection, [name for name in names.values() if name not in made])
    for text, publication, at, frontier in rows:
        name = names[text]
        numbers = made.get(name, [])
        place = bisect_right(numbers, publication, key=lambda one: one[0])
        if numbers:
            version = numbers[place - 1][1] if place else numbers[0][1] - 1
        else:
            version = newest[name].version if name in newest else -1
        if version >= 0:
            yield Reached(name, at, version, Frontier({parse_name(source): v for source, v in frontier.items()}))


def last(connection: Connection) -> dict[TableName, LastRefresh]:
    """Return how the newest refresh of every stream table ended that exists and has one."""
    own = (t.history.c.stream_name == t.relation.c.name, t.history.c.stream_id == t.relation.c.id)
    newest = sa.select(t.history.c.id).where(*own).order_by(t.history.c.id.desc()).limit(1).correlate(t.relation)
    streams = sa.select(newest.scalar_subquery().label("id")).join_from(
        t.relation, t.stream_table, t.stream_table.c.relation_id == t.relation.c.id
    )
    of = t.history.c
    query = sa.select(
        of.stream_name,
        of.started_at,
        of.finished_at,
        of.mode,
        of.outcome,
        of.reason,
        of.error_message,
    ).where(of.id.in_(streams))
    found = (
        LastRefresh(parse_name(name), started, finished, RanAs(mode), Outcome(outcome), *why)
        for name, started, finished, mode, outcome, *why in connection.execute(query).all()
    )
    return {refresh.stream: refresh for refresh in found}


def write(
    connection: Connection,
    entries: Sequence[HistoryEntry],
    ids: Mapping[TableName, int],
    publication_id: int | None = None,
    epochs: Mapping[TableName, int] | None = None,
) -> None:
    """Append entries; tables without an id, as dropped ones, are stored by name."""
    if not entries:
        return
    of = epochs or {}
    rows = [
        _row(e) | {"stream_id": ids.get(e.stream), "publication_id": publication_id, "epoch": of.get(e.stream)}
        for e in entries
    ]
    insert_rows(connection, t.history, rows)


def _row(entry: HistoryEntry) -> dict[str, object]:
    return {
        "stream_name": stored_name(entry.stream),
        "started_at": entry.started_at,
        "finished_at": entry.finished_at,
        "mode": entry.mode.value,
        "outcome": entry.outcome.value,
        "reason": entry.reason,
        "reason_detail": entry.reason_detail,
        "rows_inserted": entry.rows_inserted,
        "rows_deleted": entry.rows_deleted,
        "rows_after": entry.rows_after,
        "stages_json": dict(entry.stages),
        "metrics_json": dict(entry.metrics),
        "frontier_json": None if entry.frontier is None else {stored_name(s): v for s, v in entry.frontier.items()},
        "error_code": entry.error_code,
        "error_message": entry.error_message,
    }


def _entry(row: RowMapping) -> HistoryEntry:
    frontier = row["frontier_json"]
    return HistoryEntry(
        id=row["id"],
        stream=parse_name(row["stream_name"]),
        stream_id=row["stream_id"],
        publication_id=row["publication_id"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        mode=RanAs(row["mode"]),
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        reason_detail=row["reason_detail"],
        rows_inserted=row["rows_inserted"],
        rows_deleted=row["rows_deleted"],
        rows_after=row["rows_after"],
        stages=row["stages_json"],
        metrics=row["metrics_json"] or {},
        frontier=None if frontier is None else Frontier({parse_name(s): v for s, v in frontier.items()}),
        error_code=row["error_code"],
        error_message=row["error_message"],
        epoch=row["epoch"],
    )
