"""Random DDL between random changes: columns that come, change and go, replica identities, partitions, new tables.

What a table looks like is asked of the server each time, since what altered it may have been rolled back.
"""

from __future__ import annotations

import itertools
import random

import psycopg

TYPES = ("int", "text", "varchar(10)", "numeric(9,2)")
WIDER = {
    "integer": "bigint",
    "character varying(10)": "varchar(40)",
    "character varying(40)": "text",
    "numeric(9,2)": "numeric(14,3)",
}
KEYS = {"here": "id", "there": "id", "bag": "x", "parted": "id"}


class Alterations:
    """Alters the tables of a history; none of the columns that its other changes speak of."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def fill(self, connection: psycopg.Connection, chance: random.Random) -> None:
        """Change values of a column that was added."""
        table = chance.choice(list(KEYS))
        if columns := _added(connection, table):
            name, type_ = chance.choice(list(columns.items()))
            value = chance.choice(("NULL", f"{chance.randint(1, 99)}::{type_}"))
            least = chance.randint(0, 12)
            touched = f"{KEYS[table]} BETWEEN {least} AND {least + 3}"
            connection.execute(f"UPDATE {table} SET {name} = {value} WHERE {touched}")

    def alter(self, connection: psycopg.Connection, chance: random.Random) -> None:
        """Alter a table, with changes before and after it in the same transaction."""
        table = chance.choice(list(KEYS))
        doing = (self._add, self._add, self._drop, self._rename, self._widen, self._identity, self._move)
        for _ in range(chance.choice((1, 1, 2))):
            self.fill(connection, chance)
            for statement in chance.choice(doing)(connection, table, chance):
                connection.execute(statement)
            self.fill(connection, chance)

    def _add(self, _: psycopg.Connection, table: str, chance: random.Random) -> list[str]:
        default = chance.choice(("", "", "", " DEFAULT '7'"))
        return [f"ALTER TABLE {table} ADD extra{next(self._numbers)} {chance.choice(TYPES)}{default}"]

    def _drop(self, connection: psycopg.Connection, table: str, chance: random.Random) -> list[str]:
        columns = list(_added(connection, table))
        return [f"ALTER TABLE {table} DROP {chance.choice(columns)}"] if columns else []

    def _rename(self, connection: psycopg.Connection, table: str, chance: random.Random) -> list[str]:
        columns = list(_added(connection, table))
        new = f"extra{next(self._numbers)}"
        return [f"ALTER TABLE {table} RENAME {chance.choice(columns)} TO {new}"] if columns else []

    def _widen(self, connection: psycopg.Connection, table: str, chance: random.Random) -> list[str]:
        columns = [(name, WIDER[type_]) for name, type_ in _added(connection, table).items() if type_ in WIDER]
        if not columns:
            return []
        name, wider = chance.choice(columns)
        return [f"ALTER TABLE {table} ALTER {name} TYPE {wider}"]

    def _identity(self, _: psycopg.Connection, table: str, chance: random.Random) -> list[str]:
        kept = {"there": "USING INDEX there_key", "bag": "FULL"}.get(table, "DEFAULT")
        if table == "parted":  # what counts of a partitioned table is what each partition has
            return []
        return [f"ALTER TABLE {table} REPLICA IDENTITY {chance.choice(('FULL', kept))}"]

    def _move(self, connection: psycopg.Connection, table: str, chance: random.Random) -> list[str]:
        """Take a partition away or bring it back; make a bag anew."""
        if table == "parted":
            (there,) = connection.execute(
                "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = 'parted_high'::regclass)"
            ).fetchone() or (False,)
            if there:
                return ["ALTER TABLE parted DETACH PARTITION parted_high"]
            return ["ALTER TABLE parted ATTACH PARTITION parted_high FOR VALUES FROM (10) TO (MAXVALUE)"]
        if table == "bag":
            again = "CREATE TABLE bag (x int, y text); ALTER TABLE bag REPLICA IDENTITY FULL"
            return ["DROP TABLE bag", again, "INSERT INTO bag VALUES (1, 'new'), (1, 'new')"]
        return [f"CLUSTER {table} USING {'there_key' if table == 'there' else 'here_pkey'}"]


def _added(connection: psycopg.Connection, table: str) -> dict[str, str]:
    """The columns of a table that were added, with their types."""
    query = (
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attname LIKE 'extra%%'"
    )
    return dict(connection.execute(query, (table,)).fetchall())
