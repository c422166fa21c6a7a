"""Reads the catalog: each method by one or two queries, however many tables there are.

A `Reader` lives inside one read transaction, so all its answers agree with each other.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog import unused_relations
from headrace.catalog.coordination.lease_time import LeaseTime
from headrace.catalog.coordination.leases import is_live, lease_of
from headrace.catalog.definitions import deployments, greens
from headrace.catalog.definitions.deployments import AutoDeployment
from headrace.catalog.definitions.known_definitions import KnownDefinitions
from headrace.catalog.publishing import pointers, versions
from headrace.catalog.records import (
    ForeignWrite,
    Green,
    HistoryEntry,
    Json,
    LastRefresh,
    Lease,
    Pointer,
    PublicationRecord,
    Reached,
    Relation,
    StreamTable,
    Version,
)
from headrace.catalog.relations import MANY, not_found, parse_name, relation_of, stored_name
from headrace.catalog.safeguards import gates, watermarks
from headrace.catalog.safeguards.gates import Gate
from headrace.catalog.safeguards.watermarks import WatermarkGroup
from headrace.catalog.sinks import sink_rows
from headrace.catalog.sinks.sink_rows import Sink
from headrace.catalog.sources import database_sources as sources
from headrace.catalog.sources.database_sources import DatabaseSource
from headrace.catalog.state import history
from headrace.frontier import Frontier
from headrace.names import LAKE, TableName

_SOURCE = t.relation.alias("source")
_STREAM = t.relation.alias("stream")
_FRONTIERS = (
    sa.select(_STREAM.c.name, _SOURCE.c.name, t.frontier.c.version)
    .select_from(t.frontier)
    .join(_STREAM, _STREAM.c.id == t.frontier.c.stream_id)
    .join(_SOURCE, _SOURCE.c.id == t.frontier.c.source_id)
)
_FRONTIER = _FRONTIERS.where(_STREAM.c.name == sa.bindparam("name"))
_FRONTIERS_OF = _FRONTIERS.where(_STREAM.c.name.in_(sa.bindparam("names", expanding=True)))


class Reader:
    """Readers of one state of the catalog.

    What is asked of all tables is read once, as many parts of a look ask for it.

    Args:
        connection: A connection inside a read transaction.
        lease_time: Tells by which time leases expire.
        definitions: The stream tables as they were read last.
    """

    def __init__(self, connection: Connection, lease_time: LeaseTime, definitions: KnownDefinitions) -> None:
        self._connection = connection
        self._lease_time = lease_time
        self._definitions = definitions

    def stream_tables(self) -> tuple[StreamTable, ...]:
        """Return all stream tables, by name."""
        return self._definitions.all(self._connection)

    def find_stream_table(self, name: TableName) -> StreamTable | None:
        """Return one stream table, or None."""
        return self._definitions.one(self._connection, name)

    def stream_table(self, name: TableName) -> StreamTable:
        """Return one stream table.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        found = self.find_stream_table(name)
        if found is None:
            raise not_found(name, (table.name for table in self.stream_tables()))
        return found

    def greens(self) -> tuple[Green, ...]:
        """Return second generations of stream tables, by deployment and name."""
        return greens.read(self._connection)

    def auto_deployments(self) -> tuple[AutoDeployment, ...]:
        """Return deployments that are to promote themselves, by name."""
        return deployments.read(self._connection)

    def green_loads(self) -> dict[TableName, Json]:
        """Return how far second generations are that are being loaded, or were; by name."""
        return greens.loads(self._connection)

    def gates(self) -> dict[TableName, Gate]:
        """Return the closed gates, by source."""
        return gates.read(self._connection)

    def watermark_groups(self) -> tuple[WatermarkGroup, ...]:
        """Return all watermark groups, by name."""
        return watermarks.read(self._connection)

    def sources(self) -> tuple[DatabaseSource, ...]:
        """Return all database sources, by name."""
        return sources.read(self._connection)

    def find_source(self, name: str) -> DatabaseSource | None:
        """Return one database source, or None."""
        return next(iter(sources.read(self._connection, name)), None)

    def source(self, name: str) -> DatabaseSource:
        """Return one database source.

        Raises:
            UserError: `SOURCE_UNKNOWN`.
        """
        return sources.one(self._connection, name)

    def sinks(self) -> tuple[Sink, ...]:
        """Return all sinks, by name."""
        return sink_rows.read(self._connection)

    def relations(self) -> tuple[Relation, ...]:
        """Return all relations, sources and stream tables, by name."""
        query = sa.select(t.relation).order_by(t.relation.c.name)
        return tuple(relation_of(row) for row in self._connection.execute(query).mappings())

    def unused(self, names: Iterable[TableName]) -> set[TableName]:
        """Return those names that are sources which nothing refers to any more."""
        return set(unused_relations.unused(self._connection, names))

    def dependencies(self) -> dict[TableName, tuple[TableName, ...]]:
        """Return the sources of every stream table, in the order they were given."""
        return {table.name: table.sources for table in self.stream_tables() if table.sources}

    def frontier(self, name: TableName) -> Frontier:
        """Return a stream table's frontier; empty while it was never published."""
        return self._frontiers(_FRONTIER, {"name": stored_name(name)}).get(name, Frontier())

    def frontiers(self, names: Collection[TableName] | None = None) -> dict[TableName, Frontier]:
        """Return the frontiers of published stream tables.

        Args:
            names: Of these, and maybe of others; of all when None.
        """
        if names is None or len(names) > MANY:
            return dict(self._every_frontier)
        return self._frontiers(_FRONTIERS_OF, {"names": [stored_name(name) for name in names]})

    @cached_property
    def _every_frontier(self) -> Mapping[TableName, Frontier]:
        return self._frontiers(_FRONTIERS, {})

    def _frontiers(self, query: sa.Select[Any], given: Mapping[str, object]) -> dict[TableName, Frontier]:
        found: defaultdict[TableName, dict[TableName, int]] = defaultdict(dict)
        for stream, source, number in self._connection.execute(query, given).all():
            found[parse_name(stream)][parse_name(source)] = number
        return {stream: Frontier(moves) for stream, moves in found.items()}

    def newest_versions(self, names: Collection[TableName] | None = None) -> dict[TableName, Version]:
        """Return the newest version of each relation that has one.

        Args:
            names: Of these, and maybe of others; of all when None.
        """
        if names is None:
            return dict(self._every_newest)
        return versions.newest_of(self._connection, tuple(names))

    @cached_property
    def _every_newest(self) -> Mapping[TableName, Version]:
        return versions.newest(self._connection)

    def newest_version(self, name: TableName) -> Version | None:
        """Return the newest version of one relation, or None."""
        return versions.newest_of(self._connection, [name]).get(name)

    def version_at(self, name: TableName, version: int) -> Version | None:
        """Return a given version of a relation, or None when there is no such."""
        return versions.at(self._connection, {name: version}).get(name)

    def versions_at(self, wanted: Mapping[TableName, int]) -> dict[TableName, Version]:
        """Return given versions of several relations in one query.

        Those that do not exist are left out.
        """
        return versions.at(self._connection, wanted)

    def each_version_at(self, wanted: Mapping[TableName, Collection[int]]) -> list[Version]:
        """Return several versions of each of many relations, in as many queries as for one."""
        return versions.at_each(self._connection, wanted)

    def versions(self, name: TableName, *, after: int = -1) -> tuple[Version, ...]:
        """Return all versions of a relation later than `after`, oldest first."""
        return versions.later_than(self._connection, name, after)

    def first_version_after(self, name: TableName, version: int | None) -> Version | None:
        """Return the first version of a relation later than one, or None.

        Args:
            name: The relation.
            version: The one; None for the first of all.
        """
        return versions.first_later(self._connection, name, -1 if version is None else version)

    def first_unreflected(self, names: Collection[TableName]) -> dict[tuple[TableName, int], dt.datetime]:
        """Return when the first version was committed that a stream table does not reflect.

        Args:
            names: Of these relations, and maybe of others.

        Returns:
            By relation and version reflected; those after which nothing came are left out.
        """
        return versions.first_unreflected(self._connection, names)

    def first_shown(self, name: TableName, snapshots: Collection[int]) -> dict[int, dt.datetime]:
        """Return when snapshots of a relation were first published; others are left out."""
        return versions.first_shown(self._connection, name, snapshots)

    def versions_as_of(self, when: dt.datetime | int) -> dict[TableName, Version]:
        """Return each relation's version that was newest at a time or at a publication (by id).

        Raises:
            UserError: `PUBLICATION_NOT_FOUND`.
        """
        return versions.as_of(self._connection, when)

    def publication(self, uuid: str) -> PublicationRecord | None:
        """Return the publication of that UUID, or None when it did not happen."""
        return versions.publication(self._connection, uuid)

    def published_at(self, publication: int) -> dt.datetime:
        """Return when a publication (by id) was made.

        Raises:
            UserError: `PUBLICATION_NOT_FOUND`.
        """
        return versions.published_at(self._connection, publication)

    def publications(self, limit: int | None = None) -> tuple[PublicationRecord, ...]:
        """Return publications, newest first."""
        return versions.publications(self._connection, limit)

    def history(
        self, name: TableName | None = None, limit: int | None = None, *, succeeded: bool = False
    ) -> tuple[HistoryEntry, ...]:
        """Return refreshes of one stream table or of all, newest first.

        Those of dropped ones included.

        Args:
            name: The stream table; None for all.
            limit: At most so many.
            succeeded: Only those that ended well.
        """
        return history.read(self._connection, name, limit, succeeded=succeeded)

    def history_after(self, entry: int, limit: int) -> tuple[HistoryEntry, ...]:
        """Return refreshes that were recorded after an entry (by id), oldest first."""
        return history.after(self._connection, entry, limit)

    def newest_entry(self) -> int:
        """Return the id of the newest entry of the history; 0 when there is none."""
        return history.newest_id(self._connection)

    def past_frontiers(self, name: TableName) -> tuple[tuple[int, Frontier], ...]:
        """Return version and frontier after each refresh of a stream table, oldest first.

        Of those refreshes only that lately were published, which is as far back as anybody looks.
        """
        return history.past_frontiers(self._connection, name)

    def reached_since(self, since: dt.datetime, limit: int) -> tuple[Reached, ...]:
        """Return the frontiers that tables reached since a time, oldest first.

        When there are too many, the newest.
        """
        return history.reached_since(self._connection, since, limit)

    def committed_since(self, since: dt.datetime, limit: int) -> dict[TableName, list[tuple[int, dt.datetime]]]:
        """Return, by source, versions and commit times since a time, oldest first.

        When there are too many, the newest.
        """
        return versions.committed_since(self._connection, since, limit)

    def last_refreshes(self) -> dict[TableName, LastRefresh]:
        """Return how the newest refresh of every stream table ended that exists and has one."""
        return dict(self._every_last)

    @cached_property
    def _every_last(self) -> Mapping[TableName, LastRefresh]:
        return history.last(self._connection)

    def metadata_outside(self, folder: str) -> dict[str, bool]:
        """Return metadata files in other local folders, and whether Headrace published them."""
        return pointers.outside(self._connection, folder)

    def pointers(self, catalog: str = LAKE, names: Iterable[TableName] | None = None) -> dict[TableName, Pointer]:
        """Return metadata pointers of one Iceberg catalog, from one query.

        Absent tables are left out.
        """
        return pointers.read(self._connection, catalog, names)

    def namespaces(self) -> set[str]:
        """Return the namespaces of `lake`, as their texts."""
        return pointers.namespaces(self._connection)

    def leases(self) -> tuple[Lease, ...]:
        """Return every lease that was ever held, released ones (owner None) included."""
        return self._leases(sa.select(t.lease).order_by(t.lease.c.resource))

    def held_resources(self) -> frozenset[str]:
        """Return what is held by a lease that has not expired."""
        now = self._lease_time.now(self._connection)
        owned = self._leases(sa.select(t.lease).where(t.lease.c.owner.is_not(None)))
        return frozenset(lease.resource for lease in owned if is_live(lease, now))

    def _leases(self, query: sa.Select[Any]) -> tuple[Lease, ...]:
        return tuple(map(lease_of, self._connection.execute(query)))

    def dirty_staging(self) -> tuple[TableName, ...]:
        """Return tables (as `lake` names) whose `staging` pointer differs from `lake`."""
        return pointers.dirty(self._connection)

    def foreign_writes(self, names: Iterable[TableName] | None = None) -> tuple[ForeignWrite, ...]:
        """Return stored tables that somebody else wrote to in `lake` since Headrace published them."""
        return pointers.foreign(self._connection, names)
