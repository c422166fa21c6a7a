"""Tells which changes came after a TRUNCATE, for capture by triggers.

A TRUNCATE holds its table exclusively until its transaction ends. So every change of another transaction was either
written before (that transaction is over), or will be written when this one is over; only its own transaction's changes
have to be told apart. The moments of these, numbers from a sequence, tell their order.

But no trigger fires at the moment when the table becomes empty. A TRUNCATE, of perhaps several tables, fires all BEFORE
triggers, empties all tables, and fires all AFTER triggers; and other triggers than ours, on this table or on another
one of the same statement, may write to the table before ours fires and after. So ours record a moment on both sides:

- what was written before the first one is gone;
- what was written after the second one counts;
- what was written between them may be either, and nothing that a trigger sees tells which.

When there is something between them, or the first moment is missing (releases up to 0.1 did not record it), the table
is taken anew. That is no great loss: it has just been emptied.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from psycopg import sql

from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.triggers.change_tables import EMPTIED, changes_of


@dataclass(frozen=True, slots=True)
class Truncation:
    """The last TRUNCATE of a table.

    Args:
        moment: Changes that count have a later one.
        clear: No others may count.
    """

    moment: int
    clear: bool


_LAST = """
SELECT DISTINCT ON (suffix) suffix, moment, (
    SELECT max(-b.moment) FROM {emptied} b
    WHERE b.suffix = e.suffix AND b.xid = e.xid AND b.moment < 0 AND -b.moment < e.moment)
FROM {emptied} e WHERE moment > 0 AND NOT pg_visible_in_snapshot(xid, {landed}) ORDER BY suffix, moment DESC
"""


def truncations(connection: Connection, schema: str, landed: str, suffixes: Collection[str]) -> dict[str, Truncation]:
    """Return the last TRUNCATE of emptied tables, by the suffix of their change tables.

    Args:
        connection: To the server, in the landing's snapshot.
        schema: The source's schema there.
        landed: What is landed, as text of type `pg_snapshot`.
        suffixes: The tables that are asked for.
    """
    query = sql.SQL(_LAST).format(emptied=sql.Identifier(schema, EMPTIED), landed=sql.Literal(landed))
    found = [
        (str(suffix), int(str(ended)), None if begun is None else int(str(begun)))
        for suffix, ended, begun in connection.execute(query).fetchall()
    ]
    return {
        suffix: Truncation(ended, begun is not None and not _written(connection, schema, suffix, begun, ended))
        for suffix, ended, begun in found
        if suffix in suffixes
    }


def _written(connection: Connection, schema: str, suffix: str, begun: int, ended: int) -> bool:
    """Return whether rows were written between two moments."""
    query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE moment > {} AND moment < {})")
    of = query.format(changes_of(schema, suffix), sql.Literal(begun), sql.Literal(ended))
    return connection.execute(of).fetchone() == (True,)
