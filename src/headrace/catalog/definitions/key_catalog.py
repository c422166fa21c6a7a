"""Declared keys of sources; a part of `Catalog`."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog.database import Database
from headrace.catalog.definitions import declared_keys as keys
from headrace.catalog.definitions.declared_keys import DeclaredKey
from headrace.clock import Clock
from headrace.names import TableName


class KeyCatalog:
    """Declared keys. Every method is one transaction."""

    _database: Database
    _clock: Clock

    def declared_keys(self) -> tuple[DeclaredKey, ...]:
        """Return all declared keys."""
        with self._database.read() as connection:
            return keys.read(connection)

    def declare_key(self, source: TableName, columns: Sequence[str]) -> None:
        """Write down that no two rows of a source agree in some columns; again does nothing."""
        with self._database.write() as connection:
            keys.declare(connection, source, columns, self._clock.now())

    def drop_key(self, source: TableName, columns: Sequence[str]) -> None:
        """Forget a key.

        Raises:
            UserError: `KEY_NOT_DECLARED`.
        """
        with self._database.write() as connection:
            keys.drop(connection, source, columns)
