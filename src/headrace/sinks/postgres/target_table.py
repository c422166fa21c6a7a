"""The table that a sink writes: how it must be, and how one is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault, UserError
from headrace.sinks.postgres.column_types import postgres_type, takes
from headrace.sinks.postgres.placement import DISTRIBUTED, OTHER, PLAIN, ROW_ID, Placement, not_in_key, placement_of
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

HASHED = frozenset({"text", "character varying", "character", "uuid", "jsonb", "inet", "numeric"})
"""Types of text columns, among those that a table may have, that can be hashed; `json` and others cannot."""

NULLS_NOT_DISTINCT = 150_000
"""The version of PostgreSQL since which a unique index can take NULL for a value."""

_TABLE = """
SELECT c.oid, c.relkind, c.relispartition, a.amname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_am a ON a.oid = c.relam
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
        placement: Where its rows are.
        hashed: Columns whose values PostgreSQL can hash as they are stored.
    """

    oid: int
    schema: str
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    null_key: bool = False
    placement: Placement = PLAIN
    hashed: tuple[str, ...] = ()

    @property
    def sql(self) -> sql.Identifier:
        """Return its name, quoted."""
        return sql.Identifier(self.schema, self.name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def refuse_unknown_key(stream: str, columns: Sequence[Column], key: Sequence[str], cure: str = "") -> None:
    """Refuse a key of columns that the stream table has not.

    Args:
        stream: The stream table, as the message calls it.
        columns: Its columns.
        key: The sink's key.
        cure: Something to be done about it, besides naming other columns.

    Raises:
        UserError: `SINK_KEY_UNKNOWN`.
    """
    names = {c.name.lower() for c in columns}
    if unknown := [k for k in key if k.lower() not in names]:
        raise UserError(
            "SINK_KEY_UNKNOWN",
            f"{stream} has no column {', '.join(unknown)}, which the sink's key names; nothing was written.",
            hint=f"{cure}It has {', '.join(c.name for c in columns)}.",
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
    placement = placement_of(connection, oid)
    if row[3] == "columnar" or placement.kind == OTHER:
        raise UserError(
            "SINK_TARGET_UNFIT",
            f"{full} is {'a columnar table' if row[3] == 'columnar' else placement}, whose rows Citus does not change.",
            hint="Name another table, which Headrace makes if there is none.",
        )
    lacking = [str(r[0]) for r in connection.execute(_LACKING, (oid,)).fetchall()]
    if lacking:
        user = connection.info.user
        raise EnvironmentFault(
            "SINK_REFUSED",
            f"The role {user} may not {', '.join(lacking)} on {full}; nothing was written.",
            hint=f"Run on the server: GRANT {', '.join(lacking)} ON {full} TO {user};",
        )
    names, types = _fitting(connection, oid, full, columns, ROW_ID if placement.column == ROW_ID else None)
    wanted = tuple(names[k.lower()] for k in key)
    if wanted and placement.kind == DISTRIBUTED and placement.column not in (None, *wanted):
        raise not_in_key(str(placement.column), wanted)
    unique = [(set(r[0]), bool(r[1])) for r in connection.execute(_KEYS, (oid,)).fetchall()]  # type: ignore[call-overload]
    null_key = any(of == set(wanted) and nulls for of, nulls in unique)
    if wanted and not any(of == set(wanted) for of, _ in unique):
        listed = ", ".join(wanted)
        raise UserError(
            "SINK_KEY_MISSING",
            f"{full} has no unique index of just the sink's key ({listed}).",
            hint=f"Run on the server: CREATE UNIQUE INDEX ON {full} ({listed}); or name another key.",
        )
    own = tuple(names[c.name.lower()] for c in columns)
    hashed = tuple(n for n, c in zip(own, columns, strict=True) if _is_hashed(c, types[n]))
    return TargetTable(oid, schema, name, own, wanted, null_key, placement, hashed)


def _is_hashed(column: Column, type_: str) -> bool:
    return column.type.lower() != "string" or type_.partition("(")[0] in HASHED


def _fitting(
    connection: Connection, oid: int, full: str, columns: Sequence[Column], further: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return names of the stream table's columns in the target, by lower case, and their types.

    Args:
        connection: To the target.
        oid: The table.
        full: Its name.
        columns: The stream table's columns.
        further: A column that it may have besides.

    Raises:
        UserError: `SINK_TARGET_DIFFERS`.
    """
    found_there = connection.execute(_COLUMNS, (oid,)).fetchall()
    there = {str(r[0]): (str(r[1]), bool(r[2])) for r in found_there if r[0] != further}
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
    return names, {name: type_ for name, (type_, _) in there.items()}


def make_table(
    connection: Connection,
    schema: str,
    name: str,
    columns: Sequence[Column],
    key: Sequence[str],
    placement: Placement = PLAIN,
) -> TargetTable:
    """Create a plain table; its key is added when it has rows."""
    parts = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(postgres_type(c))) for c in columns]
    if placement.column == ROW_ID:
        parts.append(sql.SQL("{} bigint NOT NULL").format(sql.Identifier(ROW_ID)))
    statement = sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(schema, name), sql.SQL(", ").join(parts))
    connection.execute(statement)
    found = connection.execute("SELECT %s::regclass::oid", (sql.Identifier(schema, name).as_string(connection),))
    row = found.fetchone()
    assert row is not None, "it was just made"
    by_name = {c.name.lower(): c.name for c in columns}
    keys = tuple(by_name[k.lower()] for k in key)
    null_key = connection.info.server_version >= NULLS_NOT_DISTINCT
    own = tuple(c.name for c in columns)
    return TargetTable(int(row[0]), schema, name, own, keys, null_key, placement, own)  # type: ignore[call-overload]


def add_key(connection: Connection, table: TargetTable) -> None:
    """Make the key of a table that Headrace made unique; NULL is a value like others in it.

    Rows of a bag that has their hash are found by it.
    """
    if not table.key:
        if table.placement.column == ROW_ID:
            statement = sql.SQL("CREATE INDEX ON {} ({})")
            connection.execute(statement.format(table.sql, sql.Identifier(ROW_ID)))
        return
    make_unique(connection, table.sql, table.key)


def make_unique(connection: Connection, table: sql.Identifier, key: Sequence[str]) -> None:
    """Make columns of a table a key; NULL is a value like others in it, where the server can."""
    listed = sql.SQL(", ").join(map(sql.Identifier, key))
    nulls = sql.SQL(" NULLS NOT DISTINCT" if connection.info.server_version >= NULLS_NOT_DISTINCT else "")
    connection.execute(sql.SQL("CREATE UNIQUE INDEX ON {} ({}){}").format(table, listed, nulls))
