"""Deletes landed changes from change tables.

By pages from the first to the last, so that no statement runs long and none reads what another has deleted. What was
deleted takes room until a vacuum has found it: autovacuum is told to come early, and after a large batch we vacuum
ourselves, which also gives back the end of the file. (No TRUNCATE: it would make writers wait.)
"""

from __future__ import annotations

from psycopg import sql

from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.triggers.trigger_requirements import change_tables

PAGES = 4096
"""Pages of which landed rows are deleted at once: 32 MiB."""

VACUUMED = 50_000
"""After so many deleted rows a change table is vacuumed at once."""


def trim_change_tables(connection: Connection, schema: str, snapshot: str) -> None:
    """Delete the changes of the transactions that a snapshot shows.

    Args:
        connection: The connection, not in a transaction.
        schema: The source's schema.
        snapshot: What is published, as text of type `pg_snapshot`.
    """
    connection.execute("SET synchronous_commit = off")  # what a crash brings back is deleted once more
    for table in change_tables(connection, schema):
        name = sql.Identifier(schema, table.name)
        gone = 0
        for page in range(0, table.pages, PAGES):
            statement = sql.SQL("DELETE FROM {} WHERE ctid >= {} AND ctid < {} AND pg_visible_in_snapshot(xid, {})")
            gone += connection.execute(
                statement.format(name, *(sql.Literal(f"({p},0)") for p in (page, page + PAGES)), sql.Literal(snapshot))
            ).rowcount
        if gone >= VACUUMED:
            connection.execute(sql.SQL("VACUUM {}").format(name))
