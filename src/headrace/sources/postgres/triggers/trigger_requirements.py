"""Requirements of capture by triggers, and installed triggers: one query per question."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.sources.postgres.connection import Connection, in_motion
from headrace.sources.postgres.triggers.change_tables import BEGINNING, CAST_BEFORE, StoredColumn


@dataclass(frozen=True, slots=True)
class Fitness:
    """Properties of a table by which triggers see every change, or do not.

    Args:
        allowed: The connecting role may put triggers on it, and on its partitions.
        owned: All of them belong to the connecting role.
        against: Why triggers would miss changes, or see too many; None when they see exactly its own.
        partitions: Schema and name of all partitions below it.
    """

    allowed: bool
    owned: bool
    against: str | None
    partitions: tuple[tuple[str, str], ...]


_FITNESS = """
SELECT c.oid::bigint, t.allowed, t.owned,
    CASE WHEN c.relkind = 'r' AND c.relhassubclass THEN 'has tables that inherit from it (or had: ANALYZE it then)'
        WHEN EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
            THEN 'is a partition or inherits from a table, whose statements do not fire its triggers'
        WHEN t.abroad THEN 'has a partition that is a foreign table'
        WHEN t.unlogged THEN 'is unlogged, or has a partition that is: a crash of the server empties it, which no '
            'trigger sees'
        WHEN t.subscribed THEN 'is filled by a subscription, which fires no statement triggers' END,
    t.partitions
FROM pg_class c, LATERAL (
    SELECT bool_and(has_table_privilege(p.oid, 'TRIGGER')) AS allowed,
        bool_and(pg_has_role(p.relowner, 'USAGE')) AS owned,
        bool_or(p.relkind = 'f') AS abroad,
        bool_or(p.relpersistence <> 'p') AS unlogged,
        bool_or(EXISTS (SELECT FROM pg_subscription_rel s WHERE s.srrelid = p.oid)) AS subscribed,
        coalesce(json_agg(json_build_array(n.nspname, p.relname) ORDER BY p.oid) FILTER (WHERE p.oid <> c.oid), '[]')
            AS partitions
    FROM pg_class p JOIN pg_namespace n ON n.oid = p.relnamespace
    WHERE p.oid = c.oid OR c.relkind = 'p' AND p.oid IN (SELECT relid FROM pg_partition_tree(c.oid))
) t WHERE c.oid = ANY(%s)
"""


def fitness(connection: Connection, oids: Collection[int]) -> dict[int, Fitness]:
    """Read the fitness of tables, by oid.

    Raises:
        EnvironmentFault: `SOURCE_IN_MOTION` when one of them was dropped just now.
    """
    rows: list[tuple[Any, ...]] = connection.execute(_FITNESS, (list(oids),)).fetchall()
    if len(rows) < len(set(oids)):
        raise in_motion()
    return {oid: Fitness(a, o, against, tuple(map(tuple, parts))) for oid, a, o, against, parts in rows}


_HELD = """
SELECT a.attnum, b.typname, n.nspname <> 'pg_catalog',
    coalesce(nullif(b.typtype, 'b') = 'e', (SELECT e.typtype = 'e' FROM pg_type e WHERE e.oid = b.typelem), false)
FROM pg_attribute a, LATERAL (
    WITH RECURSIVE base AS (
        SELECT t.* FROM pg_type t WHERE t.oid = a.atttypid
        UNION ALL SELECT t.* FROM base b JOIN pg_type t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
    ) SELECT * FROM base WHERE typtype <> 'd') b JOIN pg_namespace n ON n.oid = b.typnamespace
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""


def described(connection: Connection, oid: int) -> dict[int, StoredColumn]:
    """Read the storage of a table's columns in its change table, by number."""
    rows: list[tuple[Any, ...]] = connection.execute(_HELD, (oid,)).fetchall()
    return {
        number: StoredColumn("text", True, bool(enum)) if foreign else StoredColumn(name)
        for number, name, foreign, enum in rows
    }


_INSTALLED = """
SELECT count(*) FILTER (WHERE t.tgenabled = ANY(%(enabled)s)),
    string_agg(concat_ws(':', t.oid, t.tgrelid, t.tgenabled, t.xmin, p.oid, p.xmin), ',' ORDER BY t.oid),
    (SELECT c.oid || ':' || c.relfilenode FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %(schema)s AND c.relname = 't_' || %(suffix)s)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_trigger t ON t.tgfoid = p.oid
WHERE n.nspname = %(schema)s AND p.proname IN (SELECT k || '_' || %(suffix)s FROM unnest('{i,u,d,x}'::text[]) k)
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """The triggers and functions that capture a table now.

    Args:
        triggers: How many triggers fire.
        mark: A text that changes when a trigger was disabled, replaced or dropped, a function was replaced, or the
            change table was emptied or replaced; also when that was undone meanwhile.
    """

    triggers: int
    mark: str


def installed(connection: Connection, schema: str, suffix: str, fit: Fitness) -> Installed:
    """Read the triggers that capture a table, as of the transaction's snapshot.

    Args:
        connection: The connection.
        schema: The source's schema.
        suffix: Names the change table and the functions.
        fit: The table.
    """
    enabled = ["A"] if fit.owned else ["O", "A"]
    values: Mapping[str, Any] = {"enabled": enabled, "schema": schema, "suffix": suffix}
    row: tuple[Any, ...] | None = connection.execute(_INSTALLED, values).fetchone()
    assert row is not None, "an aggregate has one row"
    triggers, marks, changes = row
    return Installed(int(triggers), f"{marks} {changes} {fit.against or ''}".strip())


_STRAYS = """
SELECT DISTINCT p.proname::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN pg_trigger t ON t.tgfoid = p.oid
WHERE n.nspname = %s AND right(p.proname, 16) = %s AND t.tgrelid <> ALL(
    SELECT %s::oid UNION SELECT relid FROM pg_partition_tree(%s::oid))
"""


def strays(connection: Connection, schema: str, suffix: str, oid: int) -> list[str]:
    """Return trigger functions of a table that fire on other tables.

    These are detached partitions, or another table of that name.

    Args:
        connection: To the server.
        schema: The source's schema there.
        suffix: The table's suffix.
        oid: The table.
    """
    rows = connection.execute(_STRAYS, (schema, suffix, oid, oid)).fetchall()
    return [str(row[0]) for row in rows]


def functions(connection: Connection, schema: str) -> list[str]:
    """Return all trigger functions of a source."""
    found = (
        "SELECT p.proname::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
        "WHERE n.nspname = %s AND p.prorettype = 'trigger'::regtype"
    )
    return [str(row[0]) for row in connection.execute(found, (schema,)).fetchall()]


_CASTING = """
SELECT DISTINCT right(p.proname, 16) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = %s AND p.prorettype = 'trigger'::regtype AND strpos(p.prosrc, %s) > 0
"""
_UNSETTLED = """
SELECT right(p.proname, 16) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = %s AND p.prorettype = 'trigger'::regtype AND left(p.proname, 2) = %s AND p.proconfig IS NULL
"""


def casting(connection: Connection, schema: str) -> frozenset[str]:
    """Return tables, by suffix, whose functions cast values of users' types to text, as once."""
    return frozenset(str(row[0]) for row in connection.execute(_CASTING, (schema, CAST_BEFORE)).fetchall())


def unsettled_beginnings(connection: Connection, schema: str) -> list[str]:
    """Return tables, by suffix, whose function `b_…` has the caller's search path, as once."""
    return [str(row[0]) for row in connection.execute(_UNSETTLED, (schema, f"{BEGINNING}_")).fetchall()]


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """A table of a source's schema, as the server has it.

    Args:
        name: Its name.
        pages: How many pages of file it has.
        size: Bytes, with large values.
    """

    name: str
    pages: int
    size: int


def change_tables(connection: Connection, schema: str) -> list[ChangeTable]:
    """Return the change tables of a source, and the two that are for all of it."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT c.relname::text, coalesce(pg_relation_size(c.oid), 0) / current_setting('block_size')::int, "
        "coalesce(pg_total_relation_size(c.oid), 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relkind = 'r' ORDER BY c.relname",
        (schema,),
    ).fetchall()
    return [ChangeTable(name, int(pages), int(size)) for name, pages, size in rows]
