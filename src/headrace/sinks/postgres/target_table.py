"""The table that a sink writes: how it must be, and how one is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault, UserError
from headrace.names import split_dotted
from headrace.sinks.postgres.column_types import postgres_type, takes
from headrace.sinks.postgres.target_connection import Connection

KINDS = {
    "v": "a view",
    "m": "a materialized view",
    "p": "a partitioned table",
    "f": "a foreign table",
    "S": "a sequence",
    "c": "a composite type",
}
"""By `pg_class.relkind`, what no sink writes to."""

NULLS_NOT_DISTINCT = 150_000
"""The version of PostgreSQL since which a unique index can take NULL for a value."""

_TABLE = """
SELECT c.oid, c.relkind, c.relispartition FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""

_COLUMNS = """
SELECT a.attname, format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END,
         CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END),
       a.attgenerated <> '' OR a.attidentity = 'a', a.attnotnull
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_KEYS = """
SELECT coalesce(array_agg(a.attname::text ORDER BY a.attnum), '{}'),
       coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::bool, false)
FROM pg_index i JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, nth) ON nth <= i.indnkeyatts
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.*
"""

_LACKING = """
SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p WHERE NOT has_table_privilege(%s::oid, p)
"""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table of the target, as it is.

    Args:
        oid: Its identity.
        schema: Its schema.
        name: Its name.
        columns: Its columns in the order of the stream table's, by the names that it gives them.
        key: The columns that identify a row, by the same names; none for a bag.
        null_key: Whether a key may hold NULL, and is unique all the same.
    """

    oid: int
    schema: str
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    null_key: bool = False

    @property
    def sql(self) -> sql.Identifier:
        """Return its name, quoted."""
        return sql.Identifier(self.schema, self.name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def split_target(text: str) -> tuple[str, str]:
    """Return schema and table of a name as PostgreSQL writes it, in `public` by default.

    Raises:
        UserError: `INVALID_NAME`.
    """
    parts = tuple(part if quoted else part.lower() for part, quoted in split_dotted(text, '"', "_$", _invalid))
    if len(parts) > 2:
        raise _invalid(text)
    return ("public", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _invalid(text: str) -> UserError:
    return UserError(
        "INVALID_NAME",
        f"'{text}' is not the name of a table in PostgreSQL.",
        hint='Write schema.table, with double quotes around odd parts: public."Order items".',
    )


def find_table(
    connection: Connection, schema: str, name: str, columns: Sequence[Column], key: Sequence[str]
) -> TargetTable | None:
    """Return the table, fit to be written; None where there is none.

    Raises:
        UserError: `SINK_TARGET_UNFIT` for what is no table of its own; `SINK_TARGET_DIFFERS` for other columns;
            `SINK_KEY_MISSING` without a unique index of the key.
        EnvironmentFault: `SINK_REFUSED` for missing privileges.
    """
    row = connection.execute(_TABLE, (schema, name)).fetchone()
    if row is None:
        return None
    oid, kind, partition = int(row[0]), str(row[1]), bool(row[2])  # type: ignore[call-overload]
    full = f"{schema}.{name}"
    if kind != "r" or partition:
        raise UserError(
            "SINK_TARGET_UNFIT",
            f"{full} is {KINDS.get(kind, 'a partition of another table')}; a sink writes into an ordinary table only.",
            hint="Name another table, which Headrace makes if there is none, and let a view show it.",
        )
    if _is_of_citus(connection, oid):
        raise UserError(
            "SINK_TARGET_UNFIT",
            f"{full} is a table of Citus, distributed or managed; a sink writes into a plain table only.",
            hint="Name another table, which Headrace makes as a plain one of the node that it is connected to.",
        )
    lacking = [str(r[0]) for r in connection.execute(_LACKING, (oid,)).fetchall()]
    if lacking:
        user = connection.info.user
        raise EnvironmentFault(
            "SINK_REFUSED",
            f"The role {user} may not {', '.join(lacking)} on {full}; nothing was written.",
            hint=f"Run on the server: GRANT {', '.join(lacking)} ON {full} TO {user};",
        )
    names = _fitting(connection, oid, full, columns)
    wanted = tuple(names[k.lower()] for k in key)
    unique = [(set(r[0]), bool(r[1])) for r in connection.execute(_KEYS, (oid,)).fetchall()]  # type: ignore[call-overload]
    null_key = any(of == set(wanted) and nulls for of, nulls in unique)
    if wanted and not any(of == set(wanted) for of, _ in unique):
        listed = ", ".join(wanted)
        raise UserError(
            "SINK_KEY_MISSING",
            f"{full} has no unique index of just the sink's key ({listed}).",
            hint=f"Run on the server: CREATE UNIQUE INDEX ON {full} ({listed}); or name another key.",
        )
    return TargetTable(oid, schema, name, tuple(names[c.name.lower()] for c in columns), wanted, null_key)


def _is_of_citus(connection: Connection, oid: int) -> bool:
    if connection.execute("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NULL").fetchone() == (True,):
        return False
    query = "SELECT 1 FROM pg_catalog.pg_dist_partition WHERE logicalrelid = %s::oid::regclass"
    return connection.execute(query, (oid,)).fetchone() is not None


def _fitting(connection: Connection, oid: int, full: str, columns: Sequence[Column]) -> dict[str, str]:
    """Return the target's names of the stream table's columns, by those in lower case.

    Raises:
        UserError: `SINK_TARGET_DIFFERS`.
    """
    there = {str(r[0]): (str(r[1]), bool(r[2])) for r in connection.execute(_COLUMNS, (oid,)).fetchall()}
    folded: dict[str, list[str]] = {}
    for name in there:
        folded.setdefault(name.lower(), []).append(name)
    names: dict[str, str] = {}
    wrong: list[str] = []
    for column in columns:
        found = [column.name] if column.name in there else folded.get(column.name.lower(), [])
        if len(found) != 1:
            wrong.append(f"it has no column {column.name} ({postgres_type(column)})")
            continue
        names[column.name.lower()] = found[0]
        type_, generated = there[found[0]]
        if generated:
            wrong.append(f"its column {found[0]} is generated, so that no value can be given")
        elif not takes(type_, column):
            wrong.append(f"its column {found[0]} is {type_}, where {postgres_type(column)} is needed")
    wrong += [f"it has a column {n}, which the stream table has not" for n in there if n not in names.values()]
    if wrong:
        raise UserError(
            "SINK_TARGET_DIFFERS",
            f"{full} has other columns than the stream table.",
            detail="; ".join(wrong) + ".",
            hint="Alter that table, or name another one: Headrace makes it if there is none.",
        )
    return names


def make_table(
    connection: Connection, schema: str, name: str, columns: Sequence[Column], key: Sequence[str]
) -> TargetTable:
    """Create the table, without its key: that is added when it has rows."""
    parts = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(postgres_type(c))) for c in columns]
    statement = sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(schema, name), sql.SQL(", ").join(parts))
    connection.execute(statement)
    found = connection.execute("SELECT %s::regclass::oid", (sql.Identifier(schema, name).as_string(connection),))
    row = found.fetchone()
    assert row is not None, "it was just made"
    by_name = {c.name.lower(): c.name for c in columns}
    keys = tuple(by_name[k.lower()] for k in key)
    null_key = connection.info.server_version >= NULLS_NOT_DISTINCT
    return TargetTable(int(row[0]), schema, name, tuple(c.name for c in columns), keys, null_key)  # type: ignore[call-overload]


def add_key(connection: Connection, table: TargetTable) -> None:
    """Make the key of a table that Headrace made unique; NULL is a value like others in it."""
    if not table.key:
        return
    listed = sql.SQL(", ").join(map(sql.Identifier, table.key))
    nulls = sql.SQL(" NULLS NOT DISTINCT" if connection.info.server_version >= NULLS_NOT_DISTINCT else "")
    connection.execute(sql.SQL("CREATE UNIQUE INDEX ON {} ({}){}").format(table.sql, listed, nulls))
