"""Tells what became of triggers and change tables, where changes may have been missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import sql

from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.triggers.change_tables import EMPTIED, LANDINGS
from headrace.sources.postgres.triggers.trigger_requirements import Fitness


@dataclass(frozen=True, slots=True)
class _Mark:
    """The parts of `Installed.mark`.

    Args:
        triggers: By oid: the table, whether it is enabled, its `xmin`; its function, and that one's `xmin`.
        table: Oid of the change table and its file; empty when there is none.
    """

    triggers: Mapping[str, tuple[str, ...]]
    table: tuple[str, ...]

    @classmethod
    def of(cls, mark: str) -> _Mark:
        triggers, _, rest = mark.partition(" ")
        table = rest.partition(" ")[0]
        listed = [tuple(part.split(":")) for part in triggers.split(",") if ":" in part]
        return cls({oid: tuple(of) for oid, *of in listed}, tuple(table.split(":")) if ":" in table else ())


def what_happened(
    connection: Connection, schema: str, suffix: str, table: RemoteTable, fit: Fitness, before: str, now: str
) -> str:
    """Return a sentence for people.

    Args:
        connection: To the server.
        schema: The source's schema there.
        suffix: Names the change table and the functions.
        table: The captured table.
        fit: Its fitness now.
        before: The mark of what was installed.
        now: The mark of what there is.
    """
    if fit.against:
        return f"{table} {fit.against}."
    was, found = _Mark.of(before), _Mark.of(now)
    return next(_table(f"{schema}.t_{suffix}", was, found), None) or _triggers(connection, schema, table, was, found)


def _table(name: str, was: _Mark, now: _Mark) -> Iterator[str]:
    if not now.table:
        yield f"The change table {name} was dropped."
    elif was.table[:1] != now.table[:1]:
        yield f"The change table {name} was replaced by another one of that name."
    elif was.table != now.table:
        yield f"The change table {name} was emptied or rewritten (TRUNCATE, VACUUM FULL, CLUSTER)."


_NAMES = """
SELECT oid::text, tgname::text, tgenabled::text FROM pg_trigger
WHERE oid::text = ANY(%s) OR tgrelid = %s AND tgname = ANY(%s)
"""


def _triggers(connection: Connection, schema: str, table: RemoteTable, was: _Mark, now: _Mark) -> str:
    expected = [f"{schema}_{kind}" for kind in "iudx"]
    rows = connection.execute(_NAMES, (list(now.triggers), table.oid, expected)).fetchall()
    names = {str(oid): (str(name), str(enabled)) for oid, name, enabled in rows}
    if missing := sorted(set(expected) - {name for name, _ in names.values()}):
        return f"The trigger {missing[0]} of {table} was dropped."
    for oid, (_, enabled, written, *function) in was.triggers.items():
        if oid not in now.triggers:
            return f"Triggers of {table} were dropped, and others were made in their place."
        name, (_, enabled_now, written_now, *function_now) = names.get(oid, ("", ""))[0], now.triggers[oid]
        if enabled != enabled_now:
            how = "disabled" if enabled_now == "D" else "set to fire in other sessions than before"
            return f"The trigger {name} of {table} was {how}."
        if written != written_now:
            return f"The trigger {name} of {table} was disabled for a while, or altered."
        if function != function_now:
            return f"The function of the trigger {name} of {table} was replaced."
    return f"The triggers of {table} are not those that were installed."


def what_is_missing(connection: Connection, schema: str, tables: Sequence[tuple[str, RemoteTable]]) -> str:
    """Return a sentence for people, where something that a source needs is not there.

    Args:
        connection: To the server.
        schema: The source's schema there.
        tables: The captured tables, each after the suffix of its change table.
    """
    rows = connection.execute(
        "SELECT c.relname::text FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid "
        "WHERE n.nspname = %s",
        (schema,),
    ).fetchall()
    if not rows:
        return f"The schema {schema}, which has the source's change tables, was dropped."
    there = {row[0] for row in rows}
    for suffix, table in tables:
        if f"t_{suffix}" not in there:
            return f"The change table {schema}.t_{suffix} of {table} was dropped."
    gone = [f"{schema}.{name}" for name in (EMPTIED, LANDINGS) if name not in there]
    return f"The table {gone[0]} was dropped." if gone else "Change tables were dropped."


def deleted_changes(connection: Connection, schema: str, landed: str) -> frozenset[str]:
    """Return change tables, by suffix, of which rows were deleted or updated since a landing.

    Args:
        connection: To the server, in the landing's snapshot.
        schema: The source's schema there.
        landed: What is landed, as text of type `pg_snapshot`.
    """
    query = sql.SQL("SELECT suffix FROM {} WHERE moment = 0 AND NOT pg_visible_in_snapshot(xid, {})")
    found = connection.execute(query.format(sql.Identifier(schema, EMPTIED), sql.Literal(landed))).fetchall()
    return frozenset(str(row[0]) for row in found)
