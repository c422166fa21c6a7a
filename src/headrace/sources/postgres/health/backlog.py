"""Committed transactions not yet landed: how many, and how long the oldest has waited.

Nothing that landings use is touched. The slot's backlog is counted in a temporary copy of the slot: whoever peeked at
the slot itself would keep a landing out of it meanwhile. Counting decodes the log, so it ends after a while; what it
has not reached by then is told as unknown.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.server import settled
from headrace.sources.postgres.triggers.change_tables import EMPTIED, LANDINGS
from headrace.sources.postgres.wal.slots import lsn_of

COUNTED = 100_000
"""Messages of the log in which transactions are counted, about, and rows of each change table."""

PATIENCE = "2s"
"""Time that a count may take, as PostgreSQL writes times."""

_UNCOUNTED = (
    psycopg.errors.QueryCanceled,
    psycopg.errors.ConfigurationLimitExceeded,  # no slot is free
    psycopg.errors.ObjectNotInPrerequisiteState,  # the slot was lost meanwhile
    psycopg.errors.UndefinedObject,  # or dropped
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.FeatureNotSupported,
)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Transactions that wait to be landed.

    Args:
        transactions: How many transactions that changed captured tables.
        more: There are that many at least: counting was ended.
        seconds: How long ago the oldest was committed; 0 when there are none, None where that is not known.
        at_most: That is how long at most, as the server keeps no times of commits.
    """

    transactions: int
    more: bool
    seconds: float | None
    at_most: bool = False


_NUMBER = "('x' || encode(substr(head, {}, 8), 'hex'))::bit(64)::bigint"
_BEGUN = f"""
SELECT count(*), extract(epoch FROM clock_timestamp()) - min({_NUMBER.format(10)}) / 1e6 - 946684800, max(messages)
FROM (SELECT head, lead(get_byte(head, 0)) OVER (ORDER BY place) AS next, count(*) OVER () AS messages
    FROM (SELECT substr(data, 1, 21) AS head, place FROM pg_logical_slot_peek_binary_changes(
        %s, %s, %s, 'proto_version', '1', 'publication_names', %s) WITH ORDINALITY AS c (lsn, xid, data, place)) m) b
WHERE get_byte(head, 0) = ascii('B') AND next <> ascii('C') AND {_NUMBER.format(2)} >= %s
"""
"""Of each BEGIN: at byte 2 where its commit record begins, at byte 10 when that was written, in µs since 2000.
Servers before 15 send transactions without a change of captured tables, too: BEGIN, and COMMIT at once."""


def in_log(connection: Connection, slot: str, publication: str, landed: int) -> Backlog | None:
    """Count the backlog in the write-ahead log; None where that is not possible.

    Args:
        connection: A connection, not in a transaction.
        slot: The slot; it is not lost.
        publication: The publication.
        landed: Up to where commits are landed.
    """
    copy = f"headrace_tmp_{uuid.uuid4().hex[:12]}"
    try:
        connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s, true)", (slot, copy))
        until = lsn_of(settled(connection))
        quoted = '"' + publication.replace('"', '""') + '"'
        connection.execute(f"SET statement_timeout = '{PATIENCE}'")
        try:
            return _counted(connection, (copy, until, COUNTED, quoted, landed))
        except psycopg.errors.QueryCanceled:
            first = _counted(connection, (copy, until, 1, quoted, landed))
            return Backlog(first.transactions, True, first.seconds)
    except _UNCOUNTED:
        return None
    finally:
        if not connection.broken:
            connection.execute("SET statement_timeout = 0")
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (copy,)
            )


def _counted(connection: Connection, values: Sequence[object]) -> Backlog:
    row: tuple[Any, ...] | None = connection.execute(_BEGUN, values).fetchone()
    assert row is not None, "an aggregate has one row"
    transactions, seconds, messages = row
    return Backlog(transactions, (messages or 0) >= COUNTED, 0.0 if seconds is None else max(0.0, float(seconds)))


def in_change_tables(
    connection: Connection, schema: str, names: Sequence[str], landed: str, clock: float | None
) -> tuple[int | None, Backlog | None]:
    """Return how many rows wait in change tables, and of how many transactions.

    None of each where even finding one takes too long.

    Args:
        connection: The connection.
        schema: The source's schema.
        names: Its tables.
        landed: What is landed, as text of type `pg_snapshot`.
        clock: The server's time before `landed` was taken, in seconds since 1970: what it does not show was committed
            later. None where that is not known.
    """
    if not names:
        return 0, Backlog(0, False, None)
    timed = connection.execute("SELECT current_setting('track_commit_timestamp')::bool").fetchone() == (True,)
    changes = [name for name in names if name != LANDINGS]
    row = None
    for limit in (COUNTED, 1):  # one row may be far behind many that are landed
        with suppress(psycopg.errors.QueryCanceled), connection.transaction():
            connection.execute(f"SET LOCAL statement_timeout = '{PATIENCE}'")
            row = _waiting(connection, schema, changes, landed, limit, timed=timed)
            connection.execute("SET LOCAL statement_timeout = 0")
            break
    if row is None:
        return None, None
    transactions, rows, most, now, committed = row
    since = clock if committed is None else committed
    seconds = 0.0 if not transactions else None if since is None else max(0.0, now - since)
    return rows, Backlog(transactions, bool(most), seconds, at_most=bool(seconds) and committed is None)


def _waiting(
    connection: Connection, schema: str, names: Sequence[str], landed: str, limit: int, *, timed: bool
) -> tuple[Any, ...]:
    """Count what waits, of each change table up to a limit; say whether that was reached."""
    query = sql.SQL("(SELECT xid, {} AS rows, {} AS name FROM {} WHERE NOT pg_visible_in_snapshot(xid, {}) LIMIT {})")
    each = (
        query.format(
            sql.SQL("0" if name == EMPTIED else "1"),
            sql.Literal(name),
            sql.Identifier(schema, name),
            sql.Literal(landed),
            sql.Literal(limit),
        )
        for name in names
    )
    first = "min(extract(epoch FROM pg_xact_commit_timestamp(xid::xid)))" if timed else "NULL"
    whole = sql.SQL(
        "WITH waiting AS ({}) SELECT count(DISTINCT xid), coalesce(sum(rows), 0)::bigint, "
        "EXISTS (SELECT FROM waiting GROUP BY name HAVING count(*) >= {}), "
        f"extract(epoch FROM clock_timestamp())::float8, ({first})::float8 FROM waiting"
    ).format(sql.SQL(" UNION ALL ").join(each), sql.Literal(limit))
    row: tuple[Any, ...] | None = connection.execute(whole).fetchone()
    assert row is not None, "an aggregate has one row"
    return row
