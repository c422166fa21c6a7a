"""Numbering the heads of sources: snapshots become versions that only grow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.publishing import versions
from headrace.catalog.records import Observation, Version
from headrace.catalog.relations import ensure_relations, lock_relations, name_condition, parse_name
from headrace.names import TableName


def observe_known(connection: Connection, observations: Sequence[Observation]) -> tuple[Version, ...] | None:
    """Return the heads' versions when every head is the newest version already.

    None when something must be written.
    """
    names = [o.source for o in observations]
    newest = versions.newest_of(connection, names)
    answers = []
    for observation in observations:
        head = newest.get(observation.source)
        if head is None or not _is_head(observation, head):
            return None
        answers.append(head)
    return None if _new_schemas(connection, observations) else tuple(answers)


def observe(connection: Connection, observations: Sequence[Observation], now: dt.datetime) -> tuple[Version, ...]:
    """Number the heads, appending versions where they are new; see `Catalog.observe`."""
    names = sorted({o.source for o in observations})
    ids = ensure_relations(connection, names)
    lock_relations(connection, ids.values())  # or two observers of one source would both append
    newest = versions.newest_of(connection, names)
    answers, rows = [], []
    for observation in observations:
        head = newest.get(observation.source)
        if head is not None and _is_head(observation, head):
            answers.append(head)
            continue
        version = _next(observation, head, now)
        newest[observation.source] = version
        answers.append(version)
        rows.append(_row(version, ids[observation.source]))
    if rows:
        connection.execute(sa.insert(t.version), rows)
    _note(connection, observations, ids)
    return tuple(answers)


def _recreated(observation: Observation, head: Version | None) -> bool:
    known = head.table_uuid if head is not None else None
    return known is not None and observation.table_uuid is not None and observation.table_uuid != known


def _is_head(observation: Observation, head: Version) -> bool:
    return observation.snapshot_id == head.snapshot_id and not _recreated(observation, head)


def _next(observation: Observation, head: Version | None, now: dt.datetime) -> Version:
    uuid = observation.table_uuid or (head.table_uuid if head is not None else None)
    return Version(
        relation=observation.source,
        version=0 if head is None else head.version + 1,
        snapshot_id=observation.snapshot_id,
        row_count=observation.row_count,
        committed_at=_passed(observation.committed_at or now, now),
        publication_id=None,
        table_uuid=uuid,
    )


def _passed(at: dt.datetime, now: dt.datetime) -> dt.datetime:
    """Return a time, but none of the future.

    Whose clock is ahead commits there, and no reader would be behind until then.
    """
    return at if at.tzinfo is None else min(at, now)  # the former is refused


def _row(version: Version, relation_id: int) -> dict[str, object]:
    return {
        "relation_id": relation_id,
        "version": version.version,
        "snapshot_id": version.snapshot_id,
        "row_count": version.row_count,
        "committed_at": version.committed_at,
        "publication_id": None,
        "table_uuid": version.table_uuid,
    }


def _new_schemas(connection: Connection, observations: Sequence[Observation]) -> bool:
    """Return whether an observation brings a schema that the catalog does not have."""
    given = {o.source: o.schema for o in observations if o.schema is not None}
    if not given:
        return False
    query = sa.select(t.relation.c.name, t.relation.c.schema_json).where(name_condition(given))
    known = {parse_name(name): schema for name, schema in connection.execute(query)}
    return any(known.get(source) != dict(schema) for source, schema in given.items())


def _note(connection: Connection, observations: Sequence[Observation], ids: dict[TableName, int]) -> None:
    """Record the observed UUID and columns of each table, where they are known."""
    for observation in observations:
        seen: dict[str, object] = {}
        if observation.table_uuid is not None:
            seen["table_uuid"] = observation.table_uuid
        if observation.schema is not None:
            seen["schema_json"] = dict(observation.schema)
        if seen:
            connection.execute(sa.update(t.relation).where(t.relation.c.id == ids[observation.source]).values(seen))
