"""Row filters for triggers: parsed by the server, and used as the server writes them back.

The condition becomes the predicate of an index on an empty table that is rolled back at once. So the server asks of it
what it asks of row filters of publications: that it is of the row alone, and always the same. It comes back with its
constants typed, and in the names that columns have now. What is not built in is refused, as publications do: triggers
evaluate conditions with the rights of their owner, whoever writes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from psycopg import sql

from headrace.errors import UserError
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.setup.projection import check_syntax, condition, reading

_STRANGE = """
SELECT EXISTS (SELECT FROM pg_depend d LEFT JOIN pg_attribute a ON d.refclassid = 'pg_class'::regclass
        AND a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
        AND (d.refclassid <> 'pg_class'::regclass OR a.atttypid >= 16384)),
    pg_get_expr(i.indpred, i.indrelid)
FROM pg_index i WHERE i.indrelid = %s::regclass
"""
"""Tells whether an index depends on anything that is not built in, and reads its condition.

PostgreSQL notes no dependency on what is built in, which is pinned; objects of users have oids from 16384 on.
"""


def as_read(connection: Connection, table: RemoteTable, former: Mapping[int, str]) -> RemoteTable:
    """Return a table with its condition as the server reads it.

    Args:
        connection: A connection, not in a transaction.
        table: The table; its condition uses its captured columns.
        former: The names that columns have in the condition, by number; the others have those of now.

    Raises:
        UserError: `SOURCE_FILTER_INVALID`.
    """
    if table.filter is None:
        return table
    schema = f"headrace_tmp_{uuid.uuid4().hex[:12]}"
    probe = sql.Identifier(schema, "probe")
    before = {c.name: former.get(c.number, c.name) for c in table.columns}
    shown = (sql.SQL("{} AS {}").format(*map(sql.Identifier, (now, old))) for now, old in before.items())
    with reading(table), connection.transaction(force_rollback=True):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(
            sql.SQL("CREATE TABLE {} AS SELECT {} FROM {} WITH NO DATA").format(
                probe, sql.SQL(", ").join(shown), sql.Identifier(table.schema, table.name)
            )
        )
        check_syntax(connection, RemoteTable(0, schema, "probe", "f", (), (), filter=table.filter), table)
        index = sql.SQL("CREATE INDEX ON {} ((1)) WHERE {}").format(probe, condition(table))
        connection.execute(index, prepare=True)
        _rename(connection, probe, {old: f"__hr_{number}" for number, old in enumerate(before.values())})
        _rename(connection, probe, {f"__hr_{number}": now for number, now in enumerate(before)})
        row = connection.execute(_STRANGE, (probe.as_string(None),)).fetchone()
        assert row is not None, "the index is there"
        strange, text = row
    if strange:
        raise UserError(
            "SOURCE_FILTER_INVALID",
            f"The condition on {table} uses functions, operators or types that are not PostgreSQL's own.",
            hint="Use columns of built-in types, constants, and built-in functions and operators.",
        )
    return replace(table, filter=str(text))


def _rename(connection: Connection, table: sql.Identifier, names: Mapping[str, str]) -> None:
    for old, new in names.items():
        statement = sql.SQL("ALTER TABLE {} RENAME COLUMN {} TO {}")
        connection.execute(statement.format(table, sql.Identifier(old), sql.Identifier(new)))
