"""Every mistake gets a plain message and a code, and changes nothing."""

from __future__ import annotations

import pytest

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError, Unsupported, UserError
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode, Status


@pytest.fixture
def source(hr: Headrace, ns: str) -> str:
    rows = "VALUES (1, 10, 'a'), (2, 0, 'b') AS t(k, v, s)"
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t USING iceberg AS SELECT * FROM {rows}")
    return f"lake.{ns}.t"


def code_of(hr: Headrace, ns: str, query: str, name: str = "s", mode: str = "AUTO") -> HeadraceError:
    before = [t.name for t in hr.status()]
    with pytest.raises(HeadraceError) as caught:
        hr.create_stream_table(f"{ns}.{name}", query, refresh_mode=mode)
    assert [t.name for t in hr.status()] == before
    assert "\tat " not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT nope FROM {ns}.t", "COLUMN_NOT_FOUND"),
        ("SELECT k FROM {ns}.nope", "TABLE_NOT_FOUND"),
        ("SELECT k FROM {ns}.t WHERE", "SYNTAX_ERROR"),
        ("SELECT k, v AS k FROM {ns}.t", "DUPLICATE_COLUMN"),
        ("SELECT k, INTERVAL '1' DAY AS d FROM {ns}.t", "TYPE_NOT_STORABLE"),
        ("SELECT k, NULL AS n FROM {ns}.t", "TYPE_NOT_STORABLE"),
        ("SELECT k, v AS __hr_w FROM {ns}.t", "RESERVED_COLUMN"),
        ("SELECT k, v AS __HR_W FROM {ns}.t", "RESERVED_COLUMN"),
        ("SELECT k, 7 AS _Pos FROM {ns}.t", "RESERVED_COLUMN"),
        ("SELECT k FROM {ns}.t VERSION AS OF 1", "TIME_TRAVEL_SOURCE"),
        ("SELECT k, _row_id AS r FROM {ns}.t", "METADATA_COLUMN"),
        ("SELECT k FROM {ns}.t AS x WHERE x._POS < 1", "METADATA_COLUMN"),
        ("SELECT k, IDENTIFIER('_file') AS f FROM {ns}.t", "METADATA_COLUMN"),
        ("SELECT k, '${{spark.sql.shuffle.partitions}}' AS p FROM {ns}.t", "PARAMETER_UNBOUND"),
        ("SELECT k, v + ${{env:HOME}} AS p FROM {ns}.t", "PARAMETER_UNBOUND"),
        ("SELECT k, v AS __hr_x FROM {ns}.t -- ${{env:HOME}}", "RESERVED_COLUMN"),
        ("SELECT sum(s) FILTER (WHERE FROM {ns}.t", "SYNTAX_ERROR"),
    ],
)
def test_wrong_queries_create_nothing(hr: Headrace, ns: str, source: str, query: str, code: str) -> None:
    assert code_of(hr, ns, query.format(ns=ns)).code == code


def test_own_columns_may_be_named_as_metadata_columns_inside_of_a_query(hr: Headrace, ns: str, source: str) -> None:
    query = f"SELECT k, x._pos + f.s._file AS n FROM (SELECT k, v AS _pos FROM {ns}.t) AS x "
    query += f"JOIN (SELECT k AS j, named_struct('_file', 1) AS s FROM {ns}.t) AS f ON j = k"
    assert hr.create_stream_table(f"{ns}.s", query) is not None
    hr.spark.sql(f"ALTER TABLE {source} ADD COLUMN more INT")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 30, 'c', 1)")
    hr.refresh(f"{ns}.s")
    assert hr.verify(f"{ns}.s").ok


def test_validate_says_what_would_become_of_a_query(hr: Headrace, ns: str, source: str) -> None:
    found = hr.validate(f"SELECT k, max(v) AS m FROM {ns}.t GROUP BY k")
    assert found.mode is Mode.DIFFERENTIAL
    assert {"GROUP BY", "aggregate", "FROM"} <= {line.construct for line in found.strategies}
    assert found.columns == (("k", "int"), ("m", "int"))
    assert found.sources == (f"{ns}.t",)
    found = hr.validate(f"SELECT k,\n  rand() AS r FROM {ns}.t")
    assert (found.mode, found.reason) == (Mode.FULL, FullReason.NOT_DETERMINISTIC)
    assert (found.refusals[0].line, found.refusals[0].column) == (2, 3)
    with pytest.raises(UserError):
        hr.validate(f"SELECT nope FROM {ns}.t")
    assert not [t for t in hr.status() if t.name.startswith(ns)]


def test_a_syntax_error_shows_line_and_caret(hr: Headrace, ns: str, source: str) -> None:
    with pytest.raises(UserError) as caught:
        hr.sql(f"SELECT 1;\n\nCREATE STREAM TABLE {ns}.s AS\nSELECT k FROM {ns}.t\nWHERE k = = 1")
    assert caught.value.code == "SYNTAX_ERROR"
    assert caught.value.place is not None
    assert caught.value.place.line == 5
    assert "^" in str(caught.value)


def test_names(hr: Headrace, ns: str, source: str) -> None:
    assert code_of(hr, ns, f"SELECT k FROM {ns}.t", name="t").code == "TABLE_EXISTS"
    hr.create_stream_table(f"{ns}.s", f"SELECT k FROM {ns}.t")
    assert code_of(hr, ns, f"SELECT v FROM {ns}.t").code == "STREAM_TABLE_EXISTS"
    assert hr.create_stream_table(f"{ns}.s", f"SELECT v FROM {ns}.t", if_not_exists=True) is None
    for bad in ("", "a..b", "_headrace.x", "staging.a.b", "`unclosed"):
        with pytest.raises(UserError) as caught:
            hr.create_stream_table(bad, f"SELECT k FROM {ns}.t")
        assert caught.value.code == "INVALID_NAME"


def test_cycles_are_named(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.a", f"SELECT k FROM {ns}.t")
    hr.create_stream_table(f"{ns}.b", f"SELECT k FROM {ns}.a")
    with pytest.raises(UserError) as caught:
        hr.create_stream_table(f"{ns}.a", f"SELECT k FROM {ns}.b", or_replace=True)
    assert caught.value.code == "CYCLE"
    assert f"{ns}.a" in caught.value.message
    assert f"{ns}.b" in caught.value.message


def test_dropping_what_has_consumers(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.a", f"SELECT k FROM {ns}.t")
    hr.create_stream_table(f"{ns}.b", f"SELECT k FROM {ns}.a")
    with pytest.raises(UserError) as caught:
        hr.drop_stream_table(f"{ns}.a")
    assert caught.value.code == "HAS_CONSUMERS"
    assert set(hr.drop_stream_table(f"{ns}.a", cascade=True)) == {f"{ns}.a", f"{ns}.b"}
    assert hr.drop_stream_table(f"{ns}.a", if_exists=True) == ()
    with pytest.raises(UserError) as caught:
        hr.drop_stream_table(f"{ns}.a")
    assert caught.value.code == "STREAM_TABLE_NOT_FOUND"


@pytest.mark.parametrize(
    ("query", "construct", "reason"),
    [
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT DISTINCT n + 1 FROM r WHERE n < 3)"
            " SELECT k FROM {ns}.t, r",
            "recursion",
            FullReason.OPERATOR_NOT_MAINTAINED,
        ),
        ("SELECT k, rand() AS r FROM {ns}.t", "rand", FullReason.NOT_DETERMINISTIC),
        ("SELECT k, current_timestamp() AS r FROM {ns}.t", "current_timestamp", FullReason.NOT_DETERMINISTIC),
        ("SELECT k, v, last_value(v) OVER (ORDER BY k) AS r FROM {ns}.t", "last_value", FullReason.NOT_DETERMINISTIC),
    ],
)
def test_auto_says_why_full_and_differential_refuses(
    hr: Headrace, ns: str, source: str, query: str, construct: str, reason: FullReason
) -> None:
    refused = code_of(hr, ns, query.format(ns=ns), mode="DIFFERENTIAL")
    assert isinstance(refused, Unsupported)
    assert refused.code == "NOT_MAINTAINABLE"
    assert construct.lower() in refused.message.lower()
    assert refused.place is not None
    hr.create_stream_table(f"{ns}.s", query.format(ns=ns))
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 1, 'c')")
    result = hr.refresh(f"{ns}.s")
    assert (result.mode, result.reason) == (Mode.FULL, reason)
    assert hr.explain(f"{ns}.s").refusals[0].code is reason


def test_a_division_error_keeps_what_was_published(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, 100 / v AS q FROM {ns}.t WHERE k <> 2", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 0, 'zero')")
    with pytest.raises(UserError) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "ARITHMETIC_ERROR"
    assert hr.spark.table(f"lake.{ns}.s").count() == 1
    last = hr.history(f"{ns}.s")[0]
    assert (last.ok, last.error_code) == (False, "ARITHMETIC_ERROR")
    hr.spark.sql(f"DELETE FROM {source} WHERE k = 3")
    hr.refresh(f"{ns}.s")
    assert hr.verify(f"{ns}.s").ok


def test_a_failing_first_load_creates_nothing(hr: Headrace, ns: str, source: str) -> None:
    assert code_of(hr, ns, f"SELECT 1 / v AS q FROM {ns}.t").code == "ARITHMETIC_ERROR"
    assert not hr.spark.catalog.tableExists(f"lake.{ns}.s")


def test_a_used_column_dropped_stops_only_its_readers(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.reader", f"SELECT k, s FROM {ns}.t")
    hr.create_stream_table(f"{ns}.other", f"SELECT k, v FROM {ns}.t")
    hr.spark.sql(f"ALTER TABLE {source} DROP COLUMN s")
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 9)")
    with pytest.raises(UserError) as caught:
        hr.refresh()
    assert caught.value.code == "SOURCE_SCHEMA_CHANGED"
    reader, other = hr.status([f"{ns}.reader", f"{ns}.other"])
    assert (reader.status, other.status) == (Status.STOPPED, Status.ACTIVE)
    assert "CREATE OR REPLACE" in str(reader.stopped_reason)
    assert hr.verify(f"{ns}.other").rows == 3
    hr.create_stream_table(f"{ns}.reader", f"SELECT k FROM {ns}.t", or_replace=True)
    assert hr.verify(f"{ns}.reader").ok


def test_an_unused_column_dropped_is_followed_by_a_query_that_is_not_read(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.named", f"SELECT k, uuid() IS NULL AS n FROM {ns}.t")
    hr.create_stream_table(f"{ns}.all", f"SELECT *, uuid() IS NULL AS n FROM {ns}.t")
    hr.spark.sql(f"ALTER TABLE {source} DROP COLUMN s")
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 9)")
    with pytest.raises(UserError) as caught:
        hr.refresh(f"{ns}.all")
    assert caught.value.code == "SOURCE_SCHEMA_CHANGED"
    result = hr.refresh(f"{ns}.named")
    assert (result.mode, result.reason) == (Mode.FULL, FullReason.SCHEMA_CHANGED)
    hr.spark.sql(f"INSERT INTO {source} VALUES (10, 10)")
    assert hr.refresh(f"{ns}.named").reason is FullReason.NOT_DETERMINISTIC
    assert hr.verify(f"{ns}.named").ok


def test_a_column_dropped_and_added_again_is_another_one(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, s FROM {ns}.t")
    hr.spark.sql(f"ALTER TABLE {source} DROP COLUMN s")
    hr.spark.sql(f"ALTER TABLE {source} ADD COLUMN s STRING")
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 9, 'new')")
    with pytest.raises(UserError) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "SOURCE_SCHEMA_CHANGED"
    assert "another column" in caught.value.message
    hr.create_stream_table(f"{ns}.s", f"SELECT k, s FROM {ns}.t", refresh_mode="DIFFERENTIAL", or_replace=True)
    assert hr.verify(f"{ns}.s").ok
    hr.spark.sql(f"INSERT INTO {source} VALUES (10, 9, 'newer')")
    assert hr.refresh(f"{ns}.s").rows_inserted == 1


def test_a_nested_field_dropped_and_added_again_is_another_one(hr: Headrace, ns: str, source: str) -> None:
    hr.spark.sql(f"ALTER TABLE {source} ADD COLUMN place STRUCT<x: INT, y: INT>")
    hr.spark.sql(f"INSERT INTO {source} VALUES (8, 8, 'new', named_struct('x', 1, 'y', 2))")
    hr.create_stream_table(f"{ns}.s", f"SELECT k, place.y AS y FROM {ns}.t")
    hr.spark.sql(f"ALTER TABLE {source} DROP COLUMN place.y")
    hr.spark.sql(f"ALTER TABLE {source} ADD COLUMN place.y INT")
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 9, 'new', named_struct('x', 1, 'y', 3))")
    with pytest.raises(UserError) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "SOURCE_SCHEMA_CHANGED"
    assert "column place of" in caught.value.message
    assert "another field now" in caught.value.message
    hr.create_stream_table(f"{ns}.s", f"SELECT k, place.y AS y FROM {ns}.t", or_replace=True)
    assert hr.spark.sql(f"SELECT k, y FROM lake.{ns}.s WHERE k > 7 ORDER BY k").collect() == [(8, None), (9, 3)]
    assert hr.verify(f"{ns}.s").ok


def test_a_retyped_column_stops_its_reader(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, v FROM {ns}.t")
    hr.spark.sql(f"ALTER TABLE {source} ALTER COLUMN v TYPE BIGINT")
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 9, 'x')")
    with pytest.raises(UserError) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "SOURCE_SCHEMA_CHANGED"


def test_a_view_in_the_place_of_a_source_is_read_through(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"ALTER TABLE {source} RENAME TO {ns}.t_raw")
    hr.spark.sql(f"CREATE VIEW {source} AS SELECT k, v, s FROM {source}_raw WHERE k > 1")
    with pytest.raises(UserError, match="is a view now"):
        hr.explain(f"{ns}.s")
    (result,) = hr.refresh()
    assert (result.mode, result.reason) == (Mode.FULL, FullReason.DEFINITION_CHANGED)
    assert hr.spark.table(f"lake.{ns}.s").count() == 1
    hr.spark.sql(f"INSERT INTO {source}_raw VALUES (9, 9, 'x')")
    assert hr.refresh(f"{ns}.s").rows_inserted == 1
    assert hr.verify(f"{ns}.s").ok


def test_a_recreated_source_is_loaded_again(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, count(*) AS n FROM {ns}.t GROUP BY k", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"DROP TABLE {source}")
    with pytest.raises(UserError) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "SOURCE_NOT_FOUND"
    hr.spark.sql(f"CREATE TABLE {source} (k INT, v INT, s STRING) USING iceberg")
    hr.spark.sql(f"INSERT INTO {source} VALUES (7, 7, 'new')")
    result = hr.refresh(f"{ns}.s")
    assert (result.mode, result.reason) == (Mode.FULL, FullReason.SOURCE_RECREATED)
    assert hr.verify(f"{ns}.s").ok


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "not loaded"])
def test_nor_are_columns_of_a_recreated_source_taken_for_others(
    hr: Headrace, ns: str, source: str, loaded: bool
) -> None:
    query = f"SELECT k, sum(v) AS v FROM {ns}.t GROUP BY k"
    hr.create_stream_table(f"{ns}.s", query, refresh_mode="DIFFERENTIAL", initialize=loaded)
    hr.spark.sql(f"DROP TABLE {source}")
    hr.spark.sql(f"CREATE TABLE {source} (k INT, v INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 7)")
    assert hr.refresh(f"{ns}.s").mode is Mode.FULL
    hr.spark.sql(f"ALTER TABLE {source} DROP COLUMN v")
    hr.spark.sql(f"ALTER TABLE {source} ADD COLUMN v INT")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 1)")
    with pytest.raises(UserError) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "SOURCE_SCHEMA_CHANGED"
    assert "another column" in caught.value.message


def test_expired_history_falls_back_to_full(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 1, 'c')")
    hr.spark.sql(f"INSERT INTO {source} VALUES (4, 1, 'c')")
    hr.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{ns}.t', older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
    )
    result = hr.refresh(f"{ns}.s")
    assert (result.mode, result.reason) == (Mode.FULL, FullReason.HISTORY_EXPIRED)
    assert "t" in str(result.detail)
    assert hr.verify(f"{ns}.s").ok


def test_a_foreign_writer_is_noticed_and_not_overwritten(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.s VALUES (100, 100)")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 1, 'c')")
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "FOREIGN_WRITER"
    assert hr.spark.table(f"lake.{ns}.s").count() == 3
    hr.refresh(f"{ns}.s", full=True)
    assert hr.verify(f"{ns}.s").ok


def test_options(hr: Headrace, ns: str, source: str) -> None:
    with pytest.raises(UserError) as caught:
        hr.create_stream_table(f"{ns}.s", f"SELECT k FROM {ns}.t", refresh_mode="SOMETIMES")
    assert caught.value.code == "INVALID_OPTION"
    with pytest.raises(UserError) as caught:
        hr.sql(f"CREATE STREAM TABLE {ns}.s SCHEDULE 'now and then' AS SELECT k FROM {ns}.t")
    assert caught.value.code == "INVALID_SCHEDULE"
    assert f"{ns}.s" not in [t.name for t in hr.status()]
    with pytest.raises(UserError) as caught:
        hr.at(123456789)
    assert caught.value.code == "PUBLICATION_NOT_FOUND"
