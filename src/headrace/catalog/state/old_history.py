"""Forgets refreshes that ended long ago, in batches, so that nobody waits for long."""

from __future__ import annotations

import datetime as dt

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from headrace.catalog import schema as t
from headrace.catalog.database import Database
from headrace.catalog.records import Outcome
from headrace.catalog.state.history import PAST

AT_ONCE = 1_000
"""Entries that are looked at, and forgotten, in one transaction."""

_OF = t.history.c
_REACHED = _OF.frontier_json.is_not(None)
_SUCCEEDED = _OF.outcome == Outcome.OK.value
_KINDS = (sa.true(), _SUCCEEDED, _REACHED)
"""Of each of these the newest entries of a stream table are kept: whoever looks back counts one of them."""

_BATCH = (
    sa.select(
        _OF.id,
        _OF.stream_id,
        _OF.stream_name,
        _OF.finished_at,
        _SUCCEEDED.label("succeeded"),
        _REACHED.label("reached"),
        t.stream_table.c.relation_id.is_not(None).label("there"),
    )
    .join(t.stream_table, t.stream_table.c.relation_id == _OF.stream_id, isouter=True)
    .where(_OF.id > sa.bindparam("after"))
    .order_by(_OF.id)
    .limit(sa.bindparam("at_once"))
)


def forget(database: Database, before: dt.datetime, *, dry_run: bool) -> int:
    """Forget refreshes that ended before a time, but for the newest of each stream table.

    Args:
        database: The catalog's database.
        before: The time. Entries are taken in their order, until many are younger: the rest is not read.
        dry_run: Only count them.

    Returns:
        How many.
    """
    count, after, more = 0, 0, True
    oldest: dict[tuple[int, str], tuple[int, ...]] = {}
    while more:
        with database.read() as connection:
            rows = connection.execute(_BATCH, {"after": after, "at_once": AT_ONCE}).all()
            old = [row for row in rows if row.finished_at < before]
            gone = [row.id for row in old if not _kept(connection, row, oldest)]
        if gone and not dry_run:
            with database.write() as connection:
                connection.execute(sa.delete(t.history).where(_OF.id.in_(gone)))
        count += len(gone)
        more = bool(old)  # among them one may be of the future, by a clock that was wrong
        after = rows[-1].id if rows else after
    return count


def _kept(connection: Connection, row: Row[tuple[object, ...]], oldest: dict[tuple[int, str], tuple[int, ...]]) -> bool:
    """Return whether an entry is one of the newest of a stream table that is there."""
    if not row.there:
        return False
    whose = (row.stream_id, row.stream_name)
    if whose not in oldest:
        oldest[whose] = tuple(_oldest_kept(connection, whose, kind) for kind in _KINDS)
    kinds = (True, row.succeeded, row.reached)
    return any(is_one and row.id >= first for is_one, first in zip(kinds, oldest[whose], strict=True))


def _oldest_kept(connection: Connection, whose: tuple[int, str], kind: sa.ColumnElement[bool]) -> int:
    """Return the oldest entry of a kind that is kept; 0 where all are."""
    own = sa.select(_OF.id).where(_OF.stream_id == whose[0], _OF.stream_name == whose[1], kind)
    return connection.execute(own.order_by(_OF.id.desc()).offset(PAST - 1).limit(1)).scalar() or 0
