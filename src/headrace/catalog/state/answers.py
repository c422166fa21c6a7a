"""Single questions to the catalog, each answered from a read transaction of its own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from headrace.catalog.database import Database
from headrace.catalog.records import (
    ForeignWrite,
    HistoryEntry,
    Lease,
    Pointer,
    PublicationRecord,
    Relation,
    StreamTable,
    Version,
)
from headrace.catalog.state.reader import Reader
from headrace.frontier import Frontier
from headrace.names import LAKE, TableName


class Answers:
    """The readers of `Catalog`; answers to two calls may be of two states, those of one `reading()` are not.

    Args:
        database: The opened database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """A reader whose answers all come from one state of the catalog."""
        with self._database.read() as connection:
            yield Reader(connection)

    def stream_tables(self) -> tuple[StreamTable, ...]:
        """All stream tables, by name."""
        with self.reading() as reader:
            return reader.stream_tables()

    def stream_table(self, name: TableName) -> StreamTable:
        """One stream table.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        with self.reading() as reader:
            return reader.stream_table(name)

    def find_stream_table(self, name: TableName) -> StreamTable | None:
        """One stream table, or None."""
        with self.reading() as reader:
            return reader.find_stream_table(name)

    def relations(self) -> tuple[Relation, ...]:
        """All relations, sources and stream tables, by name."""
        with self.reading() as reader:
            return reader.relations()

    def dependencies(self) -> dict[TableName, tuple[TableName, ...]]:
        """The sources of every stream table."""
        with self.reading() as reader:
            return reader.dependencies()

    def consumers(self, name: TableName) -> tuple[TableName, ...]:
        """The stream tables that read a relation directly."""
        with self.reading() as reader:
            return reader.consumers(name)

    def frontier(self, name: TableName) -> Frontier:
        """A stream table's frontier; empty while it was never published."""
        with self.reading() as reader:
            return reader.frontier(name)

    def frontiers(self) -> dict[TableName, Frontier]:
        """The frontiers of all published stream tables."""
        with self.reading() as reader:
            return reader.frontiers()

    def newest_versions(self) -> dict[TableName, Version]:
        """The newest version of every relation that has one."""
        with self.reading() as reader:
            return reader.newest_versions()

    def version_at(self, name: TableName, version: int) -> Version | None:
        """A given version of a relation, or None when there is no such."""
        with self.reading() as reader:
            return reader.version_at(name, version)

    def versions_at(self, versions: Mapping[TableName, int]) -> dict[TableName, Version]:
        """Given versions of several relations in one query; those that do not exist are left out."""
        with self.reading() as reader:
            return reader.versions_at(versions)

    def versions(self, name: TableName, *, after: int = -1) -> tuple[Version, ...]:
        """All versions of a relation later than `after`, oldest first."""
        with self.reading() as reader:
            return reader.versions(name, after=after)

    def version_as_of(self, name: TableName, when: dt.datetime | int) -> Version | None:
        """The version that was newest at a time or at a publication (by id); None when there was none.

        Raises:
            UserError: `PUBLICATION_NOT_FOUND`.
        """
        with self.reading() as reader:
            return reader.version_as_of(name, when)

    def versions_as_of(self, when: dt.datetime | int) -> dict[TableName, Version]:
        """For every relation, the version that was newest at a time or at a publication (by id).

        Raises:
            UserError: `PUBLICATION_NOT_FOUND`.
        """
        with self.reading() as reader:
            return reader.versions_as_of(when)

    def publication(self, uuid: str) -> PublicationRecord | None:
        """The publication of that UUID, or None when it has not happened; see `settle` for a lost connection."""
        with self.reading() as reader:
            return reader.publication(uuid)

    def publications(self, limit: int | None = None) -> tuple[PublicationRecord, ...]:
        """Publications, newest first."""
        with self.reading() as reader:
            return reader.publications(limit)

    def history(self, name: TableName | None = None, limit: int | None = None) -> tuple[HistoryEntry, ...]:
        """Refreshes of one stream table or of all, newest first; those of dropped ones included."""
        with self.reading() as reader:
            return reader.history(name, limit)

    def last_refreshes(self) -> dict[TableName, HistoryEntry]:
        """The newest history entry of every stream table that exists and has one."""
        with self.reading() as reader:
            return reader.last_refreshes()

    def pointers(self, catalog: str = LAKE, names: Iterable[TableName] | None = None) -> dict[TableName, Pointer]:
        """Metadata pointers of one Iceberg catalog, from one query; absent tables are left out.

        Args:
            catalog: `lake` or `staging`.
            names: The tables, whatever their catalog part; all when None. Keys of the result are in `catalog`.
        """
        with self.reading() as reader:
            return reader.pointers(catalog, names)

    def leases(self) -> tuple[Lease, ...]:
        """Every lease that was ever held, released ones (owner None) included."""
        with self.reading() as reader:
            return reader.leases()

    def dirty_staging(self) -> tuple[TableName, ...]:
        """Tables (as `lake` names) whose `staging` pointer differs from their `lake` pointer, or has none to follow."""
        with self.reading() as reader:
            return reader.dirty_staging()

    def foreign_writes(self, names: Iterable[TableName] | None = None) -> tuple[ForeignWrite, ...]:
        """Stored tables that somebody else wrote to in `lake` since Headrace published them."""
        with self.reading() as reader:
            return reader.foreign_writes(names)
