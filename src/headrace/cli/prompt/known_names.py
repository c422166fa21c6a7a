"""Names of tables and columns, for completion: as they are now, without a look at every key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.api.facade import Headrace

FRESH_SECONDS = 2.0
"""For how long names are taken for true; others may create tables, too."""


class KnownNames:
    """Names of a project, remembered for a moment.

    Args:
        hr: The open project.
        clock: The time, in seconds.
    """

    def __init__(self, hr: Headrace, clock: Callable[[], float] = time.monotonic) -> None:
        self._hr = hr
        self._clock = clock
        self._until = 0.0
        self._tables: tuple[str, ...] = ()
        self._columns: dict[str, tuple[str, ...]] = {}

    def forget(self) -> None:
        """Look again, next time: a statement was run."""
        self._until = 0.0

    def tables(self) -> tuple[str, ...]:
        """Return the names of tables and views; those of before if the catalog does not answer."""
        if self._clock() >= self._until:
            self._columns.clear()
            self._until = self._clock() + FRESH_SECONDS
            try:
                self._tables = self._hr.relations()
            except Exception:  # whoever completes must not be told what is wrong
                return self._tables
        return self._tables

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns; none if there is no such table."""
        self.tables()
        if table not in self._columns:
            try:
                self._columns[table] = self._hr.columns(table)
            except Exception:  # no name, no table, no files
                self._columns[table] = ()
        return self._columns[table]
