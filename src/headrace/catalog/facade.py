"""`Catalog`: readers, writers, leases and publishing behind one object."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Self

from headrace.catalog.coordination import leases as _leases
from headrace.catalog.coordination.lease_time import LeaseTime
from headrace.catalog.coordination.scheduler_catalog import SchedulerCatalog
from headrace.catalog.database import BUSY_TIMEOUT, Database, parse_url
from headrace.catalog.definitions import definition_writer as _writer
from headrace.catalog.definitions.deployment_catalog import DeploymentCatalog
from headrace.catalog.definitions.key_catalog import KeyCatalog
from headrace.catalog.opening import prepare
from headrace.catalog.publishing import pointers as _pointers
from headrace.catalog.publishing import reset_staging as _staging
from headrace.catalog.publishing import restore_pointers as _restoring
from headrace.catalog.publishing import retired_tables as _retired
from headrace.catalog.publishing import staging_namespaces as _namespaces
from headrace.catalog.publishing.publication import Publication
from headrace.catalog.publishing.publish import publish as _publish
from headrace.catalog.publishing.publish import settle as _settle
from headrace.catalog.records import (
    ForeignWrite,
    HistoryEntry,
    Json,
    Lease,
    Observation,
    Pointer,
    PublicationRecord,
    RefreshMode,
    Retired,
    StreamTable,
    Version,
)
from headrace.catalog.remote_lake import home as _home
from headrace.catalog.remote_lake import intents as _intents
from headrace.catalog.remote_lake import relocation as _relocation
from headrace.catalog.remote_lake.home import LakeHome
from headrace.catalog.remote_lake.remote_lake import RemoteLake
from headrace.catalog.safeguards.safeguard_catalog import SafeguardCatalog
from headrace.catalog.sinks.sink_catalog import SinkCatalog
from headrace.catalog.sources import database_sources as _sources
from headrace.catalog.sources import source_health as _source_health
from headrace.catalog.sources.database_sources import DatabaseSource, Mirror, SourceStatus
from headrace.catalog.state import observed_heads as _observing
from headrace.catalog.state.answers import Answers
from headrace.clock import Clock, SystemClock
from headrace.errors import HeadraceError
from headrace.events import Events
from headrace.lakes.lake_server import Key, LakeServer, one_by_one
from headrace.names import LAKE, TableName


class Catalog(Answers, SchedulerCatalog, SafeguardCatalog, KeyCatalog, DeploymentCatalog, SinkCatalog):
    """The durable truth of one project; safe to use from several threads.

    Every method is one transaction. Use `reading()` where several answers must agree with each other.
    Any method may raise `EnvironmentFault`: `CATALOG_LOCKED` (retryable), `CATALOG_UNREACHABLE`, `CATALOG_CORRUPT`,
    `CATALOG_READ_ONLY`, `DISK_FULL`.
    """

    def __init__(self, database: Database, clock: Clock, lake: LakeServer | None = None) -> None:
        super().__init__(database, LeaseTime(clock))
        self._clock = clock
        self._home, self._server = LakeHome(database), lake
        self._remote = (
            None if lake is None else RemoteLake(database, lake, clock.now, self._lease_time.now, self._home.check)
        )

    @classmethod
    def open(
        cls,
        url: str,
        *,
        events: Events | None = None,
        create: bool = True,
        clock: Clock | None = None,
        busy_timeout: dt.timedelta = BUSY_TIMEOUT,
        lake: LakeServer | None = None,
    ) -> Self:
        """Open a catalog; create it, or migrate it after a backup, where needed.

        Args:
            url: SQLAlchemy URL: `sqlite:///<file>` or `postgresql://…`.
            events: Receives a `Notice` when the catalog is migrated.
            create: Whether a catalog that does not exist is made.
            clock: Tells the time for leases and records; the machine's when None.
            busy_timeout: How long a statement waits for another writer before `CATALOG_LOCKED`.
            lake: Keeps what everybody reads; None where that is in this database, too.

        Raises:
            EnvironmentFault: `CATALOG_TOO_NEW`, `CATALOG_LOCKED`, `CATALOG_UNREACHABLE`, `CATALOG_CORRUPT`.
        """
        clock = clock or SystemClock()
        database = Database(parse_url(url), busy_timeout=busy_timeout)
        prepare(database, events=events or Events(), create=create, now=clock.now())
        return cls(database, clock, lake)

    def close(self) -> None:
        """Close all connections; the catalog cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> dt.datetime:
        """Return the time by which the catalog's records are written."""
        return self._clock.now()

    # ---- a lake elsewhere

    def bind_lake(self, identity: str | None) -> None:
        """Hold the project to the lake that it began in, and this object to it.

        Where the project is moved meanwhile, whatever is leased or published here is refused (`LAKE_CHANGED`).

        Args:
            identity: The server that the settings name; None for this database.

        Raises:
            UserError: `LAKE_CHANGED` when its tables are in another one.
        """
        self._home.bind(identity)

    def refuse_other_lake(self, identity: str | None) -> None:
        """Refuse what `bind_lake` would refuse, and hold nothing to anything."""
        with self._database.read() as connection:
            _home.refuse_other(connection, identity)

    def lake_identity(self, *, settled: bool = False) -> str | None:
        """Return which server keeps the project's lake; None where that is this database.

        Args:
            settled: Wait for a move that is being committed, so that the answer is final.
        """
        if settled:
            return _relocation.settled(self._database)
        with self._database.read() as connection:
            return _home.read(connection)

    def relocate(
        self,
        seen: Mapping[TableName, str],
        shown: Mapping[TableName, str],
        *,
        to: str | None,
        held: Sequence[Lease],
        look: Callable[[Collection[Key]], Mapping[Key, str]] | None = None,
    ) -> set[TableName]:
        """Have the project go by another lake from now on, unless the present one has changed.

        Args:
            seen: Metadata files that the present lake showed; of all its tables where that is this database.
            shown: Those that the other one shows of the same tables; all others are the project's no more.
            to: The server that keeps the other one; None for this database.
            held: Leases of the caller on all that is published here.
            look: Asks the server that keeps the present one; None where that is this database.

        Returns:
            Tables that changed, came or went since they were seen; where there are any nothing is done.

        Raises:
            EnvironmentFault: `LEASE_LOST`.
            UserError: `LAKE_CHANGED` when somebody else has moved it.
        """
        before, after = ({_pointers.key_of(n): at for n, at in of.items()} for of in (seen, shown))
        check = self._home.check
        differing = _relocation.relocate(self._database, held, before, after, check, to=to, look=look)
        return {_pointers.name_of(key) for key in differing}

    def pending_publications(self) -> set[TableName]:
        """Return the tables of publications that are being shown in another server."""
        with self._database.read() as connection:
            return {_pointers.name_of(key) for key in _intents.keys(connection)}

    def lake_namespaces(self) -> dict[str, dict[str, str]]:
        """Return namespaces of `lake` that this database has, with their properties."""
        with self._database.read() as connection:
            return _pointers.namespace_properties(connection)

    def look(self, names: Iterable[TableName] | None = None) -> None:
        """Take over what a lake in another server shows; nothing to do for one in this database.

        Before `reading()`, by whoever depends on what others wrote there.

        Args:
            names: The tables; None for all there are.
        """
        if self._remote is not None:
            self._remote.look(names)

    def look_at_stream_table(self, name: TableName) -> None:
        """Take over what a lake in another server shows of a stream table, if it is one."""
        if self._remote is not None and (table := self.find_stream_table(name)) is not None:
            self._remote.look(table.stored)

    def look_at_known(self) -> None:
        """Take over what a lake in another server shows of all relations that are known here."""
        if self._remote is not None:
            self._remote.look(relation.name for relation in self.relations() if relation.name.catalog == LAKE)

    def look_at_stored(self) -> None:
        """Take over what a lake in another server shows of the tables that Headrace has published."""
        if self._remote is not None:
            self._remote.look_at_stored()

    def pointers(self, catalog: str = LAKE, names: Iterable[TableName] | None = None) -> dict[TableName, Pointer]:
        """Return metadata pointers of one Iceberg catalog, as they are now.

        Absent tables are left out.
        """
        names = None if names is None else tuple(names)
        if catalog == LAKE:
            self.look(names)
        return super().pointers(catalog, names)

    def foreign_writes(self, names: Iterable[TableName] | None = None) -> tuple[ForeignWrite, ...]:
        """Return stored tables that somebody else wrote to in `lake` since Headrace published them."""
        names = None if names is None else tuple(names)
        if names is None:
            self.look_at_stored()
        else:
            self.look(names)
        return super().foreign_writes(names)

    def files_kept_by_server(self, names: Collection[TableName]) -> frozenset[TableName]:
        """Return the tables whose files nobody may delete but the server that has the lake."""
        if self._server is None:
            return frozenset()
        return frozenset(map(_pointers.name_of, self._server.keeping_files(set(map(_pointers.key_of, names)))))

    def moves_together(self) -> bool:
        """Return whether all tables of a publication are shown at once; some REST catalogs do not."""
        return self._server is None or self._server.at_once()

    def refuse_one_by_one(self, what: str) -> None:
        """Refuse what changes several tables at once, where the lake is in a server that does not.

        Args:
            what: What is refused, as the beginning of a sentence.

        Raises:
            UserError: `LAKE_UNSUPPORTED`.
        """
        if not self.moves_together():
            raise one_by_one(what)

    def namespaces(self) -> set[str]:
        """Return the namespaces of `lake`, as their texts."""
        return super().namespaces() if self._remote is None else self._remote.namespaces()

    # ---- writing

    def alter_stream_table(
        self,
        name: TableName,
        *,
        refresh_mode: RefreshMode | None = None,
        schedule: str | None = None,
        clear_schedule: bool = False,
        details: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
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
                options=options,
            )

    def stop(self, name: TableName, code: str, reason: str) -> None:
        """Set a stream table to STOPPED, with the error code and the sentence for it."""
        with self._database.write() as connection:
            _writer.stop(connection, name, code, reason, self._clock.now())

    def record(self, entries: Sequence[HistoryEntry]) -> None:
        """Write history without publishing: failures, and refreshes that found nothing to do."""
        with self._database.write() as connection:
            _writer.record(connection, entries)

    def observe(self, observations: Sequence[Observation]) -> tuple[Version, ...]:
        """Number the heads of sources: the newest version where the head is known, else a new one.

        A rollback to an older snapshot is a new version bound to the old snapshot. Unknown relations become sources.
        When nothing is new this only reads.

        Returns:
            The newest version of each source now, in the order of the observations.
        """
        with self._database.read() as connection:
            known = _observing.observe_known(connection, observations)
        if known is not None:
            return known
        with self._database.write() as connection:
            return _observing.observe(connection, observations, self._clock.now())

    def create_source(self, name: str, kind: str, options: Json, mirrors: Sequence[Mirror]) -> DatabaseSource:
        """Write a new database source, status NEW.

        Raises:
            UserError: `SOURCE_EXISTS`.
        """
        with self._database.write() as connection:
            return _sources.create(connection, name, kind, options, mirrors, self._clock.now())

    def set_source_status(
        self, name: str, status: SourceStatus, code: str | None = None, reason: str | None = None
    ) -> None:
        """Change the life of a database source; code and reason go with STOPPED.

        Raises:
            UserError: `SOURCE_UNKNOWN`.
        """
        with self._database.write() as connection:
            _sources.set_status(connection, name, status, code, reason)

    def note_source_failure(self, name: str, error: HeadraceError) -> None:
        """Remember why a database source was not landed."""
        with self._database.write() as connection:
            _source_health.note_failure(connection, name, error, self._clock.now())

    def end_source_failure(self, name: str) -> None:
        """Remember that a database source is landed again."""
        with self._database.write() as connection:
            _source_health.end_failure(connection, name, self._clock.now())

    def note_node_failures(self, name: str, held: Mapping[str, HeadraceError], over: Sequence[str]) -> None:
        """Remember which nodes of a database source were held back, why, and which are landed again."""
        with self._database.write() as connection:
            _source_health.note_node_failures(connection, name, held, over, self._clock.now())

    def note_source_looks(self, name: str, looks: Sequence[Json]) -> None:
        """Remember looks at a database source's server, oldest first, in place of those before."""
        with self._database.write() as connection:
            _source_health.note_looks(connection, name, looks)

    def pause_source(self, name: str) -> None:
        """Put an active database source on hold.

        Raises:
            UserError: `SOURCE_UNKNOWN`, `SOURCE_NOT_ACTIVE`.
        """
        with self._database.write() as connection:
            _sources.pause(connection, name)

    def resume_source(self, name: str) -> None:
        """End the pause of a database source.

        Raises:
            UserError: `SOURCE_UNKNOWN`, `SOURCE_NOT_PAUSED`.
        """
        with self._database.write() as connection:
            _sources.resume(connection, name)

    # ---- leases

    def acquire(
        self,
        resources: Sequence[str],
        owner: str,
        ttl: dt.timedelta,
        *,
        is_dead: Callable[[str], bool] | None = None,
    ) -> tuple[Lease, ...]:
        """Lease all resources or none; take over expired leases with the next token.

        Args:
            resources: Names from `resource_of`, each once, in any order.
            owner: Identifies this holder; use a new one per process and worker.
            ttl: Time until it expires without a heartbeat.
            is_dead: Whether an owner is known to be gone; its leases are taken over without waiting.

        Raises:
            EnvironmentFault: `LEASE_HELD` (retryable), naming resource and holder.
            UserError: `LAKE_CHANGED`.
        """
        with self._database.write(passing=True) as connection:
            self._home.check(connection)
            return _leases.acquire(connection, resources, owner, ttl, self._lease_time.now(connection), is_dead)

    def heartbeat(self, leases: Sequence[Lease], ttl: dt.timedelta) -> tuple[Lease, ...]:
        """Prolong leases by `ttl` from now; returns them as they are then.

        Raises:
            EnvironmentFault: `LEASE_LOST` when another owner took one over; then none is prolonged.
        """
        with self._database.write(passing=True) as connection:
            return _leases.heartbeat(connection, leases, ttl, self._lease_time.now(connection))

    def release(self, leases: Sequence[Lease]) -> None:
        """Give leases back; those taken over by others are left alone."""
        with self._database.write(passing=True) as connection:
            _leases.release(connection, leases, self._lease_time.now(connection))

    # ---- publishing and recovery

    def publish(self, publication: Publication) -> PublicationRecord:
        """Make a publication visible in one transaction, or change nothing.

        Raises:
            EnvironmentFault: `LEASE_LOST`, `FOREIGN_WRITER`, `DEFINITION_CHANGED`, `PUBLISH_OUTCOME_UNKNOWN`
                (retryable: publish the same object again, or ask `settle(uuid)`), `STAGING_CHANGED`.
            InternalError: `PUBLICATION_INVALID` when a version or a frontier would go back, or nothing is staged.
        """
        if self._remote is not None:
            return self._remote.publish(publication)
        return _publish(self._database, publication, self._clock.now(), check=self._home.check)

    def publish_or_settle(self, publication: Publication) -> PublicationRecord:
        """Publish; after a lost connection, look up the outcome before failing.

        Raises:
            HeadraceError: As `publish`; nothing was published then, or it cannot be found out either.
        """
        try:
            return self.publish(publication)
        except HeadraceError as error:
            settled = self.settle(publication.uuid) if error.code == "PUBLISH_OUTCOME_UNKNOWN" else None
            if settled is None:
                raise
            return settled

    def settle(self, uuid: str) -> PublicationRecord | None:
        """Return the record of a publication of unknown outcome; None if it never happened.

        Waits for a publisher that is still at it, so that None is final: it cannot happen afterwards.
        """
        if self._remote is not None:
            return self._remote.settle(uuid)
        with self._database.write() as connection:
            return _settle(connection, uuid)

    def retired(self, before: dt.datetime) -> tuple[Retired, ...]:
        """Return stored tables unused since before a time, oldest first, to be purged."""
        with self._database.read() as connection:
            return _retired.retired(connection, before)

    def forget(self, gone: Retired) -> None:
        """Forget a retired table: its files are gone."""
        with self._database.write() as connection:
            _retired.forget(connection, gone)

    def reset_staging(
        self, names: Iterable[TableName] | None = None, *, held: Sequence[Lease] = ()
    ) -> tuple[TableName, ...]:
        """Put `staging` pointers back to their `lake` pointers; staging rows without a lake row go.

        So do namespaces in `staging` that are empty then.

        Skips tables under a live lease that is not in `held`, on the stored table itself or on its stream table. What
        was being made for a stream table, and never published, counts as its own.

        Args:
            names: The stored tables; all dirty ones when None.
            held: Leases of the caller.

        Returns:
            The tables (as `lake` names) that were put back.
        """
        names = None if names is None else tuple(names)
        if self._remote is not None:
            self._remote.settle_abandoned()
        with self._database.read() as connection:  # mostly there is none, and writers wait for each other
            if not _pointers.dirty(connection, names) and not (names is None and _namespaces.empty(connection)):
                return ()
        with self._database.write() as connection:
            return _staging.reset_staging(connection, names, held, self._lease_time.now(connection))

    def restore_pointers(self, writes: Sequence[ForeignWrite], *, held: Sequence[Lease]) -> None:
        """Point stored tables at what was published last, whatever somebody else made of them.

        Args:
            writes: What `foreign_writes` found of them; their published files must be readable.
            held: Leases of the caller on what they belong to.

        Raises:
            EnvironmentFault: `LEASE_LOST`; `FOREIGN_WRITER` when one was changed once more.
        """
        if self._remote is not None:
            self._remote.restore(writes, held)
            return
        with self._database.write() as connection:
            _restoring.restore_pointers(connection, writes, held)
