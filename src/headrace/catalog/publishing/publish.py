"""Publishing: the one transaction that makes a publication visible.

Publishers stand in line (SQLite: `BEGIN IMMEDIATE`; PostgreSQL: a lock on `hr_publication` that readers do not
notice). So publication ids grow in the order publications become visible, and whoever stands in line after a publisher
with a broken connection knows for certain what became of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.coordination import leases as leasing
from headrace.catalog.coordination import scheduler_rows
from headrace.catalog.database import Database
from headrace.catalog.definitions import definition_writer, greens
from headrace.catalog.faults import is_certain
from headrace.catalog.many_rows import insert_rows
from headrace.catalog.publishing import epochs, frontiers, versions
from headrace.catalog.publishing.generation_cycles import refuse_cycles, refuse_left_readers
from headrace.catalog.publishing.pointer_moves import known_pointers, plan_pointers
from headrace.catalog.publishing.publication import NewVersion, Publication, invalid
from headrace.catalog.records import PublicationRecord, RanAs
from headrace.catalog.relations import RelationHead, relation_heads
from headrace.catalog.sources import database_sources
from headrace.catalog.state import history
from headrace.clock import APART
from headrace.errors import EnvironmentFault
from headrace.lakes.lake_server import Key, LakeMove
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The means by which a publication shows tables in a lake that another server keeps.

    Args:
        move: Called last, with everything else written and not committed; shows the tables there, and returns their
            metadata files.
        staged: What was staged when the publication was decided, where that is not now.
        decided: Whether it was decided before by somebody who checked the leases.
    """

    move: Callable[[Connection, Sequence[LakeMove]], Mapping[Key, str]]
    staged: Mapping[Key, str] = field(default_factory=dict)
    decided: bool = False


def publish(
    database: Database,
    publication: Publication,
    now: dt.datetime,
    elsewhere: Elsewhere | None = None,
    *,
    check: Callable[[Connection], None],
) -> PublicationRecord:
    """Make a publication visible, or change nothing; see `Catalog.publish`.

    Args:
        database: The catalog's.
        publication: What is published.
        now: The time.
        elsewhere: How its tables are shown in a lake that another server keeps; None where the pointers are the lake.
        check: Raises an error where the project's tables are in another lake by now.
    """
    with database.faults(), database.writing() as connection:
        record = _apply(connection, publication, now, elsewhere, check)
        try:
            connection.commit()
        except exc.DBAPIError as error:
            if is_certain(error):
                raise
            raise _unknown(publication, error) from error
        return record


def settle(connection: Connection, uuid: str) -> PublicationRecord | None:
    """Return the record of a publication, if it happened; see `Catalog.settle`."""
    versions.stand_in_line(connection)
    return versions.publication(connection, uuid)


def _apply(
    connection: Connection,
    publication: Publication,
    now: dt.datetime,
    elsewhere: Elsewhere | None,
    check: Callable[[Connection], None],
) -> PublicationRecord:
    versions.stand_in_line(connection)
    if (done := versions.publication(connection, publication.uuid)) is not None:
        return done
    check(connection)
    if elsewhere is None or not elsewhere.decided:
        leasing.check(connection, publication.leases)
    record = _open(connection, publication, now)
    ours = known_pointers(connection, publication)
    greens.rename(connection, [(rename.old, rename.new) for rename in publication.relation_renames])
    definition_writer.define(connection, publication.definitions, record.published_at)
    for change in publication.logs:
        definition_writer.set_log(connection, change.stream, record.published_at, change.log)
    greens.put(connection, publication.greens)
    greens.end(connection, publication.greens_ended)
    refuse_cycles(connection, publication)
    refuse_left_readers(connection, publication)
    if publication.drops:
        definition_writer.drop_stream_tables(connection, publication.drops)
    database_sources.drop(connection, publication.source_drops)
    database_sources.move(connection, publication.sources, record.published_at)
    planned = plan_pointers(connection, publication, ours, now, None if elsewhere is None else elsewhere.staged)
    if planned is not None and elsewhere is None:
        planned.write(connection, publication, now)
    known = relation_heads(connection, _named(publication))
    known = _add_versions(connection, publication.versions, known, record)
    frontiers.move(connection, publication.frontiers, known)
    ids = {name: of.id for name, of in known.items()}
    counted = epochs.count(connection, publication.groups, ids, record.id)
    history.write(connection, publication.history, ids, record.id, counted)
    scheduler_rows.note_published(connection, [known[move.stream].id for move in publication.frontiers])
    skipped = {
        known[move.stream].id: (move.skipped, move.skipped_since or record.published_at)
        for move in publication.frontiers
        if move.skipped
    }
    recomputed = [known[e.stream].id for e in publication.history if e.mode is RanAs.FULL and e.stream in known]
    scheduler_rows.note_skipped(connection, skipped, recomputed)
    for stop in publication.stops:
        definition_writer.stop_if_there(connection, stop.stream, stop.code, stop.reason, record.published_at)
    scheduler_rows.change(connection, publication.pauses, {"paused_at": record.published_at})
    scheduler_rows.resume(connection, publication.unpauses)
    if planned is not None and elsewhere is not None:
        if planned.lake_moves:
            planned.relocate(elsewhere.move(connection, planned.lake_moves))
        planned.write(connection, publication, now)
    return record


def _named(publication: Publication) -> set[TableName]:
    """Return the relations whose versions, frontiers or history a publication writes."""
    names = {v.relation for v in publication.versions} | {e.stream for e in publication.history}
    names |= {name for members in publication.groups for name in members}
    for move in publication.frontiers:
        names |= {move.stream, *move.frontier}
    return names


def _open(connection: Connection, publication: Publication, now: dt.datetime) -> PublicationRecord:
    """Number the publication.

    Its time does not go back when hosts take turns whose clocks differ a little. The time of a clock that was wrong and
    was put right is left: by it, all that is published until then would be of the future, and nothing would be late.
    """
    last = next(iter(versions.publications(connection, 1)), None)
    moment = now if last is None or last.published_at - now > APART else max(now, last.published_at)
    values = {"uuid": publication.uuid, "published_at": moment}
    key = connection.execute(sa.insert(t.publication).values(values)).inserted_primary_key
    assert key is not None
    return PublicationRecord(key[0], publication.uuid, moment)


def _add_versions(
    connection: Connection,
    new: Sequence[NewVersion],
    known: Mapping[TableName, RelationHead],
    record: PublicationRecord,
) -> dict[TableName, RelationHead]:
    """Append versions; returns what is known of relations afterwards."""
    after, rows = dict(known), []
    for wanted in new:
        relation = after.get(wanted.relation)
        if relation is None:
            raise invalid(f"{wanted.relation} is not a relation of this catalog.")
        if wanted.version != relation.head + 1:
            raise invalid(f"{wanted.relation} cannot go from version {relation.head} to version {wanted.version}.")
        after[wanted.relation] = RelationHead(relation.id, wanted.version)
        rows.append(_version_row(wanted, relation.id, record))
    insert_rows(connection, t.version, rows)
    for wanted in new:
        if wanted.table_uuid is not None:
            own = t.relation.c.id == after[wanted.relation].id
            changed = t.relation.c.table_uuid.is_distinct_from(wanted.table_uuid)
            connection.execute(sa.update(t.relation).where(own, changed).values(table_uuid=wanted.table_uuid))
    return after


def _version_row(new: NewVersion, relation_id: int, record: PublicationRecord) -> dict[str, object]:
    return {
        "relation_id": relation_id,
        "version": new.version,
        "snapshot_id": new.snapshot_id,
        "row_count": new.row_count,
        "committed_at": record.published_at,
        "publication_id": record.id,
        "table_uuid": new.table_uuid,
    }


def _unknown(publication: Publication, error: exc.DBAPIError) -> EnvironmentFault:
    return EnvironmentFault(
        "PUBLISH_OUTCOME_UNKNOWN",
        "The connection to the catalog broke while publishing; whether it was published is not known yet.",
        detail=f"Publication {publication.uuid}: {str(error.orig).strip()}",
        hint="Refresh again: Headrace finds out first, and publishes only what was not.",
        retryable=True,
    )
