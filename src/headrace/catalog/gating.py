"""What holds sources back; a part of `Catalog`."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog import gates
from headrace.catalog.database import Database
from headrace.catalog.gates import Gate
from headrace.clock import Clock
from headrace.names import TableName


class Gating:
    """Gates. Every method is one transaction."""

    _database: Database
    _clock: Clock

    def gates(self) -> dict[TableName, Gate]:
        """The closed gates, by source."""
        with self._database.read() as connection:
            return gates.read(connection)

    def close_gates(self, sources: Sequence[TableName]) -> dict[TableName, Gate]:
        """Hold sources back at their newest known versions, all at once; one that is held back already stays there.

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
