"""Strategies that failed, each left out for a while."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from headrace.definitions.table_memory import PerTable, TableMemory
from headrace.names import TableName
from headrace.statistics.observations import Strategy

Names = tuple[str, ...]

OFF_FOR = 32
"""Refreshes of a stream table in which a failed strategy stays off: by then the rows may be others.

A failure costs about as much as the refresh without the strategy, so that trying again costs 3 % on average.
"""


class FailedStrategies:
    """Counts each table's refreshes since a strategy failed; thread-safe.

    A delete that took along rows that had to stay is undone and another made, which costs as much again: no harm once,
    but in every refresh. What one stream table finds out holds for all that use the same table.

    Args:
        memory: Forgets the counts of tables that are gone.
    """

    def __init__(self, memory: TableMemory | None = None) -> None:
        self._lock = Lock()
        self._refreshes = PerTable[int](memory)
        self._failed: dict[tuple[Strategy, TableName], dict[Names, dict[TableName, int]]] = {}

    def count_refresh(self, table: TableName) -> None:
        """Count a refresh of a stream table; the only way in which failures grow older."""
        with self._lock:
            if self._refreshes.get(table) is None:  # it may be another one of the same name that was counted before
                for failed in self._failed.values():
                    for then in failed.values():
                        then.pop(table, None)
            self._refreshes.update(table, lambda count: (count or 0) + 1)

    def add(self, strategy: Strategy, subject: TableName, names: Names) -> None:
        """Leave a strategy out for the next `OFF_FOR` refreshes of each table that would use it.

        Args:
            strategy: The strategy.
            subject: The table that was read or written.
            names: The columns, or the step, with which it failed.
        """
        with self._lock:
            now = self._refreshes.all()
            self._drop_expired(now)
            self._failed.setdefault((strategy, subject), {})[names] = now

    def off(self, strategy: Strategy, subject: TableName, by: TableName) -> frozenset[Names]:
        """Return the columns or steps for which a stream table must not use a strategy now.

        Args:
            strategy: The strategy.
            subject: The table that is read or written.
            by: The stream table that is refreshed.
        """
        with self._lock:
            failed = self._failed.get((strategy, subject), {})
            count = self._refreshes.get(by) or 0
            return frozenset(names for names, then in failed.items() if _is_off(count, then.get(by, 0)))

    def _drop_expired(self, now: Mapping[TableName, int]) -> None:
        """Forget failures that are off for no table any more."""
        for key, failed in list(self._failed.items()):
            left = {n: then for n, then in failed.items() if any(_is_off(c, then.get(t, 0)) for t, c in now.items())}
            if left:
                self._failed[key] = left
            else:
                del self._failed[key]


def _is_off(count: int, then: int) -> bool:
    return count - then <= OFF_FOR
