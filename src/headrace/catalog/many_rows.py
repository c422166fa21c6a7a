"""Inserts, updates and deletes many rows by one statement each.

Drivers run a statement of many parameter sets once for each set. SQLite takes a few microseconds for that, PostgreSQL a
message there and back, so it is handed all rows in one parameter, as JSON.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

Row = Mapping[str, object]


def insert_rows(connection: Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows, which all have the same columns.

    Args:
        connection: Inside the transaction.
        table: The table.
        rows: By column; nothing is done for none.
    """
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        connection.execute(sa.insert(table), rows)
        return
    columns = list(rows[0])
    given = _recordset({c: table.c[c] for c in columns})
    statement = sa.insert(table).from_select(columns, sa.select(given), include_defaults=False)
    connection.execute(statement, {_GIVEN: _as_json(rows)})


def update_rows(
    connection: Connection,
    table: sa.Table,
    where: Mapping[str, str],
    rows: Sequence[Row],
    also: Mapping[str, sa.ColumnElement[Any]] | None = None,
) -> int:
    """Update rows, each to values of its own; return how many were there.

    Args:
        connection: Inside the transaction.
        table: The table.
        where: Keys of `rows` that say which row is meant, and the columns that they are compared with.
        rows: The other keys are columns, with their new values; nothing is done for none.
        also: What other columns become in all of them.
    """
    if not rows:
        return 0
    if connection.dialect.name != "postgresql":
        own = [table.c[column] == sa.bindparam(f"of_{key}") for key, column in where.items()]
        new = {c: sa.bindparam(f"new_{c}", type_=table.c[c].type) for c in rows[0] if c not in where}
        given_all = [{f"{'of' if key in where else 'new'}_{key}": v for key, v in row.items()} for row in rows]
        return connection.execute(sa.update(table).where(*own).values({**new, **(also or {})}), given_all).rowcount
    given = _recordset({key: table.c[where.get(key, key)] for key in rows[0]})
    same = [table.c[column] == given.c[key] for key, column in where.items()]
    values = {key: given.c[key] for key in rows[0] if key not in where}
    statement = sa.update(table).where(*same).values({**values, **(also or {})})
    return connection.execute(statement, {_GIVEN: _as_json(rows)}).rowcount


def delete_rows(connection: Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Delete rows by the values of some columns.

    Args:
        connection: Inside the transaction.
        table: The table.
        rows: By column; nothing is done for none.
    """
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        own = [table.c[column] == sa.bindparam(column) for column in rows[0]]
        connection.execute(sa.delete(table).where(*own), rows)
        return
    given = _recordset({column: table.c[column] for column in rows[0]})
    same = [table.c[column] == given.c[column] for column in rows[0]]
    connection.execute(sa.delete(table).where(*same), {_GIVEN: _as_json(rows)})


_GIVEN = "given_rows"


def _recordset(columns: Mapping[str, sa.Column[Any]]) -> sa.TableValuedAlias:
    """Return the rows of the parameter, as a table with some columns' types."""
    rows = sa.cast(sa.bindparam(_GIVEN, type_=sa.Text), sa.JSON)
    made = sa.func.json_to_recordset(rows).table_valued(*(sa.column(key, c.type) for key, c in columns.items()))
    return made.render_derived(name="given", with_types=True)


def _as_json(rows: Sequence[Row]) -> str:
    return json.dumps(rows, default=_text)


def _text(value: object) -> str:
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        return value.isoformat()
    raise TypeError(f"{value!r} is no value of a column")
