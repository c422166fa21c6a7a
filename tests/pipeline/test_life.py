"""The main path: create, change, refresh, verify."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest

import headrace
from headrace.api.facade import Headrace
from headrace.errors import HeadraceError, UserError
from headrace.reasons import FullReason
from headrace.refresh.definition.create import Creator
from headrace.results.refresh_results import Mode, RefreshResult
from headrace.semantics import Semantics


def orders(hr: Headrace, ns: str, properties: str = "") -> str:
    name = f"lake.{ns}.orders"
    rows = "(1L, 'EU', 10.50BD), (2L, 'EU', 20.00BD), (3L, 'US', 5.25BD), (4L, NULL, NULL)"
    columns = "id, region, CAST(amount AS DECIMAL(12,2)) AS amount"
    selected = f"SELECT {columns} FROM VALUES {rows} AS t(id, region, amount)"
    hr.spark.sql(f"CREATE TABLE {name} USING iceberg {properties} AS {selected}")
    return name


def rows(hr: Headrace, table: str) -> list[tuple[object, ...]]:
    return sorted((tuple(r) for r in hr.spark.table(table).collect()), key=repr)


MOR = (
    "TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read', "
    "'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
)


@pytest.mark.parametrize("properties", ["", MOR], ids=["copy-on-write", "merge-on-read"])
def test_an_aggregate_follows_its_source(hr: Headrace, ns: str, properties: str) -> None:
    source = orders(hr, ns, properties)
    first = hr.create_stream_table(
        f"{ns}.revenue",
        f"SELECT region, sum(amount) AS total FROM {ns}.orders GROUP BY region",
        refresh_mode="DIFFERENTIAL",
    )
    assert first is not None
    assert (first.mode, first.reason) == (Mode.FULL, FullReason.FIRST_LOAD)
    hr.spark.sql(f"INSERT INTO {source} VALUES (5, 'US', 1.00)")
    hr.spark.sql(f"UPDATE {source} SET amount = 11.50 WHERE id = 1")
    hr.spark.sql(f"DELETE FROM {source} WHERE id = 2")
    second = hr.refresh(f"{ns}.revenue")
    assert second.mode is Mode.DIFFERENTIAL
    assert (second.rows_inserted, second.rows_deleted) == (2, 2)
    assert rows(hr, f"lake.{ns}.revenue") == sorted(
        [("EU", Decimal("11.50")), ("US", Decimal("6.25")), (None, None)], key=repr
    )
    assert hr.verify(f"{ns}.revenue").ok
    third = hr.refresh(f"{ns}.revenue")
    assert third.mode is Mode.NO_CHANGE
    assert third.jobs == 0


def test_a_new_table_is_loaded_by_who_creates_it(hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers hear of it as soon as it is defined."""
    loaded, told = Creator._loaded, list[str]()

    def meanwhile(self: Creator, *args: Any, **options: Any) -> RefreshResult:
        with pytest.raises(HeadraceError) as caught:
            hr.refresh(f"{ns}.new")
        told.append(caught.value.code)
        return loaded(self, *args, **options)

    hr.sql(f"CREATE TABLE {ns}.a USING iceberg AS SELECT id AS k FROM range(3)")
    with monkeypatch.context() as patched:
        patched.setattr(Creator, "_loaded", meanwhile)
        result = hr.create_stream_table(f"{ns}.new", f"SELECT k FROM {ns}.a")
    assert (told, result and result.rows_inserted) == (["LEASE_HELD"], 3)
    with pytest.raises(HeadraceError, match="ARITHMETIC_ERROR"):
        hr.create_stream_table(f"{ns}.failing", f"SELECT 1 DIV k AS k FROM {ns}.a")
    assert [t.name for t in hr.status() if t.name.startswith(f"{ns}.")] == [f"{ns}.new"]
    assert not hr._catalog.held_resources()


@pytest.mark.long
def test_a_join_over_an_aggregate_of_a_stream_table(hr: Headrace, ns: str) -> None:
    source = orders(hr, ns)
    bosses = "VALUES ('EU', 'Ada'), ('US', 'Grace') AS t(region, boss)"
    hr.spark.sql(f"CREATE TABLE lake.{ns}.regions USING iceberg AS SELECT * FROM {bosses}")
    big = f"SELECT id, region, amount FROM {ns}.orders WHERE amount > 6"
    hr.create_stream_table(f"{ns}.big", big, refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(
        f"{ns}.bosses",
        f"SELECT r.boss, count(*) AS n, max(b.amount) AS most "
        f"FROM {ns}.big b JOIN {ns}.regions r ON b.region = r.region GROUP BY r.boss",
        refresh_mode="DIFFERENTIAL",
    )
    for statement in (
        f"DELETE FROM {source} WHERE id = 2",
        f"INSERT INTO {source} VALUES (6, 'US', 99.00), (7, 'EU', 6.01)",
        f"UPDATE lake.{ns}.regions SET boss = 'Lin' WHERE region = 'US'",
    ):
        hr.spark.sql(statement)
        results = hr.refresh([f"{ns}.big", f"{ns}.bosses"])
        assert all(r.mode is not Mode.FULL for r in results)
    assert all(v.ok for v in hr.verify([f"{ns}.big", f"{ns}.bosses"]))


def test_log_and_state_agree(hr: Headrace, ns: str) -> None:
    source = orders(hr, ns)
    hr.create_stream_table(f"{ns}.big", f"SELECT * FROM {ns}.orders WHERE amount > 6", refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.reader", f"SELECT count(*) AS n FROM {ns}.big", refresh_mode="DIFFERENTIAL")
    before = hr.at()
    hr.spark.sql(f"INSERT INTO {source} SELECT * FROM {source}")
    hr.spark.sql(f"DELETE FROM {source} WHERE id = 1")
    hr.refresh([f"{ns}.big", f"{ns}.reader"])
    assert [v.ok for v in hr.verify([f"{ns}.big", f"{ns}.reader"])] == [True, True]
    assert before.table(f"{ns}.big").count() == 2
    assert hr.at().table(f"{ns}.big").count() == 2
    assert hr.spark.table(f"lake.{ns}.reader").first()[0] == 2


@pytest.mark.long
def test_a_full_refresh_hands_consumers_the_difference(hr: Headrace, ns: str) -> None:
    source = orders(hr, ns)
    hr.create_stream_table(f"{ns}.copy", f"SELECT * FROM {ns}.orders", refresh_mode="FULL")
    hr.create_stream_table(
        f"{ns}.totals", f"SELECT region, count(*) AS n FROM {ns}.copy GROUP BY region", refresh_mode="DIFFERENTIAL"
    )
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 'EU', 1.00)")
    copy, totals = hr.refresh([f"{ns}.copy", f"{ns}.totals"])
    assert (copy.mode, copy.rows_inserted, copy.rows_deleted) == (Mode.FULL, 1, 0)
    assert (totals.mode, totals.rows_inserted, totals.rows_deleted) == (Mode.DIFFERENTIAL, 1, 1)
    assert hr.verify(f"{ns}.totals").ok


def test_compaction_and_rollback(hr: Headrace, ns: str) -> None:
    source = orders(hr, ns, MOR)
    hr.create_stream_table(
        f"{ns}.s", f"SELECT region, count(*) n FROM {ns}.orders GROUP BY region", refresh_mode="DIFFERENTIAL"
    )
    start = hr.spark.sql(f"SELECT snapshot_id FROM {source}.snapshots").first()[0]
    hr.spark.sql(f"INSERT INTO {source} VALUES (8, 'EU', 1.00)")
    hr.spark.sql(f"DELETE FROM {source} WHERE id = 3")
    hr.refresh(f"{ns}.s")
    hr.spark.sql(f"CALL lake.system.rewrite_data_files(table => '{ns}.orders', options => map('rewrite-all','true'))")
    compacted = hr.refresh(f"{ns}.s")
    assert (compacted.rows_inserted, compacted.rows_deleted, compacted.jobs) == (0, 0, 0)
    hr.spark.sql(f"CALL lake.system.rollback_to_snapshot('{ns}.orders', {start})")
    back = hr.refresh(f"{ns}.s")
    assert back.mode is Mode.DIFFERENTIAL
    assert hr.verify(f"{ns}.s").ok


def test_a_source_in_another_catalog(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE other.{ns}.t (k INT, v INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO other.{ns}.t VALUES (1, 10), (1, 10), (2, NULL)")
    hr.create_stream_table(
        f"{ns}.s", f"SELECT k, sum(v) AS v FROM other.{ns}.t GROUP BY k", refresh_mode="DIFFERENTIAL"
    )
    hr.spark.sql(f"DELETE FROM other.{ns}.t WHERE k = 2")
    hr.spark.sql(f"INSERT INTO other.{ns}.t VALUES (3, 1)")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert rows(hr, f"lake.{ns}.s") == [(1, 20), (3, 1)]
    hr.spark.newSession().sql(
        f"INSERT INTO other.{ns}.t VALUES (4, 1)"
    )  # the tables that this one has loaded stay there
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert rows(hr, f"lake.{ns}.s") == [(1, 20), (3, 1), (4, 1)]
    assert hr.verify(f"{ns}.s").ok


def test_views_of_the_catalog_are_read_through(hr: Headrace, ns: str) -> None:
    source = orders(hr, ns)
    hr.spark.sql(f"CREATE VIEW lake.{ns}.eu AS SELECT id, amount FROM {ns}.orders WHERE region = 'EU'")
    hr.create_stream_table(f"{ns}.s", f"SELECT count(*) AS n FROM {ns}.eu", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 'EU', 1.00)")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert rows(hr, f"lake.{ns}.s") == [(3,)]
    hr.spark.sql(f"CREATE OR REPLACE VIEW lake.{ns}.eu AS SELECT id, amount FROM {ns}.orders WHERE region = 'US'")
    changed = hr.refresh(f"{ns}.s")
    assert (changed.mode, changed.reason) == (Mode.FULL, FullReason.DEFINITION_CHANGED)
    assert rows(hr, f"lake.{ns}.s") == [(1,)]


def check_as_spark(hr: Headrace, ns: str, queries: dict[str, str]) -> None:
    """Stream tables and pinned reads return what Spark returns."""
    hr.refresh()
    for name, query in queries.items():
        expected = sorted(tuple(r) for r in hr.spark.sql(query.replace("FROM ", "FROM lake.")).collect())
        assert rows(hr, f"lake.{ns}.{name}") == expected
        assert sorted(tuple(r) for r in hr.at().sql(query).collect()) == expected
        assert hr.verify(f"{ns}.{name}").ok


@pytest.mark.long
def test_columns_of_views_have_the_types_of_the_views_schema(hr: Headrace, ns: str) -> None:
    """Iceberg has no SMALLINT, whose arithmetic ends at 32767."""
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (id INT, qty INT) USING iceberg")
    small = f"SELECT id, CAST(qty AS SMALLINT) AS q, named_struct('b', CAST(id AS TINYINT)) AS s FROM lake.{ns}.t"
    hr.spark.sql(f"CREATE VIEW lake.{ns}.w AS {small}")
    hr.spark.sql(f"CREATE VIEW lake.{ns}.nested (i, s) AS SELECT q, s FROM {ns}.w")
    queries = {
        "squares": f"SELECT id, q * q AS p FROM {ns}.w",
        "more": f"SELECT i * i AS p, s.b * 100 AS b FROM {ns}.nested",
    }
    for name, query in queries.items():
        hr.create_stream_table(f"{ns}.{name}", query, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (2, 300)")
    check_as_spark(hr, ns, queries)


@pytest.mark.long
def test_a_view_of_all_columns_keeps_those_it_had(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (id INT, qty INT) USING iceberg")
    hr.spark.sql(f"CREATE VIEW lake.{ns}.w (i, x) AS SELECT * FROM lake.{ns}.t")
    hr.spark.sql(f"CREATE VIEW lake.{ns}.nested AS SELECT * FROM lake.{ns}.w")
    queries = dict.fromkeys(("before", "redefined"), f"SELECT * FROM {ns}.w")
    for name, query in queries.items():
        hr.create_stream_table(f"{ns}.{name}", query, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"ALTER TABLE lake.{ns}.t ADD COLUMN x INT")
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.redefined AS SELECT * FROM {ns}.w")
    queries["after"] = f"SELECT i + x AS s FROM {ns}.nested"
    hr.create_stream_table(f"{ns}.after", queries["after"], refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 20, 7)")
    check_as_spark(hr, ns, queries)
    hr.spark.sql(f"ALTER TABLE lake.{ns}.t ADD COLUMN y INT")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (2, 30, 8, 9)")
    check_as_spark(hr, ns, queries)


def test_a_view_that_spark_does_not_read_is_refused(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (id INT) USING iceberg")
    hr.spark.sql(f"CREATE VIEW lake.{ns}.w AS SELECT id FROM lake.{ns}.t")
    hr.spark.sql(f"ALTER TABLE lake.{ns}.t ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(UserError, match="TYPE_MISMATCH") as refused:
        hr.create_stream_table(f"{ns}.s", f"SELECT id FROM {ns}.w")
    assert (refused.value.place, refused.value.hint) == (None, f"Create view {ns}.w again.")


def test_replacing_keeps_readers_and_consumers(hr: Headrace, ns: str) -> None:
    source = orders(hr, ns)
    hr.create_stream_table(f"{ns}.s", f"SELECT region, amount FROM {ns}.orders WHERE amount > 6")
    hr.create_stream_table(f"{ns}.n", f"SELECT count(*) AS n FROM {ns}.s", refresh_mode="DIFFERENTIAL")
    hr.alter_stream_table(f"{ns}.s", query=f"SELECT region, amount FROM {ns}.orders WHERE amount > 1")
    after = hr.refresh(f"{ns}.n")
    assert (after.mode, rows(hr, f"lake.{ns}.n")) == (Mode.DIFFERENTIAL, [(3,)])
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.s AS SELECT region, amount, id FROM {ns}.orders")
    assert hr.refresh(f"{ns}.n").reason is FullReason.SOURCE_RECREATED
    assert rows(hr, f"lake.{ns}.n") == [(4,)]
    hr.spark.sql(f"DELETE FROM {source} WHERE id = 1")
    hr.refresh()
    assert all(v.ok for v in hr.verify([f"{ns}.s", f"{ns}.n"]))


def test_statements(hr: Headrace, ns: str) -> None:
    orders(hr, ns)
    hr.sql(
        f"CREATE STREAM TABLE IF NOT EXISTS {ns}.revenue SCHEDULE '1 minute' AS "
        f"SELECT region, sum(amount) AS total FROM {ns}.orders GROUP BY region"
    )
    [info] = hr.status([f"{ns}.revenue"])
    assert (info.schedule, info.incremental, info.behind, info.rows) == ("1 minute", True, (), 3)
    hr.sql(f"INSERT INTO {ns}.orders VALUES (10, 'EU', 1.00); REFRESH STREAM TABLE {ns}.revenue FULL")
    assert hr.history(f"{ns}.revenue")[0].reason is FullReason.FORCED
    assert hr.sql(f"SELECT * FROM {ns}.revenue").count() == 3
    assert "sum" in str(hr.sql(f"EXPLAIN STREAM TABLE {ns}.revenue").sections)
    assert f"{ns}.revenue" in [t.name for t in hr.sql("SHOW STREAM TABLES")]
    hr.sql(f"USE lake.{ns}; CREATE STREAM TABLE plain AS SELECT id FROM orders")
    hr.sql(f"USE lake; DROP STREAM TABLE {ns}.plain")
    assert not hr.spark.catalog.tableExists(f"lake.{ns}.plain")


def test_a_table_that_is_always_recomputed_stores_no_more_than_its_rows(hr: Headrace, ns: str) -> None:
    source = orders(hr, ns)
    name = f"{ns}.revenue"
    query = f"SELECT region, avg(amount) AS mean FROM {ns}.orders GROUP BY region"
    hr.create_stream_table(name, query, refresh_mode="FULL")
    [table] = [t for t in hr._catalog.stream_tables() if str(t.name) == name]
    assert table.stored == (table.name,)
    hr.alter_stream_table(name, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (5, 'US', 1.00)")
    assert hr.refresh(name).reason is FullReason.DEFINITION_CHANGED
    hr.spark.sql(f"INSERT INTO {source} VALUES (6, 'EU', 1.00)")
    assert hr.refresh(name).mode is Mode.DIFFERENTIAL
    assert hr.verify(name).ok


@pytest.mark.long
def test_starting_spark_is_no_part_of_what_a_refresh_takes(
    hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hr.sql(f"CREATE TABLE {ns}.t (k INT) USING iceberg; CREATE STREAM TABLE {ns}.s AS SELECT k FROM {ns}.t")
    hr.sql(f"INSERT INTO {ns}.t VALUES (1)")
    runner, asked = hr._lazy.runner, []

    def slow() -> object:
        asked.append(time.sleep(3))
        return runner()

    monkeypatch.setattr(hr._lazy, "runner", slow)
    result = hr.refresh(f"{ns}.s")
    assert asked
    assert abs(hr.history(f"{ns}.s", limit=1)[0].seconds + result.stages["publish"] - result.seconds) < 2


def test_sessions_that_were_made_for_a_project_end_with_it(hr: Headrace, over_connect: bool) -> None:
    """Python waits for ever for the connection of one that is left when a process ends."""
    with headrace.open(hr.settings, spark=hr.spark) as other:
        other._lazy.runner().under(Semantics(time_zone="Asia/Tokyo"))
        (made,) = other._lazy.runner().derived()
    assert getattr(made, "is_stopped", False) is over_connect
    assert hr.spark.sql("SELECT 1").collect()[0][0] == 1
