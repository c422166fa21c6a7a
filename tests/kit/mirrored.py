"""Mirrors in DuckDB: landings are applied by the same SQL that Spark runs, translated, without a JVM."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import psycopg
import sqlglot

from headrace.landing.mirrors import evolution
from headrace.names import LAKE, WEIGHT, TableName
from headrace.sources.capture import Landing
from headrace.sources.postgres.citus.cluster_detection import LogCapture
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.spool.landed_table import PostgresTable
from headrace.sources.postgres.spool.landing_sql import FEW, change_sql
from headrace.sources.postgres.spool.literal_rows import MOST_ROWS
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured, PostgresCapture

Rows = Counter[tuple[Any, ...]]


class Mirrors:
    """What a lake would show of a source."""

    def __init__(self) -> None:
        self._duck = duckdb.connect()
        self.tables: dict[TableName, RemoteTable] = {}
        self._landed = 0

    def publish(self, landing: Landing) -> None:
        """Bring the mirrors to a landing."""
        for landed in landing.tables:
            assert isinstance(landed, PostgresTable)
            self._bring(landed)

    def rows(self, name: TableName) -> Rows:
        return Counter(self._duck.execute(f'SELECT * FROM "{name.table}"').fetchall())

    def listed(self, table: str) -> list[tuple[Any, ...]]:
        """Rows of a table that has arrays, which cannot be counted."""
        return self._duck.execute(f'SELECT * FROM "{table}"').fetchall()

    def by_name(self, name: TableName) -> Rows:
        """Rows with their columns in the order of names, after a row of these."""
        names = sorted(d[0] for d in self._duck.execute(f'SELECT * FROM "{name.table}" LIMIT 0').description)
        listed = ", ".join(f'"{column}"' for column in names)
        rows = self._duck.execute(f'SELECT {listed} FROM "{name.table}"').fetchall()
        return Counter([*rows, tuple(names)])

    def total(self, name: TableName, column: str) -> int:
        """The sum of a column."""
        return int((self._duck.execute(f'SELECT sum("{column}") FROM "{name.table}"').fetchone() or (0,))[0])

    def _bring(self, landed: PostgresTable) -> None:
        name = f'"{landed.name.table}"'
        if landed.replaced:
            self.tables[landed.name] = landed.table
            self._duck.execute(f"CREATE OR REPLACE TABLE {name} AS {translated(landed.rows_sql())}")
            return
        self._alter(landed)
        self._landed += 1
        small, few = len(self.tables) % 2 > 0, FEW if self._landed % 3 else 0  # by turns as few rows and as many
        sql = change_sql(landed.table, landed.spooled, "`before`", small=small, most_few=few)
        change = translated(sql).replace('"before"', name)
        twice = (
            f'SELECT * EXCLUDE "{WEIGHT}" FROM ({change}) GROUP BY ALL HAVING count(*) > 1 OR any_value("{WEIGHT}") = 0'
        )
        assert not self._duck.execute(twice).fetchall(), f"a row of {name} is listed twice, or for nothing"
        together = f'SELECT * REPLACE (sum("{WEIGHT}")::bigint AS "{WEIGHT}") FROM ({change}) GROUP BY ALL'
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE landed AS {together}")
        self._remove(name)
        columns = ", ".join(self._columns(name))
        repeated = f'SELECT {columns}, unnest(range("{WEIGHT}")) FROM landed WHERE "{WEIGHT}" > 0'
        self._duck.execute(f"INSERT INTO {name} SELECT {columns} FROM ({repeated})")

    def _remove(self, name: str) -> None:
        """Take away the rows of `landed` that have gone, each as often as it has."""
        same = " AND ".join(f"m.{c} IS NOT DISTINCT FROM g.{c}" for c in self._columns(name))
        gone = f'SELECT *, row_number() OVER () AS numbered FROM landed WHERE "{WEIGHT}" < 0'
        met = f'SELECT m.rowid AS place, -g."{WEIGHT}" AS times, row_number() OVER (PARTITION BY numbered) AS nth'
        doomed = f"SELECT place FROM ({met} FROM {name} AS m JOIN ({gone}) AS g ON {same}) WHERE nth <= times"
        deleted = self._duck.execute(f"DELETE FROM {name} WHERE rowid IN ({doomed})").fetchone()
        wanted = f'SELECT coalesce(sum(-"{WEIGHT}"), 0)::bigint FROM landed WHERE "{WEIGHT}" < 0'
        assert deleted == self._duck.execute(wanted).fetchone(), f"{name} does not hold what was deleted from it"

    def _columns(self, name: str) -> list[str]:
        return [_name(d[0]) for d in self._duck.execute(f"SELECT * FROM {name} LIMIT 0").description]

    def _alter(self, landed: PostgresTable) -> None:
        if not landed.reshaped:
            return
        meta: Any = SimpleNamespace(columns=tuple(c for c, _ in self.tables[landed.name].typed))
        for statement in evolution(landed, meta):
            self._duck.execute(f'ALTER TABLE "{landed.name.table}" {statement}'.replace("`", '"'))
        self.tables[landed.name] = landed.table


def translated(sql: str) -> str:
    """A statement of landing for DuckDB."""
    sql = re.sub(r"CAST\(X'(\w+)' AS STRING\)", lambda hexed: _quoted(bytes.fromhex(hexed[1]).decode()), sql)
    (out,) = sqlglot.transpile(sql, read="spark", write="duckdb")
    return re.sub(r'"(/[^"]*)"', r"read_parquet('\1/*.parquet')", out)


def _name(column: str) -> str:
    """A column's name as DuckDB writes it."""
    return '"' + column.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    """A literal as Spark writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Follower:
    """A source that is captured, landed and compared.

    Args:
        url: The database.
        folder: Where rows are written on the way.
        tables: Tables in schema `public`.
        slot: Name of slot and publication.
        as_text: Columns that are kept as text.
        way: How it is captured.
        parts: What is captured of tables of which not all is.
        failover: Replicas keep the slot in step.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        *tables: str,
        slot: str = "headrace_f",
        as_text: tuple[str, ...] = (),
        way: type[LogCapture | PostgresCapture | AutoCapture] = PostgresCapture,
        parts: Mapping[str, Part] | None = None,
        failover: bool = False,
    ) -> None:
        self.failover = failover
        self.parts = dict(parts or {})
        self.url, self.slot, self.as_text = url, slot, as_text
        self.names = {TableName(LAKE, ("s",), t): ("public", t) for t in tables}
        self.folder, self.mirrors, self.way = folder, Mirrors(), way
        self.position: Mapping[str, Any] = {}
        self.gone: set[TableName] = set()
        self._captures = 0

    def capture(self, *, most: int = MOST, limit: int = LIMIT) -> LogCapture | PostgresCapture | AutoCapture:
        known = {n: t for n, t in self.mirrors.tables.items() if n not in self.gone}
        parts = {TableName(LAKE, ("s",), t): part for t, part in self.parts.items()}
        gone, position = frozenset(self.gone), self.position or None
        captured = Captured(self.url, self.slot, self.names, self.as_text, known, gone, position, parts, self.failover)
        self._captures += 1
        few = MOST_ROWS if self._captures % 2 else 0  # by turns as literals and in files
        return self.way(captured, Spool(str(self.folder), few=few), most=most, limit=limit)

    def begin(self) -> None:
        self._take(self.capture().begin())

    def renew(self, *tables: str) -> Landing:
        """Take tables of schema `public` anew, also such as were not captured before."""
        names = [TableName(LAKE, ("s",), t) for t in tables]
        self.names = {n: ("public", n.table) for n in names} | self.names
        capture = self.capture()
        landing = capture.renew(self.position, names)
        self._take(landing)
        capture.acknowledge(self.position)
        return landing

    def land(self, limit: int = LIMIT) -> list[Landing]:
        """Land until nothing is left, about so many messages at a time."""
        landings: list[Landing] = []
        while not landings or not landings[-1].caught_up:
            capture = self.capture(limit=limit)
            landings.append(capture.land(self.position))
            self._take(landings[-1])
            capture.clear()
            capture.acknowledge(self.position)
        return landings

    def rows(self, table: str) -> Rows:
        return self.mirrors.rows(TableName(LAKE, ("s",), table))

    def _take(self, landing: Landing) -> None:
        if not landing.keep_position:
            return  # nor does the lake
        self.mirrors.publish(landing)
        self.position = landing.position
        self.gone = self.gone - {t.name for t in landing.tables} | set(landing.gone)


def truth(db: psycopg.Connection, table: str) -> Counter[tuple[object, ...]]:
    """What a table of the captured database has."""
    return Counter(db.execute(f"SELECT * FROM {table}").fetchall())


def check_taken_anew(orders: Follower, db: psycopg.Connection, change: str) -> None:
    """Alter `orders` between changes to it and to `beside`: it is taken anew, at the cut of the other's changes.

    Args:
        orders: Follows both tables.
        db: Writes to them.
        change: Statements, separated by semicolons.
    """
    db.execute("INSERT INTO orders VALUES (10, 'before', 1); INSERT INTO beside VALUES (1)")
    for statement in change.split("; "):
        db.execute(statement)
    db.execute("INSERT INTO beside VALUES (2)")
    landings = orders.land()
    assert orders.rows("orders") == truth(db, "orders")
    assert orders.rows("beside") == truth(db, "beside")
    assert [t.name.table for t in landings[0].tables if t.replaced] == ["orders"]
    db.execute("DELETE FROM orders")
    assert not any(t.replaced for landing in orders.land() for t in landing.tables)
    assert not orders.rows("orders")
