"""Sources in particular circumstances; the random histories are the general judge."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.lake.metadata import TableMeta, read_metadata
from headrace.names import TableName
from headrace.reasons import FullReason
from headrace.refresh.cut.cut import metadata
from headrace.sources.lakehouse import deleted_rows, file_narrowing
from headrace.sources.lakehouse.change_plan import ChangePlan, NotIncremental, PositionDiff
from headrace.sources.lakehouse.changes_sql import changes_sql, plan_changes, rows_sql
from headrace.sources.lakehouse.file_diff import file_diff
from headrace.sources.lakehouse.foreign_catalogs import metadata_location


def changes(lake, table, meta, start, end, columns) -> Counter:
    plan = plan_changes(meta, start, end)
    assert isinstance(plan, ChangePlan)
    bag: Counter = Counter()
    for *row, weight in lake.rows(changes_sql(table, meta, plan, columns) or "SELECT 0 WHERE FALSE"):
        bag[tuple(row)] += weight
    return Counter({row: n for row, n in bag.items() if n})


def around(lake, table, *statements: str) -> tuple[TableMeta, int, int]:
    """The table's metadata after some statements, and its snapshots before and after them."""
    start = lake.meta(table).current_snapshot_id
    for statement in statements:
        lake.runner.run(statement)
    meta = lake.meta(table)
    return meta, start, meta.current_snapshot_id


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_zero_that_becomes_the_other_one_is_a_change(lake, fresh, mode: str) -> None:
    table = fresh()
    lake.runner.run(
        f"CREATE TABLE {table.sql} (k INT, x DOUBLE, a ARRAY<FLOAT>) TBLPROPERTIES "
        f"('format-version'='2', 'write.update.mode'='{mode}')"
    )
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (1, 0.0D, array(1F)), (2, 1.0D, array(-0.0F)), (3, 2.0D, NULL)")
    flipped = f"UPDATE {table.sql} SET x = -x, a = transform(a, e -> -e) WHERE k < 3"
    meta, start, end = around(lake, table, f"{flipped} AND k = 1", f"{flipped} AND k = 2")
    plan = plan_changes(meta, start, end)
    assert isinstance(plan, ChangePlan)
    found = lake.rows(changes_sql(table, meta, plan, ("x", "a")))
    assert Counter((*map(repr, row), weight) for *row, weight in found) == Counter(
        [("0.0", "[1.0]", -1), ("-0.0", "[-1.0]", 1), ("1.0", "[-0.0]", -1), ("-1.0", "[0.0]", 1)]
    )
    alone = lake.rows(changes_sql(table, meta, plan, ("a",)))
    assert Counter((repr(a), weight) for a, weight in alone)[("[-0.0]", -1)] == 1


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


@pytest.mark.parametrize(
    ("statements", "wanted"),
    [
        (("DROP COLUMN s.a", "ADD COLUMN s.c INT"), "named_struct('b', 2, 'c', NULL)"),
        (("ADD COLUMN s.c STRING",), "named_struct('a', 1, 'b', 2, 'c', NULL)"),
        (("DROP COLUMN s.a", "ADD COLUMN s.a INT"), "named_struct('b', 2, 'a', NULL)"),
        (("ALTER COLUMN s.b FIRST", "ALTER COLUMN s.a TYPE BIGINT"), "named_struct('b', 2, 'a', 1)"),
        (("RENAME COLUMN s.a TO d", "RENAME COLUMN s.b TO a"), "named_struct('d', 1, 'a', 2)"),
    ],
)
def test_nested_fields_are_followed_by_their_ids(lake, fresh, statements: tuple[str, ...], wanted: str) -> None:
    table = fresh()
    struct = "STRUCT<a: INT, b: INT>"
    lake.runner.run(
        f"CREATE TABLE {table.sql} (k INT, s {struct}, l ARRAY<{struct}>, m MAP<STRING, ARRAY<{struct}>>) "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    value = f"CAST(named_struct('a', 1, 'b', 2) AS {struct})"
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (1, {value}, array({value}, NULL), map('x', array({value})))")
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (2, NULL, NULL, NULL)")
    first = lake.meta(table).current_snapshot_id
    for statement in statements:
        for at in ("s.", "l.element.", "m.value.element."):
            lake.runner.run(f"ALTER TABLE {table.sql} {statement.replace('s.', at)}")
    meta = lake.meta(table)
    assert meta.current_snapshot_id == first
    expected = lake.rows(f"SELECT {wanted}, array({wanted}, NULL), map('x', array({wanted})), 1")
    expected.append((None, None, None, 2))
    rows = f"SELECT s, l, m, k FROM {rows_sql(table, meta, first)} AS t"
    assert sorted(lake.rows(rows), key=lambda row: row[-1]) == expected
    assert [c.type for c in lake.runner.describe(rows)] == [c.type for c in (*meta.columns[1:], meta.columns[0])]
    assert lake.rows(f"SELECT s, l, m, k FROM {table.sql} ORDER BY k") == expected
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k = 1")
    meta = lake.meta(table)
    plan = plan_changes(meta, first, meta.current_snapshot_id)
    (gone,) = lake.rows(changes_sql(table, meta, plan, ("s", "l", "m")))
    assert gone == (*expected[0][:-1], -1)


DEFAULTS = {
    "BooleanType": True,
    "IntegerType": -5,
    "LongType": 2**40,
    "FloatType": 1.5,
    "DoubleType": -2.5e-300,
    "DateType": "2017-11-16",
    "TimestampType.withoutZone": "2017-11-16T22:31:08.123456",
    "TimestampType.withZone": "2017-11-16T22:31:08.123456+00:00",
    "StringType": "it's \\ n",
    "DecimalType.of": "14.20",
    "BinaryType": b"\x00\xff'",
}


def test_a_column_added_with_a_default_has_it_in_older_snapshots(lake, fresh) -> None:
    table = fresh()
    lake.runner.run(
        f"CREATE TABLE {table.sql} (k INT, s STRUCT<a: INT>) TBLPROPERTIES "
        "('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    lake.runner.run(f"INSERT INTO {table.sql} SELECT /*+ COALESCE(1) */ id, named_struct('a', 1) FROM range(2)")
    first = lake.meta(table).current_snapshot_id
    iceberg = lake.runner.session._jvm.org.apache.iceberg
    stored = iceberg.spark.Spark3Util.loadIcebergTable(lake.runner.session._jsparkSession, table.sql)
    update = stored.updateSchema()
    for number, (name, value) in enumerate(DEFAULTS.items()):
        kind, _, make = name.partition(".")
        type_ = getattr(getattr(iceberg.types.Types, kind), make or "get")(*((4, 2) if make == "of" else ()))
        literal = iceberg.expressions.Literal.of(value)
        update.addColumn(f"c{number}", type_, literal.to(type_) or literal)
    update.addColumn("s", "b", iceberg.types.Types.IntegerType.get(), None, iceberg.expressions.Literal.of(7))
    update.commit()
    lake.runner.run(f"REFRESH TABLE {table.sql}")
    meta = lake.meta(table)
    assert meta.current_snapshot_id == first
    names = tuple(c.name for c in meta.columns)
    present = lake.rows(f"SELECT * FROM {table.sql} ORDER BY k")
    assert present[0][1] == (1, 7)
    assert None not in present[0]
    assert lake.rows(f"SELECT * FROM {rows_sql(table, meta, first)} ORDER BY k") == present
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k = 1")
    meta = lake.meta(table)
    plan = plan_changes(meta, first, meta.current_snapshot_id)
    assert lake.rows(changes_sql(table, meta, plan, names)) == [(*present[1], -1)]


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


def test_a_table_with_the_changelogs_own_columns_is_followed(lake, fresh) -> None:
    table = fresh()
    modes = ", ".join(f"'write.{verb}.mode'='copy-on-write'" for verb in ("delete", "update", "merge"))
    lake.runner.run(f"CREATE TABLE {table.sql} (k INT, _change_type STRING) TBLPROPERTIES ({modes})")
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (1, 'insert'), (2, 'delete')")
    delete = f"DELETE FROM {table.sql} WHERE k = 2"
    meta, start, end = around(lake, table, delete, f"INSERT INTO {table.sql} VALUES (3, 'insert')")
    assert changes(lake, table, meta, start, end, ("k",)) == Counter({(2,): -1, (3,): 1})


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


def test_a_table_made_in_the_place_of_another_is_seen_and_so_is_a_writer_whose_clock_is_behind(lake, fresh) -> None:
    table = fresh("hadoop_cat")
    uuids = set[str]()
    for rows in ("(1)", "(2)"):
        lake.runner.run(f"CREATE TABLE {table.sql} USING iceberg AS SELECT * FROM VALUES {rows} AS t(k)")
        location = metadata_location(lake.runner, table)
        assert location is not None
        uuids.add(metadata(location).uuid)
        if rows == "(1)":
            lake.runner.run(f"DROP TABLE {table.sql}")
    assert len(uuids) == 2
    lake.runner.run(f"INSERT INTO {table.sql} VALUES (3)")
    newest = metadata_location(lake.runner, table)
    assert newest is not None
    file = Path(newest.removeprefix("file:"))
    behind = json.loads(file.read_text())
    behind["last-updated-ms"] -= 20_000
    file.write_text(json.dumps(behind))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    lake.runner.run(f"REFRESH TABLE {table.sql}")
    assert metadata_location(lake.runner, table) == newest


def test_a_difference_opens_only_the_files_that_differ(lake, fresh) -> None:
    table = fresh()
    lake.runner.run(f"CREATE TABLE {table.sql} (k INT) TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    for n in range(3):
        lake.runner.run(f"INSERT INTO {table.sql} SELECT id FROM range({n * 10}, {n * 10 + 10})")
    meta, start, end = around(lake, table, f"DELETE FROM {table.sql} WHERE k = 15")
    plan = plan_changes(meta, start, end)
    assert isinstance(plan, ChangePlan)
    assert [type(part) for part in plan.parts] == [PositionDiff]
    text = changes_sql(table, meta, plan, ("k",))
    assert text is not None
    assert len(set(re.findall(r"[^/']+\.parquet", text))) == 1
    assert changes(lake, table, meta, start, end, ("k",)) == Counter({(15,): -1})


def _merge_on_read(lake, table, version: int) -> None:
    modes = ", ".join(f"'write.{verb}.mode'='merge-on-read'" for verb in ("delete", "update", "merge"))
    lake.runner.run(
        f"CREATE TABLE {table.sql} (k INT, v INT) TBLPROPERTIES ('format-version'='{version}', {modes}, "
        "'write.delete.granularity'='file')"
    )
    lake.runner.run(f"INSERT INTO {table.sql} SELECT /*+ COALESCE(1) */ id, 0 FROM range(50)")
    lake.runner.run(f"INSERT INTO {table.sql} SELECT /*+ COALESCE(1) */ id, 0 FROM range(50, 100)")


def test_deletion_vectors_tell_the_new_positions(lake, fresh) -> None:
    table = fresh()
    _merge_on_read(lake, table, 3)
    versions = []
    for statement in (
        "DELETE FROM {} WHERE k IN (1, 2, 60)",
        "DELETE FROM {} WHERE k IN (3, 61, 62)",
        "UPDATE {} SET v = 1 WHERE k IN (4, 70)",
        "DELETE FROM {} WHERE k = 5",
        "DELETE FROM {} WHERE v = 1",
    ):
        versions.append(lake.meta(table).current_snapshot_id)
        lake.runner.run(statement.format(table.sql))
    meta = lake.meta(table)
    versions.append(meta.current_snapshot_id)
    contents = [Counter(lake.rows(f"SELECT k, v FROM {rows_sql(table, meta, v)} AS t")) for v in versions]
    for old, start in enumerate(versions):
        for new, end in enumerate(versions):
            wanted = Counter(contents[new])
            wanted.subtract(contents[old])
            moved = changes(lake, table, meta, start, end, ("k", "v"))
            assert moved == Counter({row: n for row, n in wanted.items() if n}), (old, new)
            diff = file_diff(meta, start, end)
            assert diff is not None
            assert (diff.deleted is not None, diff.undeleted is not None) == (True, True)
    second = file_diff(meta, versions[1], versions[2])
    assert second is not None
    assert sorted(p for places in second.deleted.values() for p in places) == [3, 11, 12]
    assert "position_deletes" not in changes_sql(table, meta, plan_changes(meta, versions[1], versions[2]), ("k",))


@pytest.mark.parametrize("way", ["bitmaps", "position_deletes", "sorted"])
def test_many_deleted_rows_are_told_from_those_deleted_before(lake, fresh, monkeypatch, way: str) -> None:
    table = fresh()
    _merge_on_read(lake, table, 3)
    rows = deleted_rows.FEW_POSITIONS * 2 + 1000
    lake.runner.run(f"INSERT INTO {table.sql} SELECT /*+ COALESCE(1) */ id, 1 FROM range(100, {rows})")
    if way != "bitmaps":
        monkeypatch.setattr(deleted_rows, "MOST_WORDS", 0)
    if way == "sorted":
        monkeypatch.setattr(deleted_rows, "FEW_NUMBERS", 0)
    versions = [lake.meta(table).current_snapshot_id]
    for statement in (
        "DELETE FROM {} WHERE k % 3 = 0 OR k IN (163, 164, 227, 228)",
        f"DELETE FROM {{}} WHERE k % 2 = 0 OR k = {rows - 1}",
        "UPDATE {} SET v = 2 WHERE k % 5 > 0",
    ):
        lake.runner.run(statement.format(table.sql))
        versions.append(lake.meta(table).current_snapshot_id)
    meta = lake.meta(table)
    for start, end in pairwise(versions):
        diff = file_diff(meta, start, end)
        gone = {file: len(found) for file, found in diff.deleted.items()}
        text = changes_sql(table, meta, plan_changes(meta, start, end), ("k", "v")) or ""
        if sum(gone.values()) > deleted_rows.FEW_POSITIONS:
            assert ("bit_get" in text, "position_deletes" in text) == (way == "bitmaps", way != "bitmaps")
            assert ("MERGE" in text) == (way == "sorted" and start != versions[0])
        sign = {start: -1, end: 1}
        union = " UNION ALL ".join(f"SELECT k, v, {n} AS w FROM {rows_sql(table, meta, at)}" for at, n in sign.items())
        moved = f"SELECT k, v, -__hr_w AS w FROM ({text})"
        wrong = f"SELECT k, v FROM ({union} UNION ALL {moved}) GROUP BY k, v HAVING sum(w) <> 0"
        assert lake.rows(wrong) == [], gone


def test_deleted_rows_of_many_files_with_awkward_paths(lake, fresh, tmp_path, monkeypatch) -> None:
    table = fresh()
    _merge_on_read(lake, table, 3)
    lake.runner.run(
        f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('write.data.path'='{tmp_path}/it\\'s \"ünlike\" 100%')"
    )
    files = deleted_rows.FEW_FILES + 16  # hashing leaves some of them empty
    lake.runner.run(f"INSERT INTO {table.sql} SELECT /*+ REPARTITION({files}, k) */ id AS k, 0 FROM range(100, 1000)")
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k % 2 = 0")
    meta, start, end = around(lake, table, f"DELETE FROM {table.sql} WHERE k % 3 = 0")
    assert len(file_diff(meta, start, end).touched) > deleted_rows.FEW_FILES
    for way, positions in (("__hr_list", deleted_rows.FEW_POSITIONS), ("bit_get", 0)):
        monkeypatch.setattr(deleted_rows, "FEW_POSITIONS", positions)
        assert way in changes_sql(table, meta, plan_changes(meta, start, end), ("k",))
        assert changes(lake, table, meta, start, end, ("k",)) == Counter({(k,): -1 for k in range(3, 1000, 6)})


def test_older_delete_files_below_a_vector_are_not_taken_for_new(lake, fresh) -> None:
    table = fresh()
    _merge_on_read(lake, table, 2)
    lake.runner.run(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('write.delete.granularity'='partition')")
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k IN (1, 2, 60)")
    lake.runner.run(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('format-version'='3')")
    meta, start, end = around(lake, table, f"DELETE FROM {table.sql} WHERE k IN (3, 61)")
    assert changes(lake, table, meta, start, end, ("k",)) == Counter({(3,): -1, (61,): -1})
    assert changes(lake, table, meta, end, start, ("k",)) == Counter({(3,): 1, (61,): 1})


def _delete_by_value(lake, table, field: int, value: int, path: Path) -> None:
    """Commit a delete file that names no position, as Flink's upserts do."""
    session = lake.runner.session
    identified = pa.field("by", pa.int32(), metadata={b"PARQUET:field_id": str(field).encode()})
    pq.write_table(pa.table([pa.array([value], pa.int32())], schema=pa.schema([identified])), path)
    iceberg = session._jvm.org.apache.iceberg
    found = iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, str(table))
    fields = session._sc._gateway.new_array(session._jvm.int, 1)
    fields[0] = field
    deletes = iceberg.FileMetadata.deleteFileBuilder(found.spec()).ofEqualityDeletes(fields).withPath(str(path))
    deletes = deletes.withFormat("PARQUET").withFileSizeInBytes(path.stat().st_size).withRecordCount(1).build()
    found.newRowDelta().addDeletes(deletes).commit()
    session.sql(f"REFRESH TABLE {table.sql}")


def test_rows_deleted_by_value_are_not_taken_for_rows_deleted_since(lake, fresh, tmp_path) -> None:
    table = fresh()
    lake.runner.run(
        f"CREATE TABLE {table.sql} (id INT, region STRING) TBLPROPERTIES "
        "('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    lake.runner.run(f"INSERT INTO {table.sql} SELECT /*+ COALESCE(1) */ id, 'EU' FROM range(1, 5)")
    _delete_by_value(lake, table, 1, 1, tmp_path / "by-value.parquet")
    assert lake.rows(f"SELECT count(*) FROM {table.sql}") == [(3,)]
    meta, start, end = around(lake, table, f"INSERT INTO {table.sql} VALUES (1, 'again')")
    assert changes(lake, table, meta, start, end, ("id", "region")) == {(1, "again"): 1}
    meta, start, end = around(lake, table, f"DELETE FROM {table.sql} WHERE id = 2")
    found = plan_changes(meta, start, end)
    assert isinstance(found, NotIncremental)
    assert found.reason is FullReason.SOURCE_NOT_INCREMENTAL


@pytest.mark.parametrize("version", [2, 3])
def test_changes_may_be_counted_without_any_column(lake, fresh, version: int) -> None:
    table = fresh()
    _merge_on_read(lake, table, version)
    meta, start, end = around(
        lake,
        table,
        f"INSERT INTO {table.sql} VALUES (200, 0), (201, 0)",
        f"DELETE FROM {table.sql} WHERE k IN (3, 61, 62)",
    )
    assert changes(lake, table, meta, start, end, ()) == Counter({(): -1})
    assert changes(lake, table, meta, None, start, ()) == Counter({(): 100})


NARROWED = {
    "close together": ("id, 0", "`k` BETWEEN 200L AND 299L"),
    "one after the other in another column": ("pmod(xxhash64(id), 1000), id", "`w` BETWEEN 200L AND 299L"),
    "in no order": ("pmod(xxhash64(id), 1000), id % 3", None),
    "with NULL": ("IF(id = 207, NULL, id), 0", "(`k` BETWEEN 200L AND 299L OR `k` IS NULL)"),
    "all with NULL": ("IF(id % 10 = 7, NULL, id), 0", None),
    "nothing but NULL": ("IF(id DIV 100 = 2, NULL, id), 0", None),
    "lowest of all": ("id - 200 + CAST('-9223372036854775808' AS BIGINT), 0", None),
}


@pytest.mark.parametrize("kind", NARROWED)
def test_only_files_that_changed_are_read_where_bounds_tell_them_from_others(
    lake, fresh, monkeypatch, kind: str
) -> None:
    table, (values, condition) = fresh(), NARROWED[kind]
    lake.runner.run(
        f"CREATE TABLE {table.sql} (k BIGINT, v BIGINT, s STRING) TBLPROPERTIES ('format-version'='3', "
        "'write.delete.mode'='merge-on-read', 'write.delete.granularity'='file')"
    )
    for batch in (200, 300, 400, 500):
        rows = f"SELECT /*+ COALESCE(1) */ {values}, CAST(id AS STRING) FROM range({batch}, {batch + 100})"
        lake.runner.run(f"INSERT INTO {table.sql} {rows}")
    lake.runner.run(f"ALTER TABLE {table.sql} RENAME COLUMN v TO w")
    start, before = lake.meta(table).current_snapshot_id, Counter(lake.rows(f"SELECT k, w FROM {table.sql}"))
    lake.runner.run(f"DELETE FROM {table.sql} WHERE s LIKE '2_7'")
    meta, wanted = lake.meta(table), Counter(lake.rows(f"SELECT k, w FROM {table.sql}"))
    end = meta.current_snapshot_id
    wanted.subtract(before)
    for ends, sign in (((start, end), 1), ((end, start), -1)):
        found = changes(lake, table, meta, *ends, ("k", "w"))
        assert {row: n for row, n in found.items() if n} == {row: sign * n for row, n in wanted.items() if n}
    text = changes_sql(table, meta, plan_changes(meta, start, end), ("k", "w")) or ""
    assert (condition in text) if condition else (" BETWEEN " not in text)
    monkeypatch.setattr(file_narrowing, "MOST_BYTES", 0)  # too many files to look at
    assert " BETWEEN " not in (changes_sql(table, meta, plan_changes(meta, start, end), ("k", "w")) or "")
