"""Column lists and row filters of captured tables, as of PostgreSQL 15.

How triggers do the same is told in `conditions.py` and `change_tables.py`.

The server applies both to the stream (a row that comes to satisfy the filter is an INSERT there, one that ceases to a
DELETE), and the snapshot copies by the same list and condition. What a user names becomes column numbers, so that a
rename changes nothing; the condition is read back from the publication for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from headrace.errors import UserError
from headrace.names import TableName
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import Found
from headrace.sources.postgres.source_tables import SourceTable

OLDEST = 150000
"""From this version on publications have column lists and row filters."""


@dataclass(frozen=True, slots=True)
class Part:
    """The columns and rows of a table that a user wants captured.

    Args:
        columns: Names of the columns; none for all of them.
        where: Condition on the rows, in PostgreSQL's SQL; None for all of them.
    """

    columns: tuple[str, ...] = ()
    where: str | None = None


def parts_of(tables: Mapping[str, SourceTable]) -> dict[str, Part]:
    """Return what is wanted of tables of which not all is, by the names of their mirrors."""
    narrow = {mirror: table for mirror, table in tables.items() if table.columns or table.where is not None}
    return {mirror: Part(table.columns, table.where) for mirror, table in narrow.items()}


def narrowed(found: Found, part: Part) -> Found:
    """Return a table with the columns and the condition that a user wants.

    Names that it does not have are left out.
    """
    if not part.columns:
        return replace(found, table=replace(found.table, filter=part.where))
    numbers = [c.number for c in found.table.columns if c.name in part.columns]
    return _only(found, numbers, part.where)


def as_before(found: Found, before: RemoteTable) -> Found:
    """Return a table with the columns and the condition of its mirror.

    Args:
        found: The table as the server has it.
        before: As it was landed; columns are found by number, so that renamed ones are.
    """
    if not before.listed:
        return replace(found, table=replace(found.table, filter=before.filter))
    return _only(found, [c.number for c in before.columns], before.filter)


def _only(found: Found, numbers: Iterable[int], where: str | None) -> Found:
    table, wanted = found.table, set(numbers)
    stamps = {number: stamp for number, stamp in found.stamps.items() if number in wanted}
    rest = table.marks.partition(" ")[2]
    return replace(
        found,
        left_out=(),
        stamps=stamps,
        table=replace(
            table,
            columns=tuple(c for c in table.columns if c.number in wanted),
            marks=f"{','.join(stamps.values())} {rest}".strip(),
            listed=True,
            filter=where,
        ),
    )


def objections(found: Found, part: Part, version: int, *, triggers: bool = False) -> tuple[str, ...]:
    """Return the reasons against capturing a part of a table.

    Args:
        found: The table, narrowed already.
        part: What is wanted of it.
        version: The server's version.
        triggers: Triggers capture, which publish nothing and see old rows whole.
    """
    if not part.columns and part.where is None:
        return ()
    table, there = found.table, {c.name for c in found.table.columns}
    said = []
    if version < OLDEST and not triggers:
        said.append(f"COLUMNS and WHERE need PostgreSQL 15, and this is {version // 10000}")
    if missing := [name for name in part.columns if name not in there]:
        said.append(f"has no column {', '.join(missing)} that the stream carries")
    if part.columns and table.identity == "f" and not triggers:
        said.append("has REPLICA IDENTITY FULL, which needs all columns: leave COLUMNS out, or give it a key")
    elif part.columns and (lacking := [name for name in table.key if name not in there]):
        said.append(f"is known by columns that are not among COLUMNS: {', '.join(lacking)}")
    if part.columns and not triggers and (wider := [p for p in found.partitions if p.identity == "f" or p.key - there]):
        said.append(
            "has partitions known by more than COLUMNS, whose UPDATEs and DELETEs PostgreSQL would refuse: "
            + ", ".join(map(str, wider))
        )
    return tuple(said)


_CONDITIONS = """
SELECT r.prrelid::bigint, pg_get_expr(r.prqual, r.prrelid)
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = %s AND r.prqual IS NOT NULL
"""


def as_published(
    connection: Connection, publication: str, tables: Mapping[TableName, RemoteTable]
) -> dict[TableName, RemoteTable]:
    """Return tables with the row filters of the publication, which follow renamed columns.

    Args:
        connection: To the server.
        publication: The publication.
        tables: Tables by mirror; those without a filter stay as they are.
    """
    if not any(t.filter for t in tables.values()):
        return dict(tables)
    found = {oid: str(text) for oid, text in connection.execute(_CONDITIONS, (publication,)).fetchall()}
    return {n: replace(t, filter=found.get(t.oid, t.filter)) if t.filter else t for n, t in tables.items()}


def by_present_names(part: Part, before: RemoteTable, now: RemoteTable) -> Part:
    """Return the part of a table that is captured, in the names that its columns have now.

    Args:
        part: The part as the user wrote it.
        before: The table as it was landed.
        now: The table as the server has it.
    """
    if not part.columns:
        return replace(part, where=before.filter)
    numbers = {c.number for c in before.columns}
    return Part(tuple(c.name for c in now.columns if c.number in numbers), before.filter)


_USED = """
SELECT r.prrelid::bigint, d.refobjsubid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
    JOIN pg_depend d ON d.classid = 'pg_publication_rel'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = r.prrelid AND d.refobjsubid > 0
WHERE p.pubname = %s AND r.prqual IS NOT NULL
"""


def check_conditions(connection: Connection, publication: str, tables: Sequence[RemoteTable]) -> None:
    """Refuse row filters under which PostgreSQL would refuse UPDATEs.

    Args:
        connection: A connection in the transaction that writes the publication.
        publication: The publication.
        tables: Its tables.

    Raises:
        UserError: `SOURCE_FILTER_INVALID`.
    """
    if not any(t.filter for t in tables):
        return
    listed: dict[int, set[int]] = {}
    for oid, number in connection.execute(_USED, (publication,)).fetchall():
        listed.setdefault(int(str(oid)), set()).add(int(str(number)))
    for table in tables:
        key = {table.columns[place].number for place in table.key_places}
        if table.filter and table.identity in "di" and (strange := listed.get(table.oid, set()) - key):
            names = [c.name for c in table.columns if c.number in strange] or ["columns that are not captured"]
            raise UserError(
                "SOURCE_FILTER_INVALID",
                f"The condition on {table} uses {', '.join(names)}, which is not part of its replica identity.",
                detail="PostgreSQL would refuse every UPDATE and DELETE of the table.",
                hint="Use columns of the replica identity only, or run there: ALTER TABLE "
                f"{sql.Identifier(table.schema, table.name).as_string(None)} REPLICA IDENTITY FULL;",
            )


def check_syntax(connection: Connection, table: RemoteTable, instead_of: RemoteTable | None = None) -> None:
    """Refuse invalid row filters.

    The condition is read as a single statement, so that nothing else can hide in it.

    Args:
        connection: A connection.
        table: Of which it is read.
        instead_of: The table that the user is told of, where that is another one.

    Raises:
        UserError: `SOURCE_FILTER_INVALID`.
    """
    if table.filter is None:
        return
    query = sql.SQL("SELECT FROM ONLY {} WHERE {} LIMIT 0").format(
        sql.Identifier(table.schema, table.name), condition(table)
    )
    with reading(instead_of or table):
        connection.execute(query, prepare=True)


def condition(table: RemoteTable) -> sql.Composable:
    """Return a table's condition in brackets; a comment at its end does not swallow them."""
    return sql.SQL("(" + (table.filter or "true") + "\n)")


@contextmanager
def reading(*tables: RemoteTable) -> Iterator[None]:
    """Tell the server's errors about conditions as such.

    Raises:
        UserError: `SOURCE_FILTER_INVALID`.
    """
    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        raise
    except psycopg.Error as error:
        filtered = [str(t) for t in tables if t.filter]
        if not filtered or (error.sqlstate or "")[:2] not in ("42", "0A", "22"):
            raise
        raise UserError(
            "SOURCE_FILTER_INVALID",
            f"PostgreSQL does not accept the condition on {', '.join(filtered)}.",
            detail=str(error).strip(),
            hint="Use columns of the table, constants, and built-in functions and operators that always give the same.",
        ) from error
