"""A transaction in a sink's database, with several sinks in it where they belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.algebra.schema import Column
from headrace.errors import UserError
from headrace.sinks.postgres import cluster_transactions, position_table
from headrace.sinks.postgres.cluster_rows import row_sets
from headrace.sinks.postgres.deliver import deliver, undo_load
from headrace.sinks.postgres.target_connection import Connection, connected, faults
from headrace.sinks.postgres.target_table import find_table
from headrace.sinks.sink_kind import Compared, Delivery, Json, Position, Rows, Told, Written

EXAMPLES = 5
"""Rows that a comparison shows."""


@contextmanager
def transaction(url: str) -> Iterator[Connection]:
    """Open a transaction, committed at the end of the block."""
    with connected(url) as connection, connection.transaction():
        cluster_transactions.prepare(connection)
        position_table.prepare(connection)
        yield connection


class TargetTransaction:
    """See `Target`.

    Args:
        connection: Inside a transaction.
        told: Told how far deliveries are.
    """

    def __init__(self, connection: Connection, told: Told) -> None:
        self._connection = connection
        self._told = told
        self._number = 0

    def position(self, sink: str) -> Position | None:
        """Return a sink's position, locked against everybody else who writes."""
        with faults():
            kept = position_table.locked(self._connection, sink)
        self._told("locked")
        return None if kept is None else Position(kept.version, kept.rows, kept.log)

    def deliver(self, options: Json, delivery: Delivery) -> Written:
        """Write what a sink lacks, and its new position."""
        self._number += 1
        with faults():
            kept = position_table.locked(self._connection, delivery.sink)
            return deliver(self._connection, options, delivery, kept, self._number, self._told)

    def compare(self, options: Json, columns: Sequence[Column], rows: Rows) -> Compared:
        """Compare a sink's table with rows."""
        self._number += 1
        of: dict[str, Any] = dict(options)
        schema, name = of["table"]
        with faults():
            table = find_table(self._connection, schema, name, columns, ())
            if table is None:
                raise UserError(
                    "SINK_TARGET_CHANGED",
                    f"{schema}.{name}, the target of the sink, is gone.",
                    hint="`headrace sink resync` makes it again.",
                )
            if table.placement.is_in_cluster:
                cluster_transactions.wait_until_done(self._connection)
            sets = row_sets(self._connection, table, self._number)
            sets.load_rows(rows())
            there, wanted, missing, unexpected, examples = sets.compare(EXAMPLES)
        return Compared(there[0], there[1], wanted[0], wanted[1], missing, unexpected, examples)

    def undo_load(self, options: Json, sink: str) -> None:
        """Take back a sink's first load, if it was committed."""
        with faults():
            kept = position_table.locked(self._connection, sink)
            if kept is not None:
                undo_load(self._connection, options, kept)
                position_table.forget(self._connection, sink)

    def forget(self, sink: str) -> None:
        """Forget a sink's position; the rows stay."""
        with faults():
            position_table.forget(self._connection, sink)
