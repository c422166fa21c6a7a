"""Names the state that all definitions are in, which tells who has read them of changes.

One row holds a random value; a transaction that changes stream tables, or what they read, draws another one at its end.
Whoever finds the value that it knows, in the same transaction that it would read them in, need not read them. It is
random, and does not count up, for a catalog may be put back from a backup under a process that runs, and would then
count up to a number that the process knows, by other changes.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from headrace.catalog import schema as t

_STATE = sa.select(t.definitions.c.state)
_CHANGED = "headrace_definitions_changed"
_WATCHED = (t.stream_table, t.dependency)


def state(connection: Connection) -> str | None:
    """Return the name of the state that all definitions are in; None where the row is missing."""
    return connection.execute(_STATE).scalar_one_or_none()


def watch(engine: Engine) -> None:
    """Notice what changes definitions.

    The row is written last in its transaction: it is the one lock for which all such transactions wait, and whoever
    holds it waits for nothing more.
    """

    @event.listens_for(engine, "after_execute")
    def _executed(
        connection: Connection, statement: Any, _many: Any, _parameters: Any, _options: Any, result: Any
    ) -> None:
        if isinstance(statement, sa.UpdateBase) and statement.table in _WATCHED and result.rowcount != 0:
            connection.info[_CHANGED] = True

    @event.listens_for(engine, "commit")
    def _commits(connection: Connection) -> None:
        if connection.info.pop(_CHANGED, False):
            connection.execute(sa.update(t.definitions).values(state=t.new_state()))

    @event.listens_for(engine, "rollback")
    def _rolls_back(connection: Connection) -> None:
        if not connection.invalidated:  # what is gone cannot be asked, and has forgotten it
            connection.info.pop(_CHANGED, None)
