"""Sources in particular circumstances; the random histories are the general judge."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from headrace.lake.metadata import read_metadata
from headrace.names import TableName
from headrace.sources.foreign import metadata_location
from headrace.sources.history import ChangePlan, PositionDiff
from headrace.sources.lakehouse import changes_sql, plan_changes, rows_sql


def changes(lake, table, meta, start, end, columns) -> Counter:
    plan = plan_changes(meta, start, end)
    assert isinstance(plan, ChangePlan)
    bag: Counter = Counter()
    for *row, weight in lake.rows(changes_sql(table, meta, plan, columns) or "SELECT 0 WHERE FALSE"):
        bag[tuple(row)] += weight
    return Counter({row: n for row, n in bag.items() if n})


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_columns_are_followed_through_renames_additions_and_widening(lake, fresh, mode: str) -> None:
    table = fresh()
    lake.runner.run(
        f"CREATE TABLE {table.sql} (a INT, b STRING, gone INT) TBLPROPERTIES "
        f"('format-version'='2', 'write.delete.mode'='{mode}', 'write.update.mode'='{mode}')"
    )
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (1, 'x', 0), (2, 'y', 0)")
    first = lake.meta(table).current_snapshot_id
    for change in ("RENAME COLUMN b TO bb", "ADD COLUMN c INT", "ALTER COLUMN a TYPE BIGINT", "DROP COLUMN gone"):
        lake.runner.run(f"ALTER TABLE {table.sql} {change}")
    meta = lake.meta(table)
    names = ("a", "bb", "c")
    before = lake.rows(f"SELECT {', '.join(names)} FROM {rows_sql(table, meta, first)} AS t")
    assert Counter(before) == Counter([(1, "x", None), (2, "y", None)])
    described = lake.runner.describe(f"SELECT * FROM {rows_sql(table, meta, first)} AS t")
    assert [(c.name, c.type) for c in described] == [(c.name, c.type) for c in meta.columns]
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (3, 'z', 5)")
    lake.runner.run(f"UPDATE {table.sql} SET c = 7 WHERE a = 1")
    lake.runner.run(f"DELETE FROM {table.sql} WHERE a = 2")
    meta = lake.meta(table)
    moved = changes(lake, table, meta, first, meta.current_snapshot_id, names)
    assert moved == Counter({(1, "x", None): -1, (1, "x", 7): 1, (2, "y", None): -1, (3, "z", 5): 1})


def test_a_table_before_its_first_snapshot_reads_as_empty_with_its_columns(lake, fresh) -> None:
    table = fresh()
    lake.runner.run(f"CREATE TABLE {table.sql} (a INT, m MAP<STRING, ARRAY<STRUCT<x: INT>>>, t TIMESTAMP_NTZ)")
    meta = lake.meta(table)
    query = f"SELECT * FROM {rows_sql(table, meta, None)} AS t"
    assert lake.rows(query) == []
    assert [c.type for c in lake.runner.describe(query)] == [c.type for c in meta.columns]
    assert changes(lake, table, meta, None, None, ("a",)) == Counter()


def test_every_type_iceberg_stores_is_described_as_spark_does(lake, fresh) -> None:
    table = fresh()
    types = (
        "a BOOLEAN, b INT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(9,2), g DATE, h TIMESTAMP, i TIMESTAMP_NTZ, "
        "j STRING, k BINARY, l ARRAY<INT>, m MAP<STRING, INT>, n STRUCT<x: INT, y: ARRAY<STRING>>, o VARIANT"
    )
    lake.runner.run(f"CREATE TABLE {table.sql} ({types}) TBLPROPERTIES ('format-version'='3')")
    described = lake.runner.describe(f"SELECT * FROM {table.sql}")
    assert [(c.name, c.type) for c in lake.meta(table).columns] == [(c.name, c.type) for c in described]


def test_another_catalogs_table_is_found_and_read(lake, fresh) -> None:
    table = fresh("hadoop_cat")
    assert metadata_location(lake.runner, table) is None
    assert metadata_location(lake.runner, TableName("hadoop_cat", ("nope",), "t")) is None
    lake.runner.run(
        f"CREATE TABLE {table.sql} (k INT) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    location = metadata_location(lake.runner, table)
    assert location is not None
    assert read_metadata(location).current_snapshot_id is None
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (1), (2), (2)")
    first = read_metadata(metadata_location(lake.runner, table)).current_snapshot_id
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k = 2")
    meta = read_metadata(metadata_location(lake.runner, table))
    moved = changes(lake, table, meta, first, meta.current_snapshot_id, ("k",))
    assert moved == Counter({(2,): -2})


def test_a_difference_opens_only_the_files_that_differ(lake, fresh) -> None:
    table = fresh()
    lake.runner.run(f"CREATE TABLE {table.sql} (k INT) TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    for n in range(3):
        lake.runner.run(f"INSERT INTO {table.sql} SELECT id FROM range({n * 10}, {n * 10 + 10})")
    start = lake.meta(table).current_snapshot_id
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k = 15")
    meta = lake.meta(table)
    plan = plan_changes(meta, start, meta.current_snapshot_id)
    assert isinstance(plan, ChangePlan)
    assert [type(part) for part in plan.parts] == [PositionDiff]
    text = changes_sql(table, meta, plan, ("k",))
    assert text is not None
    assert len(set(re.findall(r"[^/']+\.parquet", text))) == 1
    assert changes(lake, table, meta, start, meta.current_snapshot_id, ("k",)) == Counter({(15,): -1})
