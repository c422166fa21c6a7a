"""Forgets versions that nobody reads any more, and publications, in batches.

Of a relation they go from the oldest on: numbers have no gaps but before the first one that is kept.
"""

from __future__ import annotations

import datetime as dt

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.database import Database
from headrace.catalog.state.history import PAST

AT_ONCE = 1_000
"""Versions, or publications, that are forgotten in one transaction."""

_OF = t.version.c
_RELATION: sa.BindParameter[int] = sa.bindparam("relation")
_OLDEST = (
    sa.select(_OF.version, _OF.committed_at)
    .where(_OF.relation_id == _RELATION, _OF.version > sa.bindparam("after"))
    .order_by(_OF.version)
)
_NEEDED = (
    sa.select(sa.func.min(t.frontier.c.version)).where(t.frontier.c.source_id == _RELATION),
    sa.select(t.gate.c.version).where(t.gate.c.relation_id == _RELATION),
    sa.select(sa.func.min(t.sink.c.version)).where(t.sink.c.relation_id == _RELATION),
)
_NEWEST = sa.select(_OF.version).where(_OF.relation_id == _RELATION).order_by(_OF.version.desc())
_MADE = t.publication.c
_UNREFERENCED = (
    sa.select(_MADE.id)
    .where(
        _MADE.id > sa.bindparam("after"),
        _MADE.id < sa.select(sa.func.max(_MADE.id)).correlate(None).scalar_subquery(),
        _MADE.published_at < sa.bindparam("before"),
        *(~sa.exists().where(other.c.publication_id == _MADE.id) for other in (t.version, t.history, t.epoch)),
    )
    .order_by(_MADE.id)
)
"""Publications that nothing refers to; not the newest, whose number and time the next one follows."""


def forget(database: Database, before: dt.datetime, *, dry_run: bool) -> int:
    """Forget versions that were no longer the newest at a time, unless somebody is still there.

    Frontiers, gates and sinks need all versions from theirs on. Publications that made what is forgotten, or that were
    made before the time and left nothing, go too.

    Args:
        database: The catalog's database.
        before: The time.
        dry_run: Only count them.

    Returns:
        How many versions.
    """
    with database.read() as connection:
        old = sa.select(_OF.relation_id).where(_OF.committed_at < before).distinct()
        relations = connection.execute(old).scalars().all()
    count = sum(_forget_of(database, relation, before, dry_run) for relation in relations)
    if not dry_run:
        _forget_publications(database, before)
    return count


def _forget_of(database: Database, relation: int, before: dt.datetime, dry_run: bool) -> int:
    """Forget old versions of one relation; returns how many."""
    count, after, more = 0, -1, True
    while more:
        # needs are read where versions are deleted: a frontier may be new
        with database.read() if dry_run else database.write() as connection:
            gone = _superseded(connection, relation, before, after)
            if gone and not dry_run:
                chosen = _OF.relation_id == relation, _OF.version.between(gone[0], gone[-1])
                connection.execute(sa.delete(t.version).where(*chosen))
        count += len(gone)
        more = bool(gone)
        after = gone[-1] if gone else after
    return count


def _superseded(connection: Connection, relation: int, before: dt.datetime, after: int) -> list[int]:
    """Return the oldest versions after one that had a successor by a time and nobody needs."""
    given = {"relation": relation, "after": after}
    # the refreshes whose frontiers are read back from the history made no earlier ones
    past = connection.execute(_NEWEST.offset(PAST).limit(1), given).scalar()
    if past is None:
        return []
    needed = [number for query in _NEEDED if (number := connection.execute(query, given).scalar()) is not None]
    first = min([past, *needed])
    rows = connection.execute(_OLDEST.limit(AT_ONCE + 1), given).all()
    # some may be of the future, by a clock that was wrong: what is older than one of the past is superseded
    last = max((version for version, committed_at in rows if committed_at < before), default=-1)
    return [version for version, _ in rows if version < min(first, last)]


def _forget_publications(database: Database, before: dt.datetime) -> None:
    """Forget old publications that nothing refers to."""
    after, more = 0, True
    while more:
        with database.read() as connection:
            query = _UNREFERENCED.limit(AT_ONCE)
            gone = connection.execute(query, {"after": after, "before": before}).scalars().all()
        if gone:
            with database.write() as connection:
                connection.execute(sa.delete(t.publication).where(_MADE.id.in_(gone)))
        more = len(gone) == AT_ONCE
        after = gone[-1] if gone else after
