"""Keeps values for stream tables until the tables are gone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from headrace.names import TableName

Value = TypeVar("Value")


class TableMemory:
    """Drops what a session keeps for stream tables that are gone.

    Compiled queries, derived programs and statistics are kept by different packages. Each keeps them in a `PerTable`
    of one memory, so that a refresh has one call to make when tables were dropped, here or by another process.
    """

    def __init__(self) -> None:
        self._parts: WeakSet[PerTable[Any]] = WeakSet()

    def keep_only(self, tables: Collection[TableName]) -> None:
        """Drop the values of all other tables."""
        for part in self._parts:
            part.keep_only(tables)

    def per_table(self, part: PerTable[Any]) -> None:
        """Add a part, whose values `keep_only` forgets from now on."""
        self._parts.add(part)


class PerTable(Generic[Value]):
    """Keeps one value for each stream table; safe to use from several threads.

    Args:
        memory: Tells it which tables are gone; None where its owner lives no longer than they do.
    """

    def __init__(self, memory: TableMemory | None = None) -> None:
        self._lock = Lock()
        self._values: dict[TableName, Value] = {}
        if memory is not None:
            memory.per_table(self)

    def get(self, table: TableName) -> Value | None:
        """Return the value of a table; None without one."""
        with self._lock:
            return self._values.get(table)

    def put(self, table: TableName, value: Value) -> None:
        """Set the value of a table."""
        with self._lock:
            self._values[table] = value

    def update(self, table: TableName, change: Callable[[Value | None], Value]) -> None:
        """Set the value of a table by its present one, in one step.

        Args:
            table: The table.
            change: Gives the new value; called under the lock, with None where there is no value.
        """
        with self._lock:
            self._values[table] = change(self._values.get(table))

    def all(self) -> dict[TableName, Value]:
        """Return a copy of the values of all tables."""
        with self._lock:
            return dict(self._values)

    def keep_only(self, tables: Collection[TableName]) -> None:
        """Forget the values of other tables than these."""
        with self._lock:
            for name in self._values.keys() - tables:
                del self._values[name]
