"""`Catalog`: readers, writers, leases and publishing behind one object."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from sqlalchemy.engine import Connection

from headrace.catalog.coordination import leases as _leases
from headrace.catalog.coordination.lease_time import LeaseTime
from headrace.catalog.coordination.scheduler_catalog import SchedulerCatalog
from headrace.catalog.database import BUSY_TIMEOUT, Database, parse_url
from headrace.catalog.definitions import definition_writer as _writer
from headrace.catalog.definitions.deployment_catalog import DeploymentCatalog
from headrace.catalog.definitions.key_catalog import KeyCatalog
from headrace.catalog.opening import prepare
from headrace.catalog.own_database import OwnDatabase
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
    Lease,
    Observation,
    PublicationRecord,
    RefreshMode,
    Retired,
    StreamTable,
    Version,
)
from headrace.catalog.remote_lake.home import LakeHome
from headrace.catalog.remote_lake.lake_catalog import LakeCatalog
from headrace.catalog.remote_lake.remote_lake import RemoteLake
from headrace.catalog.safeguards.safeguard_catalog import SafeguardCatalog
from headrace.catalog.sinks.sink_catalog import SinkCatalog
from headrace.catalog.sources.source_catalog import SourceCatalog
from headrace.catalog.state import observed_heads as _observing
from headrace.catalog.state import old_history as _old_history
from headrace.catalog.state import old_versions as _old_versions
from headrace.clock import Clock, SystemClock
from headrace.errors import HeadraceError, UserError
from headrace.events import Events
from headrace.lakes.lake_server import LakeServer
from headrace.names import TableName


class Catalog(
    LakeCatalog, SourceCatalog, SchedulerCatalog, SafeguardCatalog, KeyCatalog, DeploymentCatalog, SinkCatalog
):
    """The durable truth of one project; safe to use from several threads.

    Every method is one transaction. Use `reading()` where several answers must agree with each other.
    Any method may raise `EnvironmentFault`: `CATALOG_LOCKED` (retryable), `CATALOG_UNREACHABLE`, `CATALOG_CORRUPT`,
    `CATALOG_READ_ONLY`, `DISK_FULL`.
    """

    def __init__(self, database: Database, clock: Clock, lake: LakeServer | None = None) -> None:
        super().__init__(database, LeaseTime(clock))
        self._clock = clock
        self._own = OwnDatabase(database)
        self._home, self._server = LakeHome(database), lake
        times = (clock.now, self._lease_time.now)
        self._remote = None if lake is None else RemoteLake(database, lake, *times, self._home.check, self._check)

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
            UserError: `LAKE_CHANGED`, `CATALOG_COPIED`.
        """
        with self._database.write(passing=True) as connection:
            self._own.settle(connection)
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

    def refuse_copy(self) -> None:
        """Refuse to work on what belongs to the database that this one is a copy of.

        Raises:
            UserError: `CATALOG_COPIED`.
        """
        self._own.refuse()

    def copied(self) -> UserError | None:
        """Return the error for a database that is not the project's own; else None.

        Its own is the one that it was made or last confirmed in.
        """
        return self._own.copied()

    def confirm_database(self, *, dry_run: bool = False) -> tuple[str | None, str | None]:
        """Have the database that this catalog is in be the project's own from now on.

        Args:
            dry_run: Change nothing.

        Returns:
            The former one and this one; None where that is not known.
        """
        return self._own.confirm(dry_run=dry_run)

    def _check(self, connection: Connection) -> None:
        """Refuse to publish where the project is not this one's any more."""
        self._own.check(connection)
        self._home.check(connection)

    # ---- publishing and recovery

    def publish(self, publication: Publication) -> PublicationRecord:
        """Make a publication visible in one transaction, or change nothing.

        Raises:
            EnvironmentFault: `LEASE_LOST`, `FOREIGN_WRITER`, `DEFINITION_CHANGED`, `PUBLISH_OUTCOME_UNKNOWN`
                (retryable: publish the same object again, or ask `settle(uuid)`), `STAGING_CHANGED`.
            UserError: `LAKE_CHANGED`, `CATALOG_COPIED`.
            InternalError: `PUBLICATION_INVALID` when a version or a frontier would go back, or nothing is staged.
        """
        if self._remote is not None:
            return self._remote.publish(publication)
        return _publish(self._database, publication, self._clock.now(), check=self._check)

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

    def forget_history(self, before: dt.datetime, *, dry_run: bool = False) -> int:
        """Forget refreshes that ended before a time, but for the newest of each stream table.

        Args:
            before: The time.
            dry_run: Only count them.

        Returns:
            How many.
        """
        return _old_history.forget(self._database, before, dry_run=dry_run)

    def forget_versions(self, before: dt.datetime, *, dry_run: bool = False) -> int:
        """Forget versions that were superseded before a time, up to the first that is needed.

        Publications that made them, or that left nothing, are forgotten with them.

        Args:
            before: The time.
            dry_run: Only count them.

        Returns:
            How many versions.
        """
        return _old_versions.forget(self._database, before, dry_run=dry_run)

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

    def withdraw_pointers(self, names: Iterable[TableName], *, held: Sequence[Lease]) -> bool:
        """Point stored tables of which files are lost at nothing, as if somebody had dropped them.

        Whatever makes them anew then finds nothing that it would have to read. Maintenance removes what is left of
        their files.

        Args:
            names: The stored tables.
            held: Leases of the caller on what they belong to.

        Returns:
            False where the lake is in another server, which alone can take tables away; nothing was done then.

        Raises:
            EnvironmentFault: `LEASE_LOST`.
        """
        if self._remote is not None:
            return False
        with self._database.write() as connection:
            _restoring.withdraw_pointers(connection, names, held, self.now())
        return True
