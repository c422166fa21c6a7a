"""Keeps all stream tables as they were read last, for as long as none of them has changed.

A refresh or a scheduler looks at all of them time and again, and they hardly ever change: to read ten thousand from the
database takes longer than many a refresh.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from headrace.catalog import definition_changes
from headrace.catalog.definitions.stream_tables import (
    ReadStream,
    in_order,
    read_rows,
    read_streams,
    row_ids,
    states,
)
from headrace.catalog.records import StreamTable
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class _Known:
    """All stream tables as they were read.

    Args:
        state: The name of the state that all were in together.
        states: The names of the states that each was in.
        read: By id, in the order of their names.
        tables: The same without ids.
        by_name: The same by name.
    """

    state: str | None
    states: frozenset[str] = frozenset()
    read: Mapping[int, ReadStream] = field(default_factory=dict)
    tables: tuple[StreamTable, ...] = ()
    by_name: Mapping[TableName, StreamTable] = field(default_factory=dict)

    def again(self, connection: Connection, state: str | None) -> _Known:
        """Return all as they are now: only those are read that are in another state than they were.

        Where many are loaded for the first time one after the other, this happens for each of them.
        """
        found = states(connection)
        other = found - self.states
        named = found - {one for one in other if one.endswith(":")}  # written by hand: read each time
        new, old = row_ids(other), row_ids(self.states - found)
        read = read_rows(connection, new)
        if new == old and len(found) == len(self.read) and all(self.read[i].name == read[i].name for i in new):
            by_name = {**self.by_name, **{one.table.name: one.table for one in read.values()}}
            read = {**self.read, **read}  # which keeps the order
        else:
            there = row_ids(found)
            read = in_order({i: one for i, one in self.read.items() if i in there} | read)
            by_name = {one.table.name: one.table for one in read.values()}
        return _Known(state, named, read, tuple(one.table for one in read.values()), by_name)


class KnownDefinitions:
    """All stream tables of a catalog, as they were read last; several threads may use it."""

    def __init__(self) -> None:
        self._known = _Known(None)
        self._reads = threading.Lock()

    def all(self, connection: Connection) -> tuple[StreamTable, ...]:
        """Return all stream tables, by name.

        Args:
            connection: Inside a transaction in which every query sees the same state.
        """
        state = definition_changes.state(connection)
        known = self._known
        if state is not None and known.state == state:
            return known.tables
        with self._reads:  # or each thread of several would read all of them, at the same time
            known = self._known
            if state is None or known.state != state:
                self._known = known = known.again(connection, state)
            return known.tables

    def one(self, connection: Connection, name: TableName) -> StreamTable | None:
        """Return the stream table of a name, if there is one; arguments as for `all`."""
        known = self._known
        if known.state == definition_changes.state(connection) is not None:
            return known.by_name.get(name)
        return next(iter(read_streams(connection, name)), None)
