"""Tables that Headrace made follow the columns of their stream tables at a resync."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from headrace.algebra.schema import Column
from headrace.sinks.postgres.column_types import postgres_type
from headrace.sinks.postgres.target_connection import Connection

_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""


def reshape(connection: Connection, schema: str, name: str, columns: Sequence[Column]) -> None:
    """Give a table the columns that a stream table has; those of another type are made anew.

    What depends on a column that goes (a view, an index) is the server's to refuse.
    """
    table = sql.Identifier(schema, name)
    found = connection.execute(_COLUMNS, (table.as_string(connection),)).fetchall()
    there = {str(row[0]): str(row[1]) for row in found}
    if not there:
        return
    wanted = {c.name: postgres_type(c) for c in columns}
    for column in (c for c, type_ in there.items() if wanted.get(c) != type_):
        connection.execute(sql.SQL("ALTER TABLE {} DROP COLUMN {}").format(table, sql.Identifier(column)))
    for column, type_ in wanted.items():
        if there.get(column) != type_:
            statement = sql.SQL("ALTER TABLE {} ADD COLUMN {} {}")
            connection.execute(statement.format(table, sql.Identifier(column), sql.SQL(type_)))
