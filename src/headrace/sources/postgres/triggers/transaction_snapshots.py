"""Positions of capture by triggers: snapshots, which show the transactions that are over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import sql

from headrace.sources.postgres.connection import Connection, lost


@contextmanager
def moment(connection: Connection, locked: Sequence[sql.Identifier] = (), snapshot: str | None = None) -> Iterator[str]:
    """Open a transaction as of one moment; yield its snapshot as text.

    Args:
        connection: The connection.
        locked: Tables that cannot be emptied or dropped meanwhile: a TRUNCATE is seen at once by everybody, whatever
            their snapshot. They are locked before the snapshot is taken.
        snapshot: An exported snapshot to be used; a new one when None.

    Raises:
        psycopg.errors.UndefinedTable: One of `locked` does not exist.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        if snapshot is not None:
            show(connection, snapshot)
        if locked:
            connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(sql.SQL(", ").join(locked)))
        yield one(connection, "SELECT pg_current_snapshot()::text")


def show(connection: Connection, snapshot: str) -> None:
    """Make a transaction that has just begun see what an exported snapshot sees.

    Args:
        connection: In the transaction.
        snapshot: The exported snapshot's name.

    Raises:
        EnvironmentFault: `SOURCE_LOST`: the connection that exported it is gone, and the snapshot with it.
    """
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
    except (
        psycopg.errors.UndefinedObject,
        psycopg.errors.InvalidParameterValue,  # what servers before 16 call it
        psycopg.errors.ObjectNotInPrerequisiteState,
    ) as error:
        raise lost(error) from error


def export(connection: Connection) -> str:
    """Let other transactions have the snapshot of this one, as long as it lasts."""
    return one(connection, "SELECT pg_export_snapshot()")


def one(connection: Connection, query: str) -> str:
    """Return the single value that a query gives, as text."""
    row = connection.execute(query).fetchone()
    assert row is not None, "a query without FROM has one row"
    return str(row[0])


def next_of(snapshot: str) -> int:
    """Return the first transaction id not yet assigned when a snapshot was taken."""
    return int(snapshot.split(":")[1])
