"""Catalog queries about a server and its tables, each with its purpose."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from headrace.errors import EnvironmentFault
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteColumn, RemoteTable
from headrace.sources.postgres.setup import citus_tables
from headrace.sources.postgres.type_mapping import type_name

STORED_GENERATED = 180000
"""From this version on a publication can hold stored generated columns."""


@dataclass(frozen=True, slots=True)
class Server:
    """Identity and version of a server.

    Args:
        version: As `server_version_num`.
        system: Its system identifier: another one is another cluster.
        timeline: Its timeline: another one means a promoted replica, or a restore.
        position: Where its write-ahead log is flushed up to.
        wal_level: Must be `logical`.
        clock: Its time, in seconds since 1970.
    """

    version: int
    system: str
    timeline: int
    position: int
    wal_level: str
    clock: float


_SERVER = """
SELECT current_setting('server_version_num')::int, (SELECT system_identifier::text FROM pg_control_system()),
    ('x' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8))::bit(32)::int,
    pg_current_wal_flush_lsn() - '0/0', current_setting('wal_level'),
    extract(epoch FROM clock_timestamp())
"""


def server(connection: Connection) -> Server:
    """Return the server at the other end.

    Its timeline is that of the log it writes: the last checkpoint is of the former one for minutes after a promotion.

    Raises:
        EnvironmentFault: `SOURCE_IN_RECOVERY`.
    """
    try:
        version, system, timeline, position, wal_level, clock = _one(connection, _SERVER)
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        raise EnvironmentFault(
            "SOURCE_IN_RECOVERY",
            "The source's PostgreSQL server is a standby, or still recovering.",
            detail=str(error).strip(),
            hint="Capture from the primary; with several hosts in the connection string, add "
            "target_session_attrs=read-write. During a failover it becomes one by itself.",
            retryable=True,
        ) from error
    return Server(version, system, timeline, int(position), wal_level, float(clock))


_SETTLED = "SELECT pg_current_wal_flush_lsn() - '0/0', current_setting('wal_block_size')::int"


def settled(connection: Connection) -> int:
    """Return a position up to which the write-ahead log can be decoded now.

    In the background the server flushes whole pages, and so perhaps the first half of a record of a transaction that is
    still open. Whoever decodes up to there waits for the other half: until somebody commits, or 15 seconds. A
    transaction of our own then flushes it.
    """
    position, page = _one(connection, _SETTLED)
    if int(position) % page == 0:
        connection.execute("SELECT pg_logical_emit_message(true, 'headrace', '')")
        position, _ = _one(connection, _SETTLED)
    return int(position)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition that has rows of a captured table.

    Args:
        schema: Its schema.
        name: Its name.
        kind: `pg_class.relkind`: `f` for a foreign table.
        persistence: `u` for an unlogged one.
        identity: `pg_class.relreplident`: what the log has of its old rows.
        key: Columns of that, if these are some.
    """

    schema: str
    name: str
    kind: str
    persistence: str
    identity: str
    key: frozenset[str]

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    def tells(self, table: RemoteTable) -> bool:
        """Return whether the log has enough of its old rows for what its table is captured by.

        Whole rows are enough for all; without an identity the server allows no UPDATE or DELETE.
        """
        return not self.key or (table.identity in "di" and bool(table.key) and self.key >= set(table.key))


@dataclass(frozen=True, slots=True)
class Found:
    """A table as the server has it now, with what may prevent capturing it.

    Args:
        table: The table.
        kind: `pg_class.relkind`: `r` a table, `p` a partitioned one.
        persistence: `p` for one whose changes are in the write-ahead log.
        row_security: Policies may hide rows from the connecting role.
        owned: The connecting role may add it to a publication.
        readable: The connecting role may read it.
        left_out: Columns that the stream does not carry, and nobody has left out by a list: generated ones.
        primary: It has a primary key.
        stamps: For every column by number, generated ones too, a text that changes when the column is altered.
        filled: Numbers of columns that rows older than them have a value of all the same (`ADD COLUMN … DEFAULT`);
            of a partitioned table its partitions tell.
        ancestors: Oids of the tables that it is a partition of, directly or not.
        partitions: Those that have its rows.
        owner: The role that it belongs to.
        sharded: What kind of table in shards it is, in words; empty for tables that have their rows themselves.
        superuser: That role is one, or can become one: it must not be granted to anybody.
    """

    table: RemoteTable
    kind: str
    persistence: str
    row_security: bool
    owned: bool
    readable: bool
    left_out: tuple[str, ...]
    stamps: Mapping[int, str] = field(default_factory=dict)
    filled: frozenset[int] = frozenset()
    ancestors: frozenset[int] = frozenset()
    partitions: tuple[Partition, ...] = ()
    owner: str = ""
    superuser: bool = False
    sharded: str = ""

    @property
    def without(self) -> str:
        """Describe the columns that the mirror leaves out; empty where it has all."""
        if not self.left_out:
            return ""
        return f"its mirror has no {', '.join(self.left_out)}: generated columns like that are not captured"


def _is_mapped(type_: str) -> str:
    """Return SQL that tells types of PostgreSQL and pgvector from users' types of their names.

    Args:
        type_: Alias of a row of `pg_type`.
    """
    return f"""CASE {type_}.typname WHEN 'vector' THEN {type_}.typtype = 'b' AND EXISTS (
                SELECT FROM pg_depend m JOIN pg_extension x ON x.oid = m.refobjid
                WHERE m.classid = 'pg_type'::regclass AND m.objid = {type_}.oid AND m.deptype = 'e'
                    AND m.refclassid = 'pg_extension'::regclass AND x.extname = 'vector')
            ELSE {type_}.typnamespace = 'pg_catalog'::regnamespace END"""


_TABLES = (
    """
WITH wanted AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY(%(oids)s)
        OR (n.nspname, c.relname) IN (SELECT * FROM unnest(%(schemas)s::text[], %(names)s::text[]))
)
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relreplident::text,
    row_security_active(c.oid),
    pg_has_role(c.relowner, 'USAGE'),
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
    (SELECT coalesce(json_agg(a.attname ORDER BY k.place), '[]') FROM pg_index i,
        unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
        WHERE i.indrelid = c.oid AND k.place <= i.indnkeyatts AND CASE c.relreplident
            WHEN 'i' THEN i.indisreplident ELSE i.indisprimary AND i.indimmediate END),
    (SELECT json_agg(json_build_array(a.attnum, a.attname, a.atttypid::bigint, a.atttypmod,
            json_build_array(d.typname, """
    + _is_mapped("d")
    + """), d.modifier,
            (SELECT json_build_array(e.typname, """
    + _is_mapped("e")
    + """) FROM pg_type e
                WHERE e.oid = d.typelem AND d.typarray = 0 AND d.typlen = -1 AND e.typdelim = ','),
            a.attgenerated, a.atthasmissing OR (c.relkind = 'p' AND EXISTS (
                SELECT FROM pg_partition_tree(c.oid) t JOIN pg_attribute l ON l.attrelid = t.relid
                WHERE t.isleaf AND l.attname = a.attname AND l.atthasmissing)),
            a.xmin::text) ORDER BY a.attnum)
        FROM pg_attribute a, LATERAL (
            WITH RECURSIVE base AS (
                SELECT t.*, a.atttypmod AS modifier FROM pg_type t WHERE t.oid = a.atttypid
                UNION ALL
                SELECT t.*, b.typtypmod FROM base b JOIN pg_type t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
            ) SELECT * FROM base WHERE typtype <> 'd') d
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    concat_ws(' ',
        CASE WHEN c.relkind = 'p' THEN (
            SELECT string_agg(concat_ws(':', p.oid, p.relfilenode, i.xmin), ',' ORDER BY p.oid)
            FROM pg_partition_tree(c.oid) t JOIN pg_class p ON p.oid = t.relid JOIN pg_inherits i ON i.inhrelid = p.oid
            WHERE p.oid <> c.oid) END,
        (WITH RECURSIVE used (oid) AS (
                SELECT a.atttypid FROM pg_attribute a
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            UNION
                SELECT part.oid FROM used JOIN pg_type t USING (oid), LATERAL (
                        VALUES (t.typbasetype), (t.typelem)
                    UNION ALL
                        SELECT a.atttypid FROM pg_attribute a
                        WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
                    UNION ALL
                        SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
                ) part (oid))
            SELECT encode(sha256(convert_to(
                string_agg(parts.text, ',' ORDER BY parts.oid, parts.number), 'UTF8')), 'hex')
            FROM (SELECT e.oid, 0 AS number, e.oid || ' ' || e.enumlabel AS text
                    FROM used JOIN pg_enum e ON e.enumtypid = used.oid
                UNION ALL
                    SELECT t.oid, a.attnum, concat_ws(' ', t.oid, a.attnum, a.atttypid)
                    FROM used JOIN pg_type t USING (oid) JOIN pg_attribute a ON a.attrelid = t.typrelid
                    WHERE a.attnum > 0 AND NOT a.attisdropped) parts)),
    c.relfilenode::bigint,
    (SELECT coalesce(json_agg(a.above::oid::bigint), '[]') FROM pg_partition_ancestors(c.oid) a (above)
        WHERE a.above <> c.oid),
    CASE WHEN c.relkind = 'p' THEN (
        SELECT json_agg(json_build_array(n.nspname, l.relname, l.relkind, l.relpersistence, l.relreplident, of.key)
            ORDER BY l.oid)
        FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid
                JOIN pg_namespace n ON n.oid = l.relnamespace,
            LATERAL (SELECT json_agg(a.attname ORDER BY a.attname) AS key FROM pg_index i JOIN pg_attribute a
                    ON a.attrelid = l.oid AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1])
                WHERE i.indrelid = l.oid AND CASE l.relreplident
                    WHEN 'i' THEN i.indisreplident WHEN 'd' THEN i.indisprimary AND i.indimmediate END) of
        WHERE t.isleaf) END,
    pg_get_userbyid(c.relowner),
    EXISTS (SELECT FROM pg_roles s WHERE s.rolsuper AND pg_has_role(c.relowner, s.oid, 'MEMBER')),
    """
    + citus_tables.PRESENT
    + """
FROM wanted w JOIN pg_class c ON c.oid = w.oid JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY c.oid
"""
)


def tables(
    connection: Connection,
    version: int,
    *,
    oids: Collection[int] = (),
    names: Sequence[tuple[str, str]] = (),
    as_text: Collection[str] = (),
    known: Mapping[int, RemoteTable] | None = None,
) -> tuple[Found, ...]:
    """Return tables as they are now, by oid or by name; those that do not exist are left out.

    Args:
        connection: The connection.
        version: The server's version.
        oids: Tables by oid.
        names: Tables by schema and name.
        as_text: Columns that the user wants as text, as `schema.table.column`.
        known: Tables by oid, as they were before. Their columns stay text or not, whatever names they have now.
    """
    values = {"oids": list(oids), "schemas": [s for s, _ in names], "names": [n for _, n in names]}
    rows = connection.execute(_TABLES, values).fetchall()
    shards = citus_tables.sharded(connection, [int(str(row[0])) for row in rows]) if rows and rows[0][-1] else {}
    found = (_found(row, version, frozenset(as_text), known or {}) for row in rows)
    return tuple(replace(f, sharded=shards.get(f.table.oid, "")) for f in found)


def _found(row: tuple[Any, ...], version: int, as_text: frozenset[str], known: Mapping[int, RemoteTable]) -> Found:
    oid, schema, name, kind, persistence, identity, policies, owned, readable, key, columns = row[:11]
    marks, file, above, partitions, owner, superuser, _ = row[11:]
    carried = [c for c in columns or () if not c[7] or (c[7] == "s" and version >= STORED_GENERATED)]
    stamps = {c[0]: c[9] for c in columns or ()}
    left_out = tuple(c[1] for c in columns or () if c not in carried)
    former = {c.number: c.as_text for c in known[oid].columns} if oid in known else {}
    table = RemoteTable(
        oid=oid,
        schema=schema,
        name=name,
        identity=identity,
        key=tuple(key),
        columns=tuple(_column(c, former.get(c[0], f"{schema}.{name}.{c[1]}" in as_text)) for c in carried),
        marks=f"{','.join(stamps.values())} {marks}".strip(),
        partitioned=kind == "p",
        filenode=file,
    )
    filled = frozenset(c[0] for c in carried if c[8])
    return Found(
        table,
        kind,
        persistence,
        policies,
        owned,
        readable,
        left_out,
        stamps,
        filled,
        ancestors=frozenset(above),
        partitions=tuple(_partition(p) for p in partitions or ()),
        owner=owner,
        superuser=superuser,
    )


def _partition(row: Sequence[Any]) -> Partition:
    schema, name, kind, persistence, identity, key = row
    return Partition(schema, name, kind, persistence, identity, frozenset(key or ()))


def _column(row: Sequence[Any], as_text: bool) -> RemoteColumn:
    number, name, type_, modifier, (base, is_mapped), base_modifier, element = row[:7]
    base = type_name(base, is_mapped, base_modifier)
    if element is not None:
        element = type_name(element[0], element[1], base_modifier)
    return RemoteColumn(number, name, type_, modifier, base, base_modifier, element, as_text)


def _one(connection: Connection, sql: str) -> tuple[Any, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None, "a query without FROM has one row"
    return row
