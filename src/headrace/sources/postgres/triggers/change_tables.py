"""Change tables and the triggers that fill them: the SQL of both. Pure.

Every captured table has a change table in a schema of the source's own, and statement-level triggers whose transition
tables are written there by one `INSERT … SELECT`. A row of it has

- `xid`: the transaction that wrote it (the outermost one, as snapshots count them);
- `moment`: a number drawn from a sequence when the trigger ran, one per statement;
- `op`: 1 inserted, -1 deleted; -2 and 2 the old and the new row of an update;
- the captured columns `c0`, `c1`, …, typed as in the table, but for domains (their base type, as constraints of a
  domain must not be asked of old rows) and types of users and extensions (text, so that they can be dropped).

Each TRUNCATE leaves two rows in the table `emptied`: one with its moment when the table is empty, and before that one
with the moment when it began, negative. `truncations` has why. Whoever else deletes or updates rows of a change table
leaves one there, too, with the moment 0, so that they are missed.

A trigger must never make a writer's statement fail, also not between ALTER TABLE and the landing that notices it. So
its query stands whatever became of the columns:

- one that is no longer there is found one level further out, in `missing`, as NULL;
- one that has another type falls, by PostgreSQL's rules for overloaded functions, to the `keep_…(anyelement, text)`
  that gives NULL; of its own type, to the one that gives it back. Both are inlined when a session plans the statement,
  so that neither costs anything afterwards. Modifiers (`varchar(10)`) are left out, so that longer values fit, too.

Rows that are wrong because of this are never landed: the table's shape is another one, so it is taken anew.

Texts of users' types are what the server itself writes of them, by the types' output functions, as COPY and the log
have them. A cast to text would call a function that the type's owner may have made, with our rights, and may give
another text. For the same reason all functions look for operators in `pg_catalog` only.

A row filter is a condition in the names of the captured columns, asked of these values rather than of the table's own
columns, for the same reason. Old and new rows are asked one by one, so that a row which an update takes into the filter
is inserted, and one which it takes out is deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import sql

from headrace.sources.postgres.connection import APPLICATION, OPTIONS
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.type_mapping import place_of

MOMENTS, EMPTIED, LANDINGS = "moments", "emptied", "landings"
"""The sequence, the table of TRUNCATEs, and the one in which landings leave a row (`witness.py`)."""

BEGINNING = "b"
"""The first letter of functions that note when a TRUNCATE begins."""

_STORAGE = (
    "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1"
)
_WRITTEN = "CASE WHEN pg_catalog.num_nulls({0}) = 0 THEN pg_catalog.format('%s', {0}) END"
"""SQL of a value as its type's output function writes it. A row of NULLs `IS NULL`, and is none."""

CAST_BEFORE = '"::pg_catalog.text'
"""A part of the SQL of functions by which texts were once captured, behind the name of a column."""

_SEARCH_PATH = " SET search_path = pg_catalog, pg_temp"
_SETTINGS = ("datestyle", "intervalstyle", "timezone", "bytea_output", "extra_float_digits")
_TRIGGERS = (
    ("i", "INSERT", "NEW TABLE AS new_rows", ((1, "new_rows"),)),
    ("u", "UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows", ((-2, "old_rows"), (2, "new_rows"))),
    ("d", "DELETE", "OLD TABLE AS old_rows", ((-1, "old_rows"),)),
)
PER_TABLE, PER_PARTITION = 4, 3
"""Triggers that record a table's changes, and those of each partition below it; TRUNCATE of a partition is seen by its
file instead. The one that records when a TRUNCATE begins is not counted: without it nothing is missed."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """Storage of a column in the change table.

    Args:
        type: Name of a type of PostgreSQL's own.
        converted: The column is of another type, and held as the text of it.
        settled: That text is the same under all settings of a session.
    """

    type: str
    converted: bool = False
    settled: bool = True


def suffix_of(schema: str, name: str) -> str:
    """Return the suffix of a table's change table and functions; dump and restore keep it."""
    return hashlib.sha256(f"{schema}.{name}".encode()).hexdigest()[:16]


def changes_of(schema: str, suffix: str) -> sql.Identifier:
    """Return the name of a change table."""
    return sql.Identifier(schema, f"t_{suffix}")


def surroundings(schema: str) -> Iterator[sql.Composed]:
    """Yield statements that make a source's schema."""
    yield sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema))
    yield sql.SQL("CREATE SEQUENCE {}").format(sql.Identifier(schema, MOMENTS))
    for name, columns in (
        (EMPTIED, "xid xid8 NOT NULL, moment bigint NOT NULL, suffix text NOT NULL"),
        (LANDINGS, "xid xid8 NOT NULL, text text NOT NULL"),
    ):
        table = sql.Identifier(schema, name)
        yield sql.SQL("CREATE TABLE {} (" + columns + ")").format(table)
        yield sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table)


def keepers(schema: str, held: Sequence[StoredColumn]) -> Iterator[sql.Composed]:
    """Yield statements that make the functions `keep_…` for columns."""
    for type_ in sorted({h.type for h in held if not h.converted}):
        for arguments, body in (
            (f'pg_catalog."{type_}", integer', "SELECT $1"),
            ("anyelement, text", "SELECT NULL::{}"),
        ):
            kind = sql.Identifier("pg_catalog", type_)
            yield sql.SQL(
                "CREATE OR REPLACE FUNCTION {} ("
                + arguments
                + ") RETURNS {} LANGUAGE sql IMMUTABLE PARALLEL SAFE AS {}"
            ).format(_keeper(schema, type_), kind, sql.Literal(sql.SQL(body).format(kind).as_string(None)))


def change_table(schema: str, suffix: str, held: Sequence[StoredColumn]) -> Iterator[sql.Composed]:
    """Yield statements that make an empty change table.

    Its replica identity is for publications FOR ALL TABLES, which would keep us from deleting what is landed.

    Args:
        schema: The source's schema on the server.
        suffix: The table's suffix.
        held: How its columns are stored.
    """
    name = changes_of(schema, suffix)
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(place_of(i)), sql.Identifier("pg_catalog", h.type))
        for i, h in enumerate(held)
    )
    yield sql.SQL("DROP TABLE IF EXISTS {}").format(name)
    yield sql.SQL(
        "CREATE TABLE {} (xid xid8 NOT NULL, moment bigint NOT NULL, op smallint NOT NULL, {}) WITH (" + _STORAGE + ")"
    ).format(name, columns)
    yield sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(name)
    yield from _guard(schema, suffix)


def _guard(schema: str, suffix: str) -> Iterator[sql.Composed]:
    """Yield statements that have it noted when others delete or update rows of a change table.

    By statement, not by row: that would take as long as deleting what is landed, which fires it, too (0.5 s became 1.2
    for 500,000 rows), and so would keeping the old rows to count them.
    """
    name, table = f"r_{suffix}", changes_of(schema, suffix)
    body = sql.SQL("BEGIN INSERT INTO {} VALUES (pg_catalog.pg_current_xact_id(), 0, {}); RETURN NULL; END").format(
        sql.Identifier(schema, EMPTIED), sql.Literal(suffix)
    )
    yield from _trigger_function(schema, name, body, "")
    yield sql.SQL(
        "CREATE TRIGGER removed BEFORE DELETE OR UPDATE ON {} FOR EACH STATEMENT "
        "WHEN (pg_catalog.current_setting('application_name') <> {}) EXECUTE FUNCTION {} ()"
    ).format(table, sql.Literal(APPLICATION), sql.Identifier(schema, name))
    yield sql.SQL("ALTER TABLE {} ENABLE ALWAYS TRIGGER removed").format(table)


def functions(schema: str, suffix: str, table: RemoteTable, held: Sequence[StoredColumn]) -> Iterator[sql.Composed]:
    """Yield statements that make the trigger functions of a table.

    Args:
        schema: The source's schema on the server.
        suffix: The table's suffix.
        table: The table, with its row filter.
        held: How its columns are stored.
    """
    plain = table.filter is None and all(h.settled for h in held)
    settings = "" if plain else "".join(f" SET {n} = '{OPTIONS[n]}'" for n in _SETTINGS)
    missing = sql.SQL(", ").join(
        sql.SQL("NULL::{} AS {}").format(sql.Identifier("pg_catalog", h.type), sql.Identifier(c.name))
        for c, h in zip(table.columns, held, strict=True)
    )
    for kind, _, _, parts in _TRIGGERS:
        rows = sql.SQL(" UNION ALL ").join(_rows(schema, table, held, op, relation) for op, relation in parts)
        body = sql.SQL(
            "INSERT INTO {} SELECT pg_catalog.pg_current_xact_id(), __hr_moment, r.* "
            "FROM (SELECT {}) AS missing, LATERAL ({}) AS r;"
        ).format(changes_of(schema, suffix), missing, rows)
        yield from _function(schema, f"{kind}_{suffix}", body, settings)
    yield from beginning(schema, suffix)
    yield from _emptying(schema, suffix, "x", "")


def beginning(schema: str, suffix: str) -> Iterator[sql.Composed]:
    """Yield statements that make the function which notes when a TRUNCATE begins."""
    yield from _emptying(schema, suffix, BEGINNING, "-")


def _emptying(schema: str, suffix: str, kind: str, sign: str) -> Iterator[sql.Composed]:
    body = sql.SQL("INSERT INTO {} VALUES (pg_catalog.pg_current_xact_id(), {}__hr_moment, {});").format(
        sql.Identifier(schema, EMPTIED), sql.SQL(sign), sql.Literal(suffix)
    )
    yield from _function(schema, f"{kind}_{suffix}", body, "")


def _rows(schema: str, table: RemoteTable, held: Sequence[StoredColumn], op: int, relation: str) -> sql.Composed:
    shown, placed = [], []
    for number, (column, h) in enumerate(zip(table.columns, held, strict=True)):
        name = sql.Identifier(column.name)
        if h.converted:
            value = sql.SQL(_WRITTEN).format(name)
        else:  # '0' is of a type yet to be found: it settles which function is meant where several would do
            value = sql.SQL("{}({}, '0')").format(_keeper(schema, h.type), name)
        place = sql.Identifier(place_of(number))
        shown.append(sql.SQL("{} AS {}").format(value, name if table.filter is not None else place))
        placed.append(sql.SQL("{} AS {}").format(name, place))
    listed, rows = sql.SQL(", ").join(shown), sql.Identifier(relation)
    if table.filter is None:
        return sql.SQL("SELECT {}::pg_catalog.int2 AS op, {} FROM {}").format(sql.Literal(op), listed, rows)
    return sql.SQL("SELECT {}::pg_catalog.int2 AS op, {} FROM (SELECT {} FROM {}) AS whole WHERE {}").format(
        sql.Literal(op), sql.SQL(", ").join(placed), listed, rows, sql.SQL("(" + table.filter + ")")
    )


def _keeper(schema: str, type_: str) -> sql.Identifier:
    return sql.Identifier(schema, f"keep_{type_}")


def _function(schema: str, name: str, body: sql.Composed, settings: str) -> Iterator[sql.Composed]:
    moments = sql.Literal(sql.Identifier(schema, MOMENTS).as_string(None))
    text = sql.SQL(
        "#variable_conflict use_column\n"
        "DECLARE __hr_moment bigint := pg_catalog.nextval({}::pg_catalog.regclass);\n"
        "BEGIN {} RETURN NULL; END"
    ).format(moments, body)
    yield from _trigger_function(schema, name, text, settings)


def _trigger_function(schema: str, name: str, text: sql.Composed, settings: str) -> Iterator[sql.Composed]:
    """Yield statements that make a trigger function; it writes with our rights.

    Whoever writes to the table, names of operators mean PostgreSQL's own there.
    """
    function = sql.Identifier(schema, name)
    yield sql.SQL(
        f"CREATE OR REPLACE FUNCTION {{}} () RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER{_SEARCH_PATH}{settings}"
        " AS {}"
    ).format(function, sql.Literal(text.as_string(None)))
    yield sql.SQL("REVOKE ALL ON FUNCTION {} () FROM PUBLIC").format(function)


def triggers(
    schema: str, suffix: str, table: tuple[str, str], owned: bool, *, partition: bool = False
) -> Iterator[sql.Composed]:
    """Yield statements that put triggers on a table.

    Args:
        schema: The source's schema.
        suffix: Names the functions.
        table: Schema and name of the table, or of a partition.
        owned: It belongs to the connecting role, so that the triggers can fire where `session_replication_role` is
            `replica`, too.
        partition: It is a partition of what is captured; statements that name it fire its own triggers only.
    """
    on = sql.Identifier(*table)
    kinds = [(kind, f"AFTER {event}", f"REFERENCING {relations}") for kind, event, relations, _ in _TRIGGERS]
    if not partition:
        kinds += [("b", "BEFORE TRUNCATE", ""), ("x", "AFTER TRUNCATE", "")]
    for kind, event, referencing in kinds:
        name = sql.Identifier(f"{schema}_{kind}")
        yield sql.SQL(
            f"CREATE OR REPLACE TRIGGER {{}} {event} ON {{}} {referencing} FOR EACH STATEMENT EXECUTE FUNCTION {{}} ()"
        ).format(name, on, sql.Identifier(schema, f"{kind}_{suffix}"))
        if owned:
            yield sql.SQL("ALTER TABLE ONLY {} ENABLE ALWAYS TRIGGER {}").format(on, name)


def reading(schema: str, suffix: str, columns: int, snapshot: str, after: int | None) -> sql.Composed:
    """Return the COPY of changes that a snapshot did not have yet: `xid`, `op`, columns.

    Args:
        schema: The source's schema.
        suffix: Names the change table.
        columns: How many columns it has.
        snapshot: What is landed, as text of type `pg_snapshot`.
        after: Only rows of later moments: the table was emptied then.
    """
    later = sql.SQL("" if after is None else " AND moment > {}").format(sql.Literal(after))
    places = sql.SQL(", ").join(sql.Identifier(place_of(i)) for i in range(columns))
    return sql.SQL(
        "COPY (SELECT xid, op, {} FROM {} WHERE NOT pg_visible_in_snapshot(xid, {}){}) TO STDOUT (FORMAT csv)"
    ).format(places, changes_of(schema, suffix), sql.Literal(snapshot), later)


def reading_keys(schema: str, suffix: str, places: Sequence[int]) -> sql.Composed:
    """Return the COPY of all keys in a change table as written; some may repeat.

    Args:
        schema: The source's schema.
        suffix: Names the change table.
        places: Places of the key's columns.
    """
    keys = sql.SQL(", ").join(sql.Identifier(place_of(place)) for place in places)
    return sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv)").format(keys, changes_of(schema, suffix))


def stored_columns(described: Mapping[int, StoredColumn], table: RemoteTable) -> tuple[StoredColumn, ...]:
    """Return the storage of a table's columns, in order; dropped ones stay NULL."""
    return tuple(described.get(column.number, StoredColumn("text", True)) for column in table.columns)
