"""Tables that Headrace made follow columns of stream tables, and PLACEMENT, at a resync."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from headrace.algebra.schema import Column
from headrace.sinks.postgres.cluster_transactions import wait_until_done
from headrace.sinks.postgres.column_types import postgres_type, widens
from headrace.sinks.postgres.placement import (
    REFERENCE,
    ROW_ID,
    Placement,
    RequestedPlacement,
    fits,
    placement_of,
    put,
    take_back,
)
from headrace.sinks.postgres.target_connection import Connection
from headrace.sinks.postgres.target_table import make_unique

_OID = "SELECT to_regclass(%s)::oid::bigint"

_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""

_DROPPED = "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attisdropped)"


def remake(
    connection: Connection,
    schema: str,
    name: str,
    columns: Sequence[Column],
    key: Sequence[str],
    plan: Placement,
    request: RequestedPlacement,
) -> bool:
    """Give a table the columns that a stream table has, and put it where it is to be.

    Args:
        connection: Inside a transaction.
        schema: Its schema.
        name: Its name.
        columns: The stream table's columns.
        key: The sink's key, by names of these in whatever case.
        plan: Where its rows are to be.
        request: What the sink says of that.

    Returns:
        Whether it was emptied for that: so it is where Citus moves rows, where it has other columns there, and where a
        column of the key is made anew.
    """
    table = sql.Identifier(schema, name)
    full = table.as_string(connection)
    row = connection.execute(_OID, (full,)).fetchone()
    if row is None or row[0] is None:
        return False
    now = placement_of(connection, int(str(row[0])))
    wanted = {c.name: postgres_type(c) for c in columns} | ({ROW_ID: "bigint"} if plan.column == ROW_ID else {})
    if not (now.is_in_cluster or plan.is_in_cluster):
        return _reshape(connection, table, wanted, key)
    if fits(now, plan) and _columns(connection, full) == wanted:
        return False
    if now.is_in_cluster:
        wait_until_done(connection)
    connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(table))
    connection.execute(sql.SQL("TRUNCATE {}").format(table))
    if now.is_in_cluster:
        take_back(connection, table)
    _reshape(connection, table, wanted, key)
    if plan.is_in_cluster and connection.execute(_DROPPED, (full,)).fetchone() == (True,):
        put(connection, table, Placement(REFERENCE), request)  # a table that is made anew has no dropped columns,
        take_back(connection, table)  # at which Citus' decoder fails: citusdata/citus#8844
    put(connection, table, plan, request)
    return True


def _columns(connection: Connection, full: str) -> dict[str, str]:
    found = connection.execute(_COLUMNS, (full,)).fetchall()
    return {str(row[0]): str(row[1]) for row in found}


def _reshape(connection: Connection, table: sql.Identifier, wanted: dict[str, str], key: Sequence[str]) -> bool:
    """Give a table columns; one whose type does not take the values that it has is made anew.

    An index goes with a column, so that a key is made unique again; over an empty table, as a new column has the same
    in each row. What depends on a column that goes otherwise (a view, a foreign key) is the server's to refuse.

    Returns:
        Whether the table was emptied.
    """
    there = _columns(connection, table.as_string(connection))
    for column, type_ in wanted.items():
        if column in there and widens(there[column], type_):
            statement = sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {}")
            connection.execute(statement.format(table, sql.Identifier(column), sql.SQL(type_)))
            there[column] = type_
    new = [column for column, type_ in wanted.items() if there.get(column) != type_]
    unique = [next(column for column in wanted if column.lower() == k.lower()) for k in key]
    emptied = not set(unique).isdisjoint(new)
    if emptied:
        connection.execute(sql.SQL("TRUNCATE {}").format(table))
    for column in (c for c, type_ in there.items() if wanted.get(c) != type_):
        connection.execute(sql.SQL("ALTER TABLE {} DROP COLUMN {}").format(table, sql.Identifier(column)))
    for column in new:
        statement = sql.SQL("ALTER TABLE {} ADD COLUMN {} {}")
        connection.execute(statement.format(table, sql.Identifier(column), sql.SQL(wanted[column])))
        if column == ROW_ID:
            statement = sql.SQL("ALTER TABLE {0} ALTER COLUMN {1} SET NOT NULL; CREATE INDEX ON {0} ({1})")
            connection.execute(statement.format(table, sql.Identifier(column)))
    if emptied:
        make_unique(connection, table, unique)
    return emptied
