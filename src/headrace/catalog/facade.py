"""The catalog's one door: readers, writers, leases and publishing, each in its own module, behind one object."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from headrace.catalog import leases as _leases
from headrace.catalog import observing as _observing
from headrace.catalog import staging as _staging
from headrace.catalog import writer as _writer
from headrace.catalog.database import BUSY_TIMEOUT, Database, parse_url
from headrace.catalog.opening import prepare
from headrace.catalog.publication import Publication
from headrace.catalog.publish import publish as _publish
from headrace.catalog.publish import settle as _settle
from headrace.catalog.reader import Reader
from headrace.catalog.records import (
    Definition,
    ForeignWrite,
    HistoryEntry,
    Lease,
    Observation,
    Observed,
    Pointer,
    PublicationRecord,
    RefreshMode,
    Relation,
    StreamTable,
    Version,
)
from headrace.clock import Clock, SystemClock
from headrace.events import Events
from headrace.frontier import Frontier
from headrace.names import LAKE, TableName


class Catalog:
    """The durable truth of one project; safe to use from several threads.

    Every method is one transaction. Use `reading()` where several answers must agree with each other.
    Any method may raise `EnvironmentFault`: `CATALOG_LOCKED` (retryable), `CATALOG_UNREACHABLE`, `CATALOG_CORRUPT`,
    `CATALOG_READ_ONLY`, `DISK_FULL`.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @classmethod
    def open(
        cls,
        url: str,
        *,
        events: Events | None = None,
        create: bool = True,
        clock: Clock | None = None,
        busy_timeout: dt.timedelta = BUSY_TIMEOUT,
    ) -> Self:
        """Open a catalog; create it, or migrate it after a backup, where needed.

        Args:
            url: SQLAlchemy URL: `sqlite:///<file>` or `postgresql://…`.
            events: Receives a `Notice` when the catalog is migrated.
            create: Whether a catalog that does not exist is made.
            clock: Tells the time for leases and records; the machine's when None.
            busy_timeout: How long a statement waits for another writer before `CATALOG_LOCKED`.

        Raises:
            EnvironmentFault: `CATALOG_TOO_NEW`, `CATALOG_LOCKED`, `CATALOG_UNREACHABLE`, `CATALOG_CORRUPT`.
        """
        clock = clock or SystemClock()
        database = Database(parse_url(url), busy_timeout=busy_timeout)
        prepare(database, events=events or Events(), create=create, now=clock.now())
        return cls(database, clock)

    def close(self) -> None:
        """Close all connections; the catalog cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- reading

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

    def clock_skew(self) -> dt.timedelta:
        """Database clock minus ours; zero for SQLite."""
        with self.reading() as reader:
            return reader.clock_skew(self._clock.now())

    # ---- writing

    def create_stream_table(self, definition: Definition) -> StreamTable:
        """Define a stream table, status NEW; unknown sources become relations of kind source.

        Raises:
            UserError: `STREAM_TABLE_EXISTS`.
        """
        with self._database.write() as connection:
            return _writer.create_stream_table(connection, definition, self._clock.now())

    def replace_stream_table(self, definition: Definition) -> StreamTable:
        """Give a stream table a new definition: generation + 1, status NEW, no frontier; id and versions stay.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        with self._database.write() as connection:
            return _writer.replace_stream_table(connection, definition, self._clock.now())

    def alter_stream_table(
        self,
        name: TableName,
        *,
        refresh_mode: RefreshMode | None = None,
        schedule: str | None = None,
        clear_schedule: bool = False,
        details: Mapping[str, object] | None = None,
    ) -> StreamTable:
        """Change what does not change the contents; None leaves a field as it is.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        with self._database.write() as connection:
            return _writer.alter_stream_table(
                connection,
                name,
                self._clock.now(),
                refresh_mode=refresh_mode,
                schedule=schedule,
                clear_schedule=clear_schedule,
                details=details,
            )

    def drop_stream_table(self, name: TableName) -> StreamTable:
        """Forget a stream table and return what it was; its history stays.

        Does not touch `iceberg_tables`. When consumers exist the relation stays, as a source.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        with self._database.write() as connection:
            return _writer.drop_stream_tables(connection, (name,))[0]

    def stop(self, name: TableName, code: str, reason: str) -> None:
        """Set a stream table to STOPPED, with the error code and the sentence for it."""
        with self._database.write() as connection:
            _writer.stop(connection, name, code, reason, self._clock.now())

    def resume(self, name: TableName) -> None:
        """Take a stream table out of STOPPED: ACTIVE when it has a frontier, else NEW. No effect on others."""
        with self._database.write() as connection:
            _writer.resume(connection, name, self._clock.now())

    def set_log_table(self, name: TableName, log: TableName | None) -> None:
        """Say where a stream table's change log is from now on, or that it keeps none."""
        with self._database.write() as connection:
            _writer.set_stored(connection, name, self._clock.now(), log=log)

    def set_companion_table(self, name: TableName, companion: TableName | None) -> None:
        """Say where a stream table's companion is from now on, or that it has none."""
        with self._database.write() as connection:
            _writer.set_stored(connection, name, self._clock.now(), companion=companion)

    def record(self, entries: Sequence[HistoryEntry]) -> None:
        """Write history without publishing: failures, and refreshes that found nothing to do."""
        with self._database.write() as connection:
            _writer.record(connection, entries)

    def record_failure(self, entry: HistoryEntry) -> None:
        """Write one failed refresh into the history."""
        self.record((entry,))

    def observe(self, observations: Sequence[Observation]) -> tuple[Observed, ...]:
        """Number the heads of sources: the newest version where the head is known, else a new one.

        A rollback to an older snapshot is a new version bound to the old snapshot. Unknown relations become sources.
        When nothing is new this only reads.

        Returns:
            One answer per observation, in the same order.
        """
        with self._database.read() as connection:
            known = _observing.observe_known(connection, observations)
        if known is not None:
            return known
        with self._database.write() as connection:
            return _observing.observe(connection, observations, self._clock.now())

    def trim_versions(self, name: TableName, before: int) -> int:
        """Forget a relation's versions below `before`, save those a frontier holds and the newest; returns how many."""
        with self._database.write() as connection:
            return _writer.trim_versions(connection, name, before)

    # ---- leases

    def acquire(
        self,
        resources: Sequence[str],
        owner: str,
        ttl: dt.timedelta,
        *,
        is_dead: Callable[[str], bool] | None = None,
    ) -> tuple[Lease, ...]:
        """Lease all the resources, or none; expired leases of others are taken over with the next token.

        Args:
            resources: Names from `resource_of`, each once, in any order.
            owner: Identifies this holder; use a new one per process and worker.
            ttl: Time until it expires without a heartbeat.
            is_dead: Whether an owner is known to be gone; its leases are taken over without waiting.

        Raises:
            EnvironmentFault: `LEASE_HELD` (retryable), naming resource and holder.
        """
        with self._database.write() as connection:
            return _leases.acquire(connection, resources, owner, ttl, self._clock.now(), is_dead)

    def heartbeat(self, leases: Sequence[Lease], ttl: dt.timedelta) -> tuple[Lease, ...]:
        """Prolong leases by `ttl` from now; returns them as they are then.

        Raises:
            EnvironmentFault: `LEASE_LOST` when another owner took one over; then none is prolonged.
        """
        with self._database.write() as connection:
            return _leases.heartbeat(connection, leases, ttl, self._clock.now())

    def release(self, leases: Sequence[Lease]) -> None:
        """Give leases back; those taken over by others are left alone."""
        with self._database.write() as connection:
            _leases.release(connection, leases, self._clock.now())

    # ---- publishing and recovery

    def publish(self, publication: Publication) -> PublicationRecord:
        """Make a publication visible in one transaction, or change nothing.

        Raises:
            EnvironmentFault: `LEASE_LOST`, `FOREIGN_WRITER`, `DEFINITION_CHANGED`, `PUBLISH_OUTCOME_UNKNOWN`
                (retryable: publish the same object again, or ask `settle(uuid)`), `STAGING_CHANGED`.
            InternalError: `PUBLICATION_INVALID` when a version or a frontier would go back, or nothing is staged.
        """
        return _publish(self._database, publication, self._clock.now())

    def settle(self, uuid: str) -> PublicationRecord | None:
        """What became of a publication whose outcome is unknown: its record, or None when it never happened.

        Waits for a publisher that is still at it, so that None is final: it cannot happen afterwards.
        """
        with self._database.write() as connection:
            return _settle(connection, uuid)

    def reset_staging(
        self, names: Iterable[TableName] | None = None, *, held: Sequence[Lease] = ()
    ) -> tuple[TableName, ...]:
        """Put `staging` pointers back to their `lake` pointers; staging rows without a lake row go.

        Skips tables under a live lease that is not in `held`, on the stored table itself or on its stream table.

        Args:
            names: The stored tables; all dirty ones when None.
            held: Leases of the caller.

        Returns:
            The tables (as `lake` names) that were put back.
        """
        with self._database.write() as connection:
            return _staging.reset_staging(connection, names, held, self._clock.now())
