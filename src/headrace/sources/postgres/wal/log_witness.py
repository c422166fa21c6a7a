"""Detects a server that was set back to an earlier state, by a row written per landing.

A copy of the disk that is put back has the same system identifier and timeline, and after a while its log and its
transaction ids are beyond what is landed again: they then mean other changes. So something must be known of what was
landed that only the server has which it was landed from.

From the log that is the last transaction that was landed: where its commit record begins, when that was written, and
its id. It is looked for only where the slot stands before what is landed. It always does on a copy from before the last
landing, since it is moved after each one. (Else it does so only after a crash, of the process or the server, as
positions of slots are saved now and then.)

Under triggers it is a row that each landing leaves in the source's schema before it is published, with a text drawn by
lot, and that stays until after the publication of the next one. Not being there also gives away the opposite: a project
that was put back to an earlier state, or copied, and whose changes were let go of by another landing meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql

from headrace.sources.capture import Json
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.health import stop_reasons
from headrace.sources.postgres.triggers.change_tables import LANDINGS
from headrace.sources.postgres.wal import slots
from headrace.sources.postgres.wal.pgoutput import Begin

NOTHING: Final[dict[str, Any]] = {"last": None}
"""Part of a position where a slot begins: nothing that it gives is landed."""


def landed(last: Begin | None, before: Json) -> dict[str, Any]:
    """Return the part of a position: the last transaction that is landed, where that is known.

    Args:
        last: The last one of a landing; None where it had none.
        before: The position before it.
    """
    if last is not None:
        return {"last": _known(last)}
    return {"last": before["last"]} if "last" in before else {}


def _known(last: Begin) -> list[int]:
    return [last.lsn, last.time, last.xid]


def require_same_log(connection: Connection, slot: str, confirmed: int, position: Json) -> None:
    """Refuse to move a slot to a position that was landed from another log.

    Args:
        connection: A connection, not in a transaction.
        slot: The slot, and the publication.
        confirmed: Where the slot stands.
        position: What is landed.

    Raises:
        UserError: `SOURCE_CHANGED`.
    """
    if "last" not in position:  # all tables were taken anew, and nothing was landed from the log since
        return
    last, found = position["last"], slots.last_begun(connection, slot, slot, position["lsn"])
    expected = last if last is not None and last[0] >= confirmed else None
    if expected != (None if found is None else _known(found)):
        raise stop_reasons.changed(
            "The source's server went back to an earlier state: its log is not the one that was landed."
        )


def leave(connection: Connection, schema: str) -> str:
    """Write a row to the server as witness of a landing; return its text.

    Its commit is flushed, and with it everything that was ever visible. A commit with `synchronous_commit = off` is
    visible before it is safe. If it were landed and then lost in a crash, the mirror would have rows that never were;
    worse, its transaction id would be given out once more, and what that transaction writes would be taken for landed.

    Raises:
        UserError: `CAPTURE_REMOVED`: there is no such table.
    """
    text = uuid.uuid4().hex
    with _there(schema), connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = local")
        connection.execute(
            sql.SQL("INSERT INTO {} VALUES (pg_current_xact_id(), {})").format(
                sql.Identifier(schema, LANDINGS), sql.Literal(text)
            )
        )
    return text


def require(connection: Connection, schema: str, position: Json) -> None:
    """Refuse to continue where the row that the last landing wrote is missing.

    Args:
        connection: A connection whose transaction shows what is to be landed.
        schema: The source's schema.
        position: What is landed.

    Raises:
        UserError: `SOURCE_CHANGED`; `CAPTURE_REMOVED` where no landing's row is there.
    """
    with _there(schema):
        rows = connection.execute(sql.SQL("SELECT text FROM {}").format(sql.Identifier(schema, LANDINGS))).fetchall()
    if not rows:
        raise stop_reasons.removed(f"Table {schema}.{LANDINGS} was emptied.")
    if (position.get("witness"),) not in rows:
        raise stop_reasons.changed(
            "The source's server went back to an earlier state; or this project did, or a copy of it landed the source."
        )


@contextmanager
def _there(schema: str) -> Iterator[None]:
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise stop_reasons.removed(f"Table {schema}.{LANDINGS} was dropped.") from error
