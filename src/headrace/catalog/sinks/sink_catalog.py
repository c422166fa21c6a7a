"""Sinks; a part of `Catalog`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from headrace.catalog.coordination.notify import wake
from headrace.catalog.database import Database
from headrace.catalog.records import Json
from headrace.catalog.sinks import sink_rows
from headrace.catalog.sinks.sink_rows import Sink, SinkStatus
from headrace.clock import Clock
from headrace.errors import HeadraceError, UserError
from headrace.names import TableName


class SinkCatalog:
    """Databases that stream tables are written to. Every method is one transaction."""

    _database: Database
    _clock: Clock

    def sinks(self) -> tuple[Sink, ...]:
        """Return all sinks, by name."""
        with self._database.read() as connection:
            return sink_rows.read(connection)

    def sink(self, name: str) -> Sink:
        """Return one sink.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        with self._database.read() as connection:
            return sink_rows.one(connection, name)

    def create_sink(
        self, name: str, uuid: str, kind: str, stream: TableName, options: Json, schedule: str | None
    ) -> Sink:
        """Write a new sink, status NEW.

        Raises:
            UserError: `SINK_EXISTS`.
        """
        with self._database.write() as connection:
            wake(connection)
            return sink_rows.create(connection, name, uuid, kind, stream, options, schedule, self._clock.now())

    def set_sink_schedule(self, name: str, schedule: str | None) -> Sink:
        """Change when a sink is written.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        with self._database.write() as connection:
            return sink_rows.change(connection, name, schedule=schedule)

    def set_sink_options(self, name: str, options: Json) -> Sink:
        """Change how a sink is written.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        with self._database.write() as connection:
            return sink_rows.change(connection, name, options_json=dict(options))

    def pause_sink(self, name: str) -> Sink:
        """Put a sink on hold; its stream table's change log is kept for it.

        Raises:
            UserError: `SINK_UNKNOWN`, `SINK_NOT_ACTIVE`.
        """
        with self._database.write() as connection:
            status = sink_rows.one(connection, name).status
            if status not in (SinkStatus.ACTIVE, SinkStatus.PAUSED):
                raise UserError(
                    "SINK_NOT_ACTIVE",
                    f"Sink {name} cannot be paused; it is {status.value}.",
                    hint="Only a sink that is written can be put on hold; the others are not written anyway.",
                )
            return sink_rows.change(connection, name, status=SinkStatus.PAUSED.value)

    def resume_sink(self, name: str) -> Sink:
        """End a pause, a stop, or a wait for the next try: it is due at once.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        with self._database.write() as connection:
            loaded = sink_rows.one(connection, name).version is not None
            status = SinkStatus.ACTIVE if loaded else SinkStatus.NEW
            stopped = {"stopped_code": None, "stopped_reason": None, "retry_at": None}
            return sink_rows.change(connection, name, status=status.value, **stopped)

    def note_sink_written(
        self, uuid: str, version: int, rows: int, *, anew: bool = False, placement: str | None = None
    ) -> None:
        """Remember which version a target has."""
        with self._database.write(passing=True) as connection:
            sink_rows.note_written(connection, uuid, version, rows, self._clock.now(), anew=anew, placement=placement)

    def note_sink_failure(
        self, name: str, error: HeadraceError, retry_at: Callable[[int], dt.datetime], *, stops: bool
    ) -> None:
        """Remember why a sink was not written, and when to try again, by the number of failures."""
        with self._database.write(passing=True) as connection:
            sink_rows.note_failure(connection, name, error, retry_at, self._clock.now(), stops=stops)

    def drop_sink(self, name: str) -> None:
        """Forget a sink.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        with self._database.write() as connection:
            sink_rows.drop(connection, name)
