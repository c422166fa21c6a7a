"""How many rows the steps of large changes had, by which the next ones are expected."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock

from headrace.names import TableName

SURELY = 4
"""A step may have so many times more rows than is expected of it."""


class ObservedCardinalities:
    """Rows of a stream table's steps, beside how many rows had changed; kept for a session, safe to use from threads.

    Of what is joined, grouped or compared with something, mostly few rows are left however many changed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: dict[TableName, dict[str, tuple[int, int]]] = {}

    def at_most(self, table: TableName, step: str, changed: int) -> int | None:
        """How many rows a step will surely not exceed, as if they grew with the change; None where nothing is known.

        Args:
            table: The stream table.
            step: The step.
            changed: How many rows changed.
        """
        with self._lock:
            known = self._last.get(table, {}).get(step)
        if known is None:
            return None
        rows, before = known
        return SURELY * max(rows, 1) * max(changed, before) // max(before, 1)

    def note(self, table: TableName, step: str, changed: int, rows: int) -> None:
        """Remember how many rows a step had; arguments as above."""
        with self._lock:
            self._last.setdefault(table, {})[step] = (rows, changed)

    def only(self, there: Collection[TableName]) -> None:
        """Forget tables that are gone.

        Args:
            there: Those that are not.
        """
        with self._lock:
            for name in self._last.keys() - there:
                del self._last[name]
