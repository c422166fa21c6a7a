"""Looks at a lake in a catalog server, and publishes into it.

The protocol: an intent with the whole publication is committed; the publication's transaction writes everything and,
last, has the server move the tables; then it commits, and the intent goes with it. So whatever can be wrong with a
publication is found before anything is shown, and a crash leaves an intent that the tables themselves decide: moved,
and the publication is written once more from the intent; not moved, and the server is made to refuse it for ever.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from sqlalchemy.engine import Connection

from headrace.catalog import own_database
from headrace.catalog.coordination import leases as leasing
from headrace.catalog.database import Database
from headrace.catalog.publishing import pointers, published_pointers, versions
from headrace.catalog.publishing.pointer_changes import PointerChanges, foreign_writer
from headrace.catalog.publishing.pointer_moves import known_pointers, plan_pointers
from headrace.catalog.publishing.pointers import PointerRow, key_of
from headrace.catalog.publishing.publication import Publication, invalid
from headrace.catalog.publishing.publish import Elsewhere, publish
from headrace.catalog.records import ForeignWrite, Lease, PublicationRecord
from headrace.catalog.remote_lake import intents
from headrace.catalog.remote_lake.intents import Intent
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.lakes.lake_server import Key, LakeEntry, LakeMove, LakeServer
from headrace.names import CLOCK, LAKE, STAGING, TableName

_FRESH = 1.0
"""For so many seconds a table of our own is taken to be what it was seen as: who writes to it meanwhile is noticed by
the server when it is moved, and here by the next refresh."""

_TRIES = 3

UNKNOWN = "PUBLISH_OUTCOME_UNKNOWN"


class RemoteLake:
    """A lake in a catalog server, as this database knows it.

    Args:
        database: The catalog's.
        server: Keeps the lake.
        now: Tells the time.
        lease_time: Tells the time by which leases expire, inside a transaction.
        check: Raises an error where the project's tables are in another lake by now.
        refuse: Raises that, too, and one where it belongs to the database that this one is a copy of; looking goes
            on there.
    """

    def __init__(
        self,
        database: Database,
        server: LakeServer,
        now: Callable[[], dt.datetime],
        lease_time: Callable[[Connection], dt.datetime],
        check: Callable[[Connection], None],
        refuse: Callable[[Connection], None],
    ) -> None:
        self._database = database
        self._server = server
        self._now = now
        self._lease_time = lease_time
        self._check = check
        self._refuse = refuse
        self._seen: dict[Key, float] = {}

    # ---- looking

    def look(self, names: Iterable[TableName] | None = None) -> None:
        """Bring the rows of `lake` to what the server shows; those of all tables when None."""
        self.settle_abandoned()
        start = time.monotonic()
        wanted = None if names is None else {key_of(name) for name in names if name != CLOCK}
        with self._database.read() as connection:
            rows = pointers.rows(connection, LAKE, wanted)
            ours = published_pointers.read(connection, wanted or rows)
        keys = self._server.names() | rows.keys() if wanted is None else wanted
        keys = {key for key in keys if key not in ours or start - self._seen.get(key, -_FRESH) >= _FRESH}
        found = self._server.entries(keys) if keys else {}
        differing = {key for key in keys if _differs(rows.get(key), found.get(key))}
        if differing:
            self._take_over({key: (rows.get(key), found.get(key)) for key in differing})
        self._seen |= dict.fromkeys(keys, start)

    def look_at_stored(self) -> None:
        """Look at all tables that Headrace has published."""
        with self._database.read() as connection:
            ours = published_pointers.every(connection)
        self.look(map(pointers.name_of, ours))

    def namespaces(self) -> set[str]:
        """Return the namespaces that the server has."""
        return self._server.namespaces()

    def _take_over(self, differing: Mapping[Key, tuple[PointerRow | None, LakeEntry | None]]) -> None:
        """Write what was seen, except where a publication is under way or another has written."""
        with self._database.write() as connection:
            versions.stand_in_line(connection)
            self._check(connection)
            pending = intents.keys(connection)
            now = pointers.lock(connection, (LAKE,), differing)
            changes = PointerChanges()
            for key, (before, entry) in differing.items():
                row = now.get((LAKE, key))
                if key in pending or row != before:
                    continue
                if entry is None:
                    changes.delete(LAKE, key)
                else:
                    old = row and row.metadata_location
                    kind = "VIEW" if entry.is_view else "TABLE"
                    changes.put(LAKE, key, PointerRow(entry.location, old, kind), replacing=row)
            changes.apply(connection)

    # ---- publishing

    def publish(self, publication: Publication) -> PublicationRecord:
        """Make a publication visible there and here, or nowhere; see `Catalog.publish`."""
        self.settle_abandoned()
        moves = self._intend(publication)
        if isinstance(moves, PublicationRecord):
            return moves
        step = _Step(self._server, publication, moves)
        try:
            record = publish(self._database, publication, self._now(), Elsewhere(step.move), check=self._refuse)
        except HeadraceError as error:
            if step.certain:
                self._forget(publication.uuid)
                raise
            raise _unknown(publication, error) from error
        self._seen |= dict.fromkeys((move.key for move in moves), time.monotonic())
        return record

    def settle(self, uuid: str) -> PublicationRecord | None:
        """Decide a publication of ours whose outcome is not known; see `Catalog.settle`."""
        with self._database.read() as connection:
            found = intents.read(connection, uuid)
        for intent in found:
            self._decide(intent)
        with self._database.write() as connection:
            versions.stand_in_line(connection)
            return versions.publication(connection, uuid)

    def settle_abandoned(self) -> None:
        """Decide publications whose publishers are gone."""
        with self._database.read() as connection:
            found = intents.abandoned(connection, self._lease_time)
            if found and own_database.compare(connection) is not None:
                return  # they are of the project that this is a copy of, which decides them itself
        for intent in found:
            self._decide(intent)

    def _intend(self, publication: Publication) -> tuple[LakeMove, ...] | PublicationRecord:
        """Write the intent; return what becomes of the lake, or the record if it is done."""
        now = self._now()
        with self._database.write() as connection:
            versions.stand_in_line(connection)
            self._refuse(connection)
            if (done := versions.publication(connection, publication.uuid)) is not None:
                return done
            leasing.check(connection, publication.leases)
            planned = plan_pointers(connection, publication, known_pointers(connection, publication), now)
            moves = () if planned is None else planned.lake_moves
            if moves:
                if busy := intents.keys(connection) & {move.key for move in moves}:
                    raise _busy(busy)
                intents.add(connection, publication, moves, self._lease_time(connection))
            return moves

    def _decide(self, intent: Intent) -> None:
        """Confirm a publication that the lake shows; put back one that it does not."""
        publication, moves = intent.publication, intent.moves
        for _ in range(_TRIES):
            if self._server.moved(publication.uuid, moves):
                return self._confirm(intent)
            if (marked := self._server.put_back(publication.uuid, moves)) is not None:
                return self._forget(publication.uuid, marked)
        raise _unknown(publication, None)

    def _confirm(self, intent: Intent) -> None:
        publication, moves = intent.publication, intent.moves

        def complete(connection: Connection, _: Sequence[LakeMove]) -> Mapping[Key, str]:
            intents.remove(connection, publication.uuid)
            return self._server.complete(publication.uuid, moves)

        staged = {move.key: move.after for move in moves if move.after is not None}
        try:
            decided = Elsewhere(complete, staged, decided=True)
            publish(self._database, publication, self._now(), decided, check=self._refuse)
        except HeadraceError as error:
            if not _is_superseded(error):
                raise
            # definitions moved on since: what the lake shows of it is then somebody else's, and repaired as such
            self._forget(publication.uuid)

    def _forget(self, uuid: str, marked: Mapping[Key, str] | None = None) -> None:
        """Remove an intent; what the server marked is still what was published."""
        with self._database.write() as connection:
            versions.stand_in_line(connection)
            intents.remove(connection, uuid)
            if marked:
                rows = pointers.lock(connection, (LAKE, STAGING), marked)
                self._show(connection, marked, rows)

    # ---- repairing

    def restore(self, writes: Sequence[ForeignWrite], held: Sequence[Lease]) -> None:
        """Show what was published last again; see `Catalog.restore_pointers`."""
        moves = [LakeMove(key_of(write.name), write.found, write.published) for write in writes]
        with self._database.write() as connection:
            versions.stand_in_line(connection)
            self._refuse(connection)
            leasing.check(connection, held)
            keys = {move.key for move in moves}
            ours = published_pointers.read(connection, keys)
            rows = pointers.lock(connection, (LAKE, STAGING), keys)
            for move, write in zip(moves, writes, strict=True):
                row = rows.get((LAKE, move.key))
                if ours.get(move.key) != move.after or (row and row.metadata_location) != move.before:
                    raise foreign_writer([write.name], "It was changed once more while it was being repaired.")
            self._show(connection, self._server.restore(moves), rows)

    def _show(
        self, connection: Connection, shown: Mapping[Key, str], rows: Mapping[tuple[str, Key], PointerRow]
    ) -> None:
        """Write the metadata files that the server has made of what is published."""
        changes = PointerChanges()
        for key, location in shown.items():
            for catalog in (LAKE, STAGING):
                old = rows.get((catalog, key))
                row = PointerRow(location, old and old.metadata_location, "TABLE")
                if old != row:
                    changes.put(catalog, key, row, replacing=old)
        changes.apply(connection)
        published_pointers.write(connection, published_pointers.read(connection, shown), shown)


class _Step:
    """The step of a publication that shows it, and what is known of it afterwards."""

    def __init__(self, server: LakeServer, publication: Publication, moves: Collection[LakeMove]) -> None:
        self._server = server
        self._publication = publication
        self._moves = tuple(moves)
        self.certain = True

    def move(self, connection: Connection, moves: Sequence[LakeMove]) -> Mapping[Key, str]:
        """Move the tables; the intent goes with what is committed then."""
        if tuple(moves) != self._moves:
            raise invalid("The pointers have moved between the intent and the publication.")
        intents.remove(connection, self._publication.uuid)
        self.certain = False
        try:
            return self._server.move(self._publication.uuid, moves)
        except HeadraceError as error:
            self.certain = error.code != UNKNOWN
            raise


def _is_superseded(error: HeadraceError) -> bool:
    """Return whether a confirmation can never be written, whoever tries again."""
    if isinstance(error, EnvironmentFault):
        return error.code in ("DEFINITION_CHANGED", "DEPLOYMENT_CHANGED", "FOREIGN_WRITER", "STAGING_CHANGED")
    return not error.code.startswith("LAKE_")


def _differs(row: PointerRow | None, entry: LakeEntry | None) -> bool:
    return (row and row.metadata_location) != (entry and entry.location)


def _busy(keys: Collection[Key]) -> EnvironmentFault:
    names = ", ".join(str(pointers.name_of(key)) for key in sorted(keys))
    return EnvironmentFault(
        "PUBLICATION_PENDING",
        f"Another publication of {names} is under way; nothing was published.",
        detail="Its publisher has not said yet how it ended.",
        hint="Refresh again: it is decided by reading the tables, at the latest when its leases have expired.",
        retryable=True,
    )


def _unknown(publication: Publication, error: HeadraceError | None) -> EnvironmentFault:
    return EnvironmentFault(
        "PUBLISH_OUTCOME_UNKNOWN",
        "The catalog server did not say whether the publication was made; that is not known yet.",
        detail=f"Publication {publication.uuid}: {error.message if error else 'the tables change while they are read'}",
        hint="Refresh again: Headrace reads the tables first, and publishes only what was not.",
        retryable=True,
    )
