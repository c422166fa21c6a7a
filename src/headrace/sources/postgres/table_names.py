"""Follows the names of captured tables: a mirror goes on with its table under whatever name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headrace.names import TableName
from headrace.sources.capture import Json, Landing
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable

NAMES = "names"
"""In a position: the tables' names when it was landed, by oid."""


def with_names(
    connection: Connection,
    landing: Landing,
    former: Json,
    known: Mapping[TableName, RemoteTable],
    present: Sequence[RemoteTable],
) -> Landing:
    """Add tables' names to a landing's position, and notices of renamed ones.

    Args:
        connection: To the server.
        landing: The landing.
        former: The position before it; one without names has those by which the mirrors were made.
        known: The tables as the mirrors were made of them.
        present: The tables as they are.
    """
    mirrors = {str(t.oid): n for n, t in known.items()}
    before = {str(t.oid): str(t) for t in known.values()} | dict(former.get(NAMES, {}))
    now = {str(t.oid): str(t) for t in present}
    notices = tuple(
        _notice(connection, mirrors[oid], before[oid], name, mirrors)
        for oid, name in now.items()
        if oid in mirrors and before[oid] != name
    )
    return replace(
        landing,
        position={**landing.position, NAMES: now},
        keep_position=landing.keep_position or bool(notices),
        notices=(*landing.notices, *notices),
    )


_CALLED = """
SELECT c.oid::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname = %s
"""


def _notice(connection: Connection, mirror: TableName, before: str, now: str, mirrors: Mapping[str, TableName]) -> str:
    told = f"Table {before} is called {now} now; its mirror goes on with it, under its own name."
    others = {str(row[0]) for row in connection.execute(_CALLED, (before,)).fetchall()}
    if not others - mirrors.keys():
        return told
    return (
        f"{told} Another table is called {before} by now, which no mirror follows. To follow that one instead: ALTER "
        f"SOURCE {mirror.namespace[-1]} DROP TABLES ({mirror.table}), then ADD TABLES ({before} AS {mirror.table})."
    )


def followed(
    position: Json | None, mirrors: Mapping[TableName, int], declared: Mapping[TableName, str]
) -> Iterator[tuple[TableName, str]]:
    """Yield the mirrors whose table is called otherwise than the source says, and how.

    Args:
        position: What is landed.
        mirrors: Oids of their tables.
        declared: The tables' names as the source was created with them.
    """
    names = (position or {}).get(NAMES, {})
    for mirror, oid in mirrors.items():
        name = names.get(str(oid), declared[mirror])
        if name != declared[mirror]:
            yield mirror, name
