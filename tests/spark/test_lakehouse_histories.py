"""The judge of reading changes: rows(a) + changes(a, b] = rows(b), for random histories and random pairs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from kit.long_tests import LONG
from kit.sparks import interpreting
from spark.conftest import Lake

from headrace.lake.metadata import TableMeta
from headrace.names import TableName
from headrace.sources.lakehouse import deleted_rows
from headrace.sources.lakehouse.change_plan import ChangePlan, PositionDiff
from headrace.sources.lakehouse.changes_sql import changes_sql, plan_changes, rows_sql
from headrace.spark.runner import SparkRunner

COLUMNS = ("k", "g", "v", "d")
LAYOUTS = {
    "v3-mor": ("'format-version'='3'", "", "merge-on-read"),
    "v3-cow": ("'format-version'='3'", "", "copy-on-write"),
    "v2-mor": ("'format-version'='2'", "", "merge-on-read"),
    "v2-mor-partitioned": ("'format-version'='2'", "PARTITIONED BY (g)", "merge-on-read"),
    "v2-cow-partitioned": ("'format-version'='2'", "PARTITIONED BY (g)", "copy-on-write"),
    "v1": ("'format-version'='1'", "", "copy-on-write"),
    "v3-mor-avro": ("'format-version'='3', 'write.format.default'='avro'", "", "merge-on-read"),
    "v2-mor-orc": ("'format-version'='2', 'write.format.default'='orc'", "PARTITIONED BY (g)", "merge-on-read"),
    "v3-cow-orc": ("'format-version'='3', 'write.format.default'='orc'", "", "copy-on-write"),
    "v3-mixed": ("'format-version'='3'", "PARTITIONED BY (bucket(2, k))", "mixed"),
}
CASES = [
    pytest.param(*layout, seed, id=f"{seed}-{name}")
    for name, layout in LAYOUTS.items()
    for seed in ((1, 2, 3) if LONG else (1,))
    if seed == 1 or layout[2] != "copy-on-write" or LONG  # the others are about positions, which it has few of
]


@pytest.fixture(scope="module")
def lake(lake: Lake) -> Lake:
    return replace(lake, runner=SparkRunner(interpreting(lake.runner.session)))


def weighted(lake, sql: str | None) -> Counter:
    bag: Counter = Counter()
    for *row, weight in lake.rows(sql) if sql else ():
        bag[tuple(map(repr, row))] += weight  # repr tells -0.0 from 0.0 and lets NaN equal itself
    return bag


def rows_at(lake, table: TableName, meta: TableMeta, snapshot: int | None) -> Counter:
    sql = f"SELECT {', '.join(COLUMNS)}, 1L FROM {rows_sql(table, meta, snapshot)} AS t"
    return weighted(lake, sql)


def statements(table: TableName, rng: random.Random, mode: str) -> Iterator[str]:
    """Endless random DML, with compactions and rollbacks between."""
    name = table.sql

    def value() -> str:
        return rng.choice(["NULL", "0", "1.5", "2", "7.25"])

    def group() -> str:
        return rng.choice(["NULL", "'a'", "'b'", "'c'"])

    def real() -> str:
        return rng.choice(["NULL", "0.0D", "-0.0D", "double('NaN')", "1.5D"])

    def rows(n: int) -> str:
        return ", ".join(f"({rng.randrange(12)}, {group()}, {value()}, {real()})" for _ in range(n))

    def pick() -> str:
        return f"k % {rng.randint(2, 5)} = {rng.randrange(2)}"

    while True:
        if mode == "mixed" and rng.random() < 0.3:
            chosen = rng.choice(["merge-on-read", "copy-on-write"])
            yield f"ALTER TABLE {name} SET TBLPROPERTIES ({set_modes(chosen)})"
        yield rng.choice(
            [
                f"INSERT INTO {name} VALUES {rows(4)}",
                f"INSERT INTO {name} VALUES {rows(1)}",
                f"UPDATE {name} SET v = {value()}, d = {real()} WHERE {pick()}",
                f"UPDATE {name} SET v = v WHERE {pick()}",
                f"DELETE FROM {name} WHERE {pick()}",
                f"DELETE FROM {name} WHERE g <=> {group()}",
                f"MERGE INTO {name} t "
                f"USING (SELECT * FROM VALUES (1, {group()}), (3, {group()}), (20, 'a') AS x(k, g)) s "
                f"ON t.k = s.k WHEN MATCHED AND s.k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET g = s.g "
                f"WHEN NOT MATCHED THEN INSERT (k, g, v, d) VALUES (s.k, s.g, 1, NULL)",
                f"INSERT OVERWRITE {name} VALUES {rows(3)}",
                f"DELETE FROM {name}" if rng.random() < 0.4 else f"INSERT INTO {name} VALUES {rows(2)}",
                f"TRUNCATE TABLE {name}" if rng.random() < 0.4 else f"INSERT INTO {name} VALUES {rows(2)}",
                "COMPACT",
                "ROLLBACK",
            ]
        )


def set_modes(mode: str) -> str:
    return ", ".join(f"'write.{m}.mode'='{mode}'" for m in ("delete", "update", "merge"))


def execute(lake, table: TableName, statement: str, rng: random.Random) -> None:
    path = ".".join(table.parts[1:])
    if statement == "COMPACT":
        options = "options => map('rewrite-all', 'true')"
        lake.runner.run(f"CALL {table.catalog}.system.rewrite_data_files(table => '{path}', {options})")
    elif statement == "ROLLBACK":
        meta = lake.meta(table)
        older = [s.id for s in meta.ancestors(meta.current_snapshot_id)][1:4]
        if older:
            lake.runner.run(f"CALL {table.catalog}.system.rollback_to_snapshot('{path}', {rng.choice(older)})")
    else:
        lake.runner.run(statement)


@pytest.mark.parametrize(("properties", "partitioning", "mode", "seed"), CASES)
def test_rows_before_plus_changes_are_rows_after(
    lake, fresh: Callable[..., TableName], monkeypatch, properties: str, partitioning: str, mode: str, seed: int
) -> None:
    if seed > 1:  # as if there were many positions, and as if there were too many
        monkeypatch.setattr(deleted_rows, "FEW_POSITIONS", -1)
    if seed > 2:
        monkeypatch.setattr(deleted_rows, "MOST_WORDS", -1)
        monkeypatch.setattr(deleted_rows, "FEW_DELETED", -1)
        monkeypatch.setattr(deleted_rows, "FEW_NUMBERS", -1)
    rng = random.Random(f"{seed}{properties}{partitioning}{mode}")
    table = fresh()
    modes = set_modes("merge-on-read" if mode == "mixed" else mode)
    lake.runner.run(
        f"CREATE TABLE {table.sql} (k INT, g STRING, v DECIMAL(9,2), d DOUBLE) USING iceberg {partitioning} "
        f"TBLPROPERTIES ({properties}, {modes})"
    )
    points, log = [None], []
    for statement in statements(table, rng, mode):
        log.append(statement)
        execute(lake, table, statement, rng)
        points.append(lake.meta(table).current_snapshot_id)
        if len(log) == 10:
            break
    meta = lake.meta(table)
    bags = {p: rows_at(lake, table, meta, p) for p in dict.fromkeys(points)}
    pairs = [*pairwise(points), (points[1], points[-1])]
    pairs += [(rng.choice(points), rng.choice(points)) for _ in range(8 if LONG else 4)]
    for start, end in dict.fromkeys(pairs):
        plan = plan_changes(meta, start, end)
        assert isinstance(plan, ChangePlan), plan
        inline: dict[PositionDiff, object] | None = {} if rng.random() < 0.3 else None
        bag = bags[start].copy()
        bag.update(weighted(lake, changes_sql(table, meta, plan, COLUMNS, inline)))
        got = {row: n for row, n in bag.items() if n}
        assert got == dict(bags[end]), (start, end, plan, log)
