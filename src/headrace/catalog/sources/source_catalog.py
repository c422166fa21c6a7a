"""Database sources; a part of `Catalog`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headrace.catalog.database import Database
from headrace.catalog.records import Json
from headrace.catalog.sources import database_sources, source_health
from headrace.catalog.sources.database_sources import DatabaseSource, Mirror, SourceStatus
from headrace.clock import Clock
from headrace.errors import HeadraceError


class SourceCatalog:
    """Databases that are landed in mirrors. Every method is one transaction."""

    _database: Database
    _clock: Clock

    def source(self, name: str) -> DatabaseSource:
        """Return one database source.

        Raises:
            UserError: `SOURCE_UNKNOWN`.
        """
        with self._database.read() as connection:
            return database_sources.one(connection, name)

    def create_source(self, name: str, kind: str, options: Json, mirrors: Sequence[Mirror]) -> DatabaseSource:
        """Write a new database source, status NEW.

        Raises:
            UserError: `SOURCE_EXISTS`.
        """
        with self._database.write() as connection:
            return database_sources.create(connection, name, kind, options, mirrors, self._clock.now())

    def set_source_status(
        self, name: str, status: SourceStatus, code: str | None = None, reason: str | None = None
    ) -> None:
        """Change the life of a database source; code and reason go with STOPPED.

        Raises:
            UserError: `SOURCE_UNKNOWN`.
        """
        with self._database.write() as connection:
            database_sources.set_status(connection, name, status, code, reason)

    def note_source_failure(self, name: str, error: HeadraceError) -> None:
        """Remember why a database source was not landed."""
        with self._database.write() as connection:
            source_health.note_failure(connection, name, error, self._clock.now())

    def end_source_failure(self, name: str) -> None:
        """Remember that a database source is landed again."""
        with self._database.write() as connection:
            source_health.end_failure(connection, name, self._clock.now())

    def note_node_failures(self, name: str, held: Mapping[str, HeadraceError], over: Sequence[str]) -> None:
        """Remember which nodes of a database source were held back, why, and which are landed again."""
        with self._database.write() as connection:
            source_health.note_node_failures(connection, name, held, over, self._clock.now())

    def note_source_looks(self, name: str, looks: Sequence[Json]) -> None:
        """Remember looks at a database source's server, oldest first, in place of those before."""
        with self._database.write() as connection:
            source_health.note_looks(connection, name, looks)

    def note_source_captures(self, name: str, noted: Mapping[str, Json], over: Collection[str] = ()) -> None:
        """Remember what is to be installed on servers, or removed there, and forget what is over."""
        with self._database.write() as connection:
            source_health.note_captures(connection, name, noted, over)

    def pause_source(self, name: str) -> None:
        """Put an active database source on hold.

        Raises:
            UserError: `SOURCE_UNKNOWN`, `SOURCE_NOT_ACTIVE`.
        """
        with self._database.write() as connection:
            database_sources.pause(connection, name)

    def resume_source(self, name: str) -> None:
        """End the pause of a database source.

        Raises:
            UserError: `SOURCE_UNKNOWN`, `SOURCE_NOT_PAUSED`.
        """
        with self._database.write() as connection:
            database_sources.resume(connection, name)
