"""What has been learnt of the columns by which a table's rows are looked for."""

from __future__ import annotations

from threading import Lock

from headrace.names import TableName

Names = tuple[str, ...]
"""Columns by name."""

FORGOTTEN_AFTER = 32
"""After so many changes of a table, columns that did not do are tried again: its rows may be others by then."""


class FailedStrategies:
    """Columns by which too many rows were found; kept for a session, safe to use from several threads.

    A delete that took along rows that had to stay is undone and another made, which costs as much again: no harm once,
    but in every refresh. So it is with rows near a change that are most of a table.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._barred: dict[TableName, dict[Names, int]] = {}
        self._asked: dict[TableName, str] = {}

    def barred(self, table: TableName, at: str | None = None) -> frozenset[Names]:
        """What a change of a table is not to try.

        Args:
            table: The table.
            at: What tells this change from the next one, for which others may ask as well; each counts once. None where
                nobody else asks.
        """
        with self._lock:
            if at is not None:
                if self._asked.get(table) == at:
                    return frozenset(self._barred.get(table, {}))
                self._asked[table] = at
            left = {columns: turns - 1 for columns, turns in self._barred.get(table, {}).items() if turns > 0}
            self._barred[table] = left
            return frozenset(left)

    def failed(self, table: TableName, columns: Names) -> None:
        """Remember that columns did not tell the rows of a table apart.

        Args:
            table: The table.
            columns: The columns.
        """
        with self._lock:
            self._barred.setdefault(table, {})[columns] = FORGOTTEN_AFTER
