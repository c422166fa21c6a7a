"""A source with shards, landed into DuckDB by the SQL that Spark runs, without a JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import psycopg

from headrace.algebra.schema import Column
from headrace.landing.mirrors import evolution
from headrace.names import LAKE, WEIGHT, TableName
from headrace.sources.capture import LandedTable, Landing
from headrace.sources.nodes.nodes_capture import NodesCapture
from headrace.sources.postgres.postgres_kind import POSTGRES
from headrace.sources.source_kind import SourceRequest
from kit.mirrored import translated

Rows = Counter[tuple[Any, ...]]


class KeyTwice(Exception):
    """Two shards have a row of one key."""


@dataclass
class MirrorRow:
    """A mirror as the catalog keeps it."""

    name: TableName
    details: Mapping[str, Any] | None = None
    gone: bool = False


@dataclass
class ShardFollower:
    """A source with shards that is captured, landed and compared.

    Args:
        urls: The shards' databases, by name.
        folder: Where rows are on the way.
        tables: Tables in schema `public`.
        said: Options of the source.
    """

    urls: Mapping[str, Any]
    folder: Path
    tables: Sequence[str]
    said: Mapping[str, Any] = field(default_factory=dict)
    position: Mapping[str, Any] | None = None
    looks: tuple[Any, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    name: str = "s"

    def __post_init__(self) -> None:
        request = SourceRequest("", tuple(self.tables), {"shards": self.urls, **self.said})
        self.options: Mapping[str, Any] = POSTGRES.options(self.name, request)
        self.mirrors = [MirrorRow(TableName(LAKE, (self.name,), table)) for table in self.tables]
        self.duck = duckdb.connect()

    def capture(self, landings: int = 9) -> NodesCapture:
        capture = POSTGRES.open_capture(self, str(self.folder), lambda _: None, landings)
        assert isinstance(capture, NodesCapture)
        return capture

    def begin(self) -> Landing:
        return self.publish(self.capture().begin())

    def land(self, *, acknowledge: bool = True, landings: int = 9) -> list[Landing]:
        """Land until nothing is left of the shards that can be read."""
        found: list[Landing] = []
        while not found or not found[-1].caught_up:
            capture = self.capture(landings)
            try:
                landing = capture.land(self.position or {})
            finally:
                self.held = {name: error.code for name, error in capture.held.items()}
            found.append(self.publish(landing))
            capture.clear()
            if acknowledge and found[-1].keep_position:
                capture.acknowledge(found[-1].position)
        return found

    def publish(self, landing: Landing) -> Landing:
        """Bring the mirrors to a landing, or leave all as it is."""
        self.held = {name: error.code for name, error in landing.held.items()}
        if not landing.keep_position:
            return landing
        self.duck.execute("BEGIN")
        try:
            for landed in landing.tables:
                self._bring(landed)
            for mirror, key in landing.shared_keys.items():
                listed = ", ".join(key.columns)
                twice = f'SELECT {listed} FROM "{mirror.table}" GROUP BY {listed} HAVING count(*) > 1'
                if found := self.duck.execute(twice).fetchall():
                    raise KeyTwice(found)
        except BaseException:
            self.duck.execute("ROLLBACK")
            raise
        self.duck.execute("COMMIT")
        shaped = {t.name: t.details for t in landing.tables if t.replaced or t.reshaped}
        for mirror in self.mirrors:
            mirror.details = shaped.get(mirror.name, mirror.details)
            mirror.gone = mirror.name in landing.gone or (mirror.gone and mirror.name not in shaped)
        self.position = landing.position
        return landing

    def rows(self, table: str, *columns: str) -> Rows:
        listed = ", ".join(columns) or "*"
        return Counter(self.duck.execute(f'SELECT {listed} FROM "{table}"').fetchall())

    # ---- mirrors

    def _columns(self, table: str) -> tuple[Column, ...]:
        described = self.duck.execute(f'DESCRIBE "{table}"').fetchall()
        return tuple(Column(name, type_) for name, type_, *_ in described)

    def _bring(self, landed: LandedTable) -> None:
        table = landed.name.table
        there = self.duck.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [table]).fetchall()
        if not there:
            assert landed.replaced
            self.duck.execute(f'CREATE TABLE "{table}" AS {translated(landed.rows_sql())}')
            return
        if landed.replaced or landed.reshaped:
            self._reshape(landed, table)
        listed = ", ".join(f'"{c.name}"' for c in self._columns(table))
        change = translated(landed.change_sql("`before`")).replace('"before"', f'"{table}"')
        self.duck.execute(
            f'CREATE OR REPLACE TEMP TABLE landed AS SELECT {listed}, sum("{WEIGHT}")::bigint AS w FROM ({change}) '
            "GROUP BY ALL HAVING w <> 0"
        )
        bag = f'SELECT {listed}, count(*) AS w FROM "{table}" GROUP BY ALL'
        now = f"SELECT {listed}, sum(w)::bigint AS w FROM ({bag} UNION ALL SELECT * FROM landed) GROUP BY ALL"
        self.duck.execute(f"CREATE OR REPLACE TEMP TABLE now AS {now}")
        assert not self.duck.execute("SELECT * FROM now WHERE w < 0").fetchall(), f"{table} does not hold what goes"
        self.duck.execute(f'DELETE FROM "{table}"')
        self.duck.execute(
            f'INSERT INTO "{table}" SELECT {listed} FROM (SELECT {listed}, unnest(range(w)) FROM now WHERE w > 0)'
        )

    def _reshape(self, landed: LandedTable, table: str) -> None:
        known = {c.name: c.type for m in self.mirrors if m.name == landed.name for c in _kept(m)}
        column = self.options["shard_column"]
        had = [Column(c.name, known.get(c.name, "string")) for c in self._columns(table)]
        meta: Any = SimpleNamespace(columns=tuple(had))
        for statement in evolution(landed, meta):
            assert column not in statement
            self.duck.execute(f'ALTER TABLE "{table}" {statement}'.replace("`", '"').replace("bigint", "BIGINT"))


def _kept(mirror: MirrorRow) -> list[Column]:
    shape = (mirror.details or {}).get("shape", {"columns": []})
    return [Column(name, type_) for name, type_ in shape["columns"]]


def truth(urls: Mapping[str, str], table: str, columns: str = "*") -> Rows:
    """All rows of all shards, each with its shard behind it."""
    found: Rows = Counter()
    for name, url in urls.items():
        with psycopg.connect(url, autocommit=True) as db:
            found.update((*row, name) for row in db.execute(f"SELECT {columns} FROM {table}").fetchall())
    return found


def moved_to(follower: ShardFollower, options: Mapping[str, Any], without: Sequence[str] = ()) -> ShardFollower:
    """Give a follower other options, and have some shards begin anew."""
    nodes = (follower.position or {})["nodes"]
    follower.options = options
    follower.position = {"nodes": {name: at for name, at in nodes.items() if name not in without}}
    return follower


__all__ = ["KeyTwice", "MirrorRow", "ShardFollower", "moved_to", "replace", "truth"]
