"""Expects the rows of a step after a large change by those of the last large one."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.definitions.table_memory import PerTable, TableMemory
from headrace.names import TableName

MARGIN = 4
"""A step may have so many times more rows than is expected of it."""


class ObservedCardinalities:
    """Rows of a table's steps by number of changed rows; thread-safe.

    Mostly few rows are left of what is joined, grouped or compared with something, however many changed.

    Args:
        memory: Forgets tables that are gone.
    """

    def __init__(self, memory: TableMemory | None = None) -> None:
        self._last = PerTable[Mapping[str, tuple[int, int]]](memory)

    def at_most(self, table: TableName, step: str, changed: int) -> int | None:
        """Return a number of rows that a step will hardly exceed, as if they grew with the change.

        Args:
            table: The stream table.
            step: The step.
            changed: How many rows changed.

        Returns:
            None where nothing is known.
        """
        known = (self._last.get(table) or {}).get(step)
        if known is None:
            return None
        rows, before = known
        return MARGIN * max(rows, 1) * max(changed, before) // max(before, 1)

    def note(self, table: TableName, step: str, changed: int, rows: int) -> None:
        """Remember how many rows a step had in the last refresh.

        Args:
            table: The stream table.
            step: The step.
            changed: How many rows of the sources had changed.
            rows: How many rows the step had.
        """
        self._last.update(table, lambda steps: {**(steps or {}), step: (rows, changed)})
