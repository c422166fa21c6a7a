"""Installs and removes triggers without keeping writers waiting.

Both need a lock that waits for transactions which have written to the table, and everybody who comes later waits behind
whoever waits for it. So the lock is asked for with a patience of a fraction of a second, again and again.

What a table's installation promises when it has returned: every transaction that is not over yet has all its changes
of the table captured. One that had written before would still hold its lock, and the installation would wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial

import psycopg
from psycopg import sql

from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.triggers import change_tables
from headrace.sources.postgres.triggers.trigger_requirements import change_tables as change_tables_of
from headrace.sources.postgres.triggers.trigger_requirements import (
    described,
    fitness,
    functions,
    strays,
    unsettled_beginnings,
)

BRIEFLY = "200ms"
"""Time for which an attempt may keep others waiting."""

BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
"""Errors that are raised where others hold what is asked for."""

PATIENCE_SECONDS = 60.0
"""Seconds for which a lock is asked for in all, unless the caller says."""
PAUSE_SECONDS = 0.3
"""Between two tries writers go on."""


def patiently(
    connection: Connection,
    work: Callable[[], None],
    patience: float | None = None,
    waiting: Callable[[Connection], None] = lambda _: None,
) -> None:
    """Run something that needs locks in one transaction, in short attempts.

    Args:
        connection: To the server.
        work: Runs inside the transaction, once for each attempt.
        patience: For how many seconds to try; None: `PATIENCE_SECONDS`.
        waiting: Told after an attempt that failed.

    Raises:
        psycopg.errors.LockNotAvailable: Nobody made room in time; nothing was done.
        psycopg.errors.DeadlockDetected: The same.
    """
    until = time.monotonic() + (PATIENCE_SECONDS if patience is None else patience)
    while True:
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = '{BRIEFLY}'")
                work()
            return
        except BUSY:
            # the server may tell a lock's time-out late, as the answer to COMMIT or ROLLBACK, which then did nothing,
            # and the driver keeps that of a ROLLBACK to itself
            connection.rollback()
            if time.monotonic() >= until:
                raise
            waiting(connection)
        time.sleep(PAUSE_SECONDS)


def create_schema(connection: Connection, schema: str) -> None:
    """Make a source's schema, empty."""
    with connection.transaction():
        for statement in change_tables.surroundings(schema):
            connection.execute(statement)


def install(
    connection: Connection,
    schema: str,
    suffix: str,
    table: RemoteTable,
    patience: float | None = None,
    waiting: Callable[[Connection], None] = lambda _: None,
) -> None:
    """Start to capture a table, or restart it with the table's present columns.

    Args:
        connection: The connection.
        schema: The source's schema.
        suffix: Names the change table and the functions.
        table: The table.
        patience: Seconds to wait for others; `PATIENCE_SECONDS` when None.
        waiting: Told while others are waited for.

    Raises:
        EnvironmentFault: `SOURCE_IN_MOTION` when the table was dropped just now.
    """

    def work() -> None:
        fit = fitness(connection, [table.oid])[table.oid]
        held = change_tables.stored_columns(described(connection, table.oid), table)
        for name in strays(connection, schema, suffix, table.oid):
            connection.execute(sql.SQL("DROP FUNCTION {} CASCADE").format(sql.Identifier(schema, name)))
        for statement in (
            *change_tables.keepers(schema, held),
            *change_tables.functions(schema, suffix, table, held),
            *change_tables.triggers(schema, suffix, (table.schema, table.name), fit.owned),
            *(s for p in fit.partitions for s in change_tables.triggers(schema, suffix, p, fit.owned, partition=True)),
            *change_tables.change_table(schema, suffix, held),
        ):
            connection.execute(statement)

    patiently(connection, work, patience, waiting)


def remove(connection: Connection, schema: str, patience: float | None = None) -> None:
    """Drop everything that was installed for a source.

    Args:
        connection: The connection.
        schema: The source's schema.
        patience: Seconds to wait for others, for each table; `PATIENCE_SECONDS` when None.
    """
    names = [sql.SQL("FUNCTION IF EXISTS {}").format(sql.Identifier(schema, f)) for f in functions(connection, schema)]
    for what in (*names, sql.SQL("SCHEMA IF EXISTS {}").format(sql.Identifier(schema))):
        patiently(connection, partial(_drop, connection, what), patience)


def settle_beginnings(connection: Connection, schema: str) -> None:
    """Give functions of a former version the search path that they have now.

    No table's capture is marked by them, so that this is not taken for somebody else's work.

    Args:
        connection: To the server.
        schema: The source's schema there.
    """
    for suffix in unsettled_beginnings(connection, schema):
        for statement in change_tables.beginning(schema, suffix):
            connection.execute(statement)


def withdraw(connection: Connection, schema: str, suffixes: Collection[str]) -> None:
    """Drop functions and change tables of tables that are no longer captured.

    Args:
        connection: To the server.
        schema: The source's schema there.
        suffixes: Suffixes of the tables that stay.
    """
    for kind, found in (
        ("FUNCTION", functions(connection, schema)),
        ("TABLE", [t.name for t in change_tables_of(connection, schema)]),
    ):
        for name in found:
            if name not in (change_tables.EMPTIED, change_tables.LANDINGS) and name.partition("_")[2] not in suffixes:
                what = sql.SQL(kind + " IF EXISTS {}").format(sql.Identifier(schema, name))
                patiently(connection, partial(_drop, connection, what))


def _drop(connection: Connection, what: sql.Composed) -> None:
    connection.execute(sql.SQL("DROP {} CASCADE").format(what))
