"""Gates and watermarks, which hold sources back, and pins of sources; a part of `Catalog`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from headrace.catalog.database import Database
from headrace.catalog.safeguards import gates, pins, watermarks
from headrace.catalog.safeguards.gates import Gate
from headrace.clock import Clock
from headrace.names import TableName


class SafeguardCatalog:
    """Gates, watermarks and pins. Every method is one transaction."""

    _database: Database
    _clock: Clock

    def close_gates(self, sources: Sequence[TableName]) -> dict[TableName, Gate]:
        """Hold sources at their newest known versions; already closed gates stay.

        Args:
            sources: Relations that have a version; others are left out.

        Returns:
            All closed gates.
        """
        with self._database.write() as connection:
            gates.close(connection, sources, self._clock.now())
            return gates.read(connection)

    def open_gates(self, sources: Sequence[TableName]) -> None:
        """Hold sources back no longer.

        Raises:
            UserError: `GATE_NOT_CLOSED`; then none is opened.
        """
        with self._database.write() as connection:
            gates.open_(connection, sources)

    # ---- watermarks

    def create_watermark_group(self, name: str, sources: Sequence[TableName], tolerance: dt.timedelta) -> None:
        """Write a watermark group; a source can be in one only.

        Raises:
            UserError: `WATERMARK_GROUP_EXISTS`, `WATERMARK_TAKEN`.
        """
        with self._database.write() as connection:
            watermarks.create(connection, name, sources, tolerance)

    def drop_watermark_group(self, name: str) -> bool:
        """Forget a watermark group; whether there was one."""
        with self._database.write() as connection:
            return watermarks.drop(connection, name)

    def advance_watermark(self, source: TableName, until: dt.datetime) -> None:
        """Say up to which moment a source is complete.

        Raises:
            UserError: `WATERMARK_UNKNOWN`, `WATERMARK_BACKWARDS`.
        """
        with self._database.write() as connection:
            watermarks.advance(connection, source, until, self._clock.now())

    # ---- pins

    def pinned_sources(self) -> dict[TableName, str]:
        """Return sources of which snapshots are pinned, and the marks of the pins."""
        with self._database.read() as connection:
            return pins.read(connection)

    def mark_pinned(self, source: TableName) -> str:
        """Note that snapshots of a source are pinned, before they are; return the mark of the pins."""
        with self._database.write() as connection:
            return pins.mark(connection, source)

    def forget_pinned(self, source: TableName) -> None:
        """Forget that a source was pinned, after its pins are gone."""
        with self._database.write() as connection:
            pins.forget(connection, source)
