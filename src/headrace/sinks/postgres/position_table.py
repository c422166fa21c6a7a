"""The table in which a target keeps which version of a stream table a sink's rows are.

It is in a schema `headrace`, which the sink's role makes, or is given. A row is locked before anything is written, so
that of two who write the second sees what the first has done, and moved in the transaction of the rows: nothing else
makes a sink exactly once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.sinks.postgres.target_connection import Connection

SCHEMA = "headrace"
TABLE = f"{SCHEMA}.sink_position"

NO_LOG = ""
"""In the place of a change log where there was none."""

_DDL = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
  sink uuid PRIMARY KEY,
  name text NOT NULL,
  stream text NOT NULL,
  relation bigint NOT NULL,
  version bigint NOT NULL,
  log text NOT NULL,
  target oid NOT NULL,
  target_name text NOT NULL,
  columns jsonb NOT NULL,
  rows bigint NOT NULL,
  made boolean NOT NULL,
  written_at timestamptz NOT NULL DEFAULT now()
)
"""
_STATE = re.compile(r"(.*) (\d+)", re.DOTALL)
"""Text of the column `log`: a change log and a snapshot.

Both are in it, as roles may write the table that cannot add a column to it. A former Headrace wrote the log alone;
where one goes on with such a row, it takes it for that of another log, and compares.
"""

_COMMENT = f"COMMENT ON TABLE {TABLE} IS 'Which version of a stream table the rows of a sink are; written by Headrace.'"


@dataclass(frozen=True, slots=True)
class Kept:
    """A row of the table.

    Args:
        version: The version that the target's rows are.
        relation: The stream table's identity.
        log: The change log at that version; `NO_LOG` for none.
        target: The table's oid.
        columns: Names and types of the stream table's columns then.
        rows: Rows that the target has by what was written.
        made: Whether Headrace made the target.
        snapshot: The stream table's snapshot at that version, 0 for none; None where a former Headrace wrote the row.
    """

    version: int
    relation: int
    log: str
    target: int
    columns: Sequence[Sequence[str]]
    rows: int
    made: bool
    snapshot: int | None = None


def prepare(connection: Connection) -> None:
    """Make the table if it is missing."""
    if _exists(connection):
        return
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('headrace sinks'))")
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone()
    if found is None:  # only then: IF NOT EXISTS asks for the privilege even where it does
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
    if not _exists(connection):
        connection.execute(_DDL)
        connection.execute(_COMMENT)


def _exists(connection: Connection) -> bool:
    return connection.execute("SELECT to_regclass(%s) IS NOT NULL", (TABLE,)).fetchone() == (True,)


def locked(connection: Connection, sink: str) -> Kept | None:
    """Return a sink's row, locked until this transaction ends; None where there is none.

    A sink without a row is locked all the same.
    """
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 22))", (sink,))
    query = f"SELECT version, relation, log, target, columns, rows, made FROM {TABLE} WHERE sink = %s FOR UPDATE"
    row = connection.execute(query, (sink,)).fetchone()
    if row is None:
        return None
    kept = Kept(*row)  # type: ignore[arg-type]
    found = _STATE.fullmatch(kept.log)
    return kept if found is None else replace(kept, log=found[1], snapshot=int(found[2]))


def move(connection: Connection, sink: str, name: str, stream: str, target_name: str, kept: Kept) -> None:
    """Write a sink's row."""
    values = {
        "sink": sink,
        "name": name,
        "stream": stream,
        "relation": kept.relation,
        "version": kept.version,
        "log": kept.log if kept.snapshot is None else f"{kept.log} {kept.snapshot}",
        "target": kept.target,
        "target_name": target_name,
        "columns": json.dumps(kept.columns),
        "rows": kept.rows,
        "made": kept.made,
    }
    given = ", ".join(f"%({column})s" for column in values)
    sets = ", ".join(f"{column} = excluded.{column}" for column in values)
    connection.execute(
        f"INSERT INTO {TABLE} ({', '.join(values)}) VALUES ({given})"
        f" ON CONFLICT (sink) DO UPDATE SET {sets}, written_at = now()",
        values,
    )


def forget(connection: Connection, sink: str) -> None:
    """Delete a sink's row, if there is one."""
    if _exists(connection):
        connection.execute(f"DELETE FROM {TABLE} WHERE sink = %s", (sink,))


def other_sink(connection: Connection, sink: str, target: int, target_name: str) -> str | None:
    """Return another sink that writes to a table, of whatever project; None without one.

    A database that was restored from a dump has other oids, and a table may have that of another one before.
    """
    query = f"SELECT name FROM {TABLE} WHERE target = %s AND target_name = %s AND sink <> %s"
    row = connection.execute(query, (target, target_name, sink)).fetchone()
    return None if row is None else str(row[0])
