"""Keeps all stream tables as they were read last, for as long as none of them has changed.

A refresh or a scheduler looks at all of them time and again, and they hardly ever change: to read ten thousand from the
database takes longer than many a refresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from headrace.catalog import definition_changes
from headrace.catalog.definitions.stream_tables import ReadStream, read_again, read_streams
from headrace.catalog.records import StreamTable
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class _Known:
    state: str | None
    read: Mapping[int, ReadStream]
    tables: tuple[StreamTable, ...]
    by_name: Mapping[TableName, StreamTable]


class KnownDefinitions:
    """All stream tables of a catalog, as they were read last; several threads may use it."""

    def __init__(self) -> None:
        self._known: _Known | None = None

    def all(self, connection: Connection) -> tuple[StreamTable, ...]:
        """Return all stream tables, by name.

        Args:
            connection: Inside a transaction in which every query sees the same state.
        """
        state = definition_changes.state(connection)
        known = self._known
        if known is None or state is None or known.state != state:
            read = read_again(connection, {} if known is None else known.read)
            tables = tuple(one.table for one in read.values())
            self._known = known = _Known(state, read, tables, {table.name: table for table in tables})
        return known.tables

    def one(self, connection: Connection, name: TableName) -> StreamTable | None:
        """Return the stream table of a name, if there is one; arguments as for `all`."""
        known = self._known
        if known is not None and known.state == definition_changes.state(connection) is not None:
            return known.by_name.get(name)
        return next(iter(read_streams(connection, name)), None)
