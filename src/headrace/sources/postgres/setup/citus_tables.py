"""Finds tables whose rows Citus keeps in shards.

Such a table is an empty shell on the server where it has its name: what is written to it goes to the tables of shards,
on this server or others. Captured from one server, its snapshot would have all rows, and its changes would never come.
That holds for distributed tables, for reference tables, and for local ones that Citus manages; plain local tables of a
coordinator are captured as of any server.
"""

from __future__ import annotations

from collections.abc import Collection

from headrace.sources.postgres.connection import Connection

PRESENT = "to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"
"""SQL: whether Citus is installed in the database."""

_SHARDED = """
SELECT logicalrelid::oid::bigint, partmethod::text, repmodel::text FROM pg_catalog.pg_dist_partition
WHERE logicalrelid::oid = ANY(%s)
"""


def sharded(connection: Connection, oids: Collection[int]) -> dict[int, str]:
    """Return the kind of tables in shards, by oid.

    Args:
        connection: To a database that has Citus.
        oids: The tables that are asked for.
    """
    rows = connection.execute(_SHARDED, (list(oids),)).fetchall()
    return {int(str(oid)): _kind(str(method), str(model)) for oid, method, model in rows}


def _kind(method: str, model: str) -> str:
    if method != "n":
        return "a distributed table of Citus"
    return "a reference table of Citus" if model == "t" else "a table that Citus manages"
