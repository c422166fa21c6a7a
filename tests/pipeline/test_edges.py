"""Corners of the life of a stream table, each of which went wrong once or easily could."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pytest
from kit.late import commits_late
from kit.long_tests import LONG

from headrace.api.facade import Headrace
from headrace.catalog import resource_of
from headrace.cost import mode_choice
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Event, RefreshFailed, RefreshStarted, StageFinished, StageStarted
from headrace.names import LAKE, STAGING, TableName
from headrace.physical import stage_planner
from headrace.reasons import FullReason
from headrace.refresh.execution import Run
from headrace.results.refresh_results import Mode
from headrace.spark.runner import SparkRunner


@pytest.fixture
def source(hr: Headrace, ns: str) -> str:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t USING iceberg AS SELECT * FROM VALUES (1, 10), (2, 20) AS t(k, v)")
    return f"lake.{ns}.t"


def test_a_name_used_again_gets_the_new_query(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT sum(v) AS x FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 30)")
    hr.refresh(f"{ns}.s")
    hr.drop_stream_table(f"{ns}.s")
    hr.create_stream_table(f"{ns}.s", f"SELECT max(k) AS x FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (4, 40)")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert hr.spark.table(f"lake.{ns}.s").first()[0] == 4
    assert hr.verify(f"{ns}.s").ok


def test_rows_of_a_union_that_spark_casts_are_deleted(hr: Headrace, ns: str, source: str) -> None:
    """What Spark knows of the values of such a change does not fit the rows that were kept of it."""
    hr.spark.sql(f"CREATE TABLE lake.{ns}.b USING iceberg AS SELECT * FROM VALUES ('01'), ('3') AS b(s)")
    both = f"SELECT k FROM (SELECT k FROM {ns}.t UNION ALL SELECT s FROM {ns}.b) WHERE CAST(k AS STRING) = '1'"
    hr.create_stream_table(f"{ns}.s", both, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"DELETE FROM lake.{ns}.b WHERE s = '01'")
    done = hr.refresh(f"{ns}.s")
    assert (done.mode, done.rows_deleted) == (Mode.DIFFERENTIAL, 1)
    assert hr.verify(f"{ns}.s").ok


def test_a_union_of_structs_keeps_the_names_of_their_fields(hr: Headrace, ns: str, source: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.b (id BIGINT) USING iceberg")
    one, other = (f"SELECT struct({name} AS userId) AS s FROM {ns}.{of}" for name, of in (("k", "t"), ("id", "b")))
    both = f"{one} UNION ALL {other}"
    hr.create_stream_table(f"{ns}.s", f"SELECT to_json(s) AS j FROM ({both})", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (7, 70)")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert sorted(r.j for r in hr.spark.table(f"lake.{ns}.s").collect()) == [f'{{"userId":{n}}}' for n in (1, 2, 7)]
    hr.spark.sql(f"DELETE FROM {source} WHERE k = 1")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert hr.verify(f"{ns}.s").ok


@pytest.mark.long
def test_texts_of_zeros_follow_their_signs(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.z (k INT, n INT, x DOUBLE) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.z VALUES (1, 1, -0.0D)")
    greatest = f"SELECT CAST(max(x) AS STRING) AS m FROM {ns}.z GROUP BY k"
    hr.create_stream_table(f"{ns}.s", greatest, refresh_mode="DIFFERENTIAL")
    changes = (
        ("INSERT INTO {} VALUES (1, 2, 0.0D)", "-0.0"),
        ("UPDATE {} SET x = -5.0D WHERE n = 1", "0.0"),
        ("UPDATE {} SET x = -0.0D WHERE n = 2", "-0.0"),
        ("UPDATE {} SET x = 0.0D WHERE n = 2", "0.0"),
        ("INSERT INTO {} VALUES (1, 3, 9.0D)", "9.0"),
    )
    for change, expected in changes:
        hr.spark.sql(change.format(f"lake.{ns}.z"))
        assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
        assert [row.m for row in hr.spark.table(f"lake.{ns}.s").collect()] == [expected], change


def test_stream_tables_and_what_reads_them_have_the_same_zeros(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.z (k INT, n INT, x DOUBLE) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.z VALUES (1, 1, -0.0D), (2, 2, 0.0D), (3, 3, 1.0D)")
    upper = {
        "most": (f"SELECT k, max(x) AS f FROM {ns}.z GROUP BY k", "DIFFERENTIAL"),
        "bag": (f"SELECT x AS f FROM {ns}.z", "DIFFERENTIAL"),
        "nested": (f"SELECT k, struct(x, array(x)) AS s, x AS f FROM {ns}.z", "DIFFERENTIAL"),
        "whole": (f"SELECT k, x AS f FROM {ns}.z", "FULL"),
    }
    for name, (query, mode) in upper.items():
        hr.create_stream_table(f"{ns}.{name}", query, refresh_mode=mode)
        text = "CAST(s AS STRING)" if name == "nested" else "CAST(f AS STRING)"
        read = f"SELECT {text} AS t, count(*) AS c FROM {ns}.{name} GROUP BY 1"
        hr.create_stream_table(f"{ns}.of_{name}", read, refresh_mode="DIFFERENTIAL")
    names = [f"{ns}.{prefix}{name}" for name in upper for prefix in ("", "of_")]
    changes = (
        "UPDATE {} SET x = -0.0D WHERE n = 2",
        "INSERT INTO {} VALUES (1, 4, 0.0D), (3, 5, -0.0D)",
        "DELETE FROM {} WHERE n IN (1, 3)",
        "UPDATE {} SET x = -x WHERE x = 0",
        "DELETE FROM {} WHERE n IN (2, 4)",
    )
    for change in changes:
        hr.spark.sql(change.format(f"lake.{ns}.z"))
        modes = {result.name: result.mode for result in hr.refresh(names)}
        assert [name for name, mode in modes.items() if mode is Mode.FULL] == [f"{ns}.whole"], modes
        assert [v for v in hr.verify(names) if not v.ok] == [], change


def test_stream_tables_and_what_reads_them_have_maps_in_the_same_order(hr: Headrace, ns: str) -> None:
    """Maps are equal whatever the order of their entries, which their texts show."""
    columns = "k INT, v INT, m MAP<STRING, STRING>, d MAP<STRING, DOUBLE>, a ARRAY<MAP<INT, INT>>"
    hr.spark.sql(
        f"CREATE TABLE lake.{ns}.z ({columns}) USING iceberg TBLPROPERTIES ('write.update.mode'='copy-on-write')"
    )
    one = "map('b', '1', 'a', NULL), map('b', 0, 'a', 2), array(map(2, 1, 1, 2))"
    other = "m = map('a', NULL, 'b', '1'), d = map('a', 2, 'b', 0), a = array(map(1, 2, 2, 1))"
    rows = f"(1, 10, {one}), (2, 20, {one}), (2, 20, {one}), (3, 30, NULL, NULL, NULL)"
    hr.spark.sql(f"INSERT INTO lake.{ns}.z VALUES {rows}")
    queries = {
        "s": f"SELECT k, v, m FROM {ns}.z",
        "of_s": f"SELECT k, to_json(m) AS j, count(*) AS c FROM {ns}.s GROUP BY 1, 2",
        "m": f"SELECT k, to_json(m) AS j FROM {ns}.z",
        "d": f"SELECT k, CAST(d AS STRING) AS j, to_json(a) AS l FROM {ns}.z",
    }
    for name, query in queries.items():
        hr.create_stream_table(f"{ns}.{name}", query, refresh_mode="DIFFERENTIAL")
    names = [f"{ns}.{name}" for name in queries]
    changes = (
        "UPDATE {} SET v = 11 WHERE k = 1",
        f"UPDATE {{}} SET {other} WHERE v IN (11, 30)",
        f"INSERT INTO {{}} VALUES (2, 20, {one}), (4, 40, {one})",
        f"UPDATE {{}} SET {other} WHERE k = 2",
    )
    for change in changes:
        hr.spark.sql(change.format(f"lake.{ns}.z"))
        assert [result for result in hr.refresh(names) if result.mode is Mode.FULL] == []
        assert [v for v in hr.verify(names) if not v.ok] == [], change


@pytest.mark.parametrize(
    ("type_", "values", "text", "formerly_shown", "shown"),
    [
        ("DOUBLE", ("-0.0D", "1.0D"), "CAST(x AS STRING)", {"-0.0", "1.0"}, {"0.0", "1.0"}),
        (
            "MAP<STRING, STRING>",
            ("map('b', '1', 'a', '2')", "map()"),
            "to_json(x)",
            {'{"b":"1","a":"2"}', "{}"},
            {'{"a":"2","b":"1"}', "{}"},
        ),
    ],
)
def test_values_become_plain_under_the_eyes_of_readers(
    hr: Headrace,
    ns: str,
    monkeypatch: pytest.MonkeyPatch,
    type_: str,
    values: tuple[str, str],
    text: str,
    formerly_shown: set[str],
    shown: set[str],
) -> None:
    """As where a reader is loaded again before its source is, which was stored with zeros' signs, or maps unsorted."""
    hr.spark.sql(f"CREATE TABLE lake.{ns}.z (k INT, x {type_}) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.z VALUES (1, {values[0]}), (2, {values[1]})")
    with monkeypatch.context() as formerly:
        formerly.setattr(stage_planner, "in_plain_values", lambda query, columns: query)
        hr.create_stream_table(f"{ns}.s", f"SELECT k, x FROM {ns}.z", refresh_mode="DIFFERENTIAL")
    texts = f"SELECT k, {text} AS t FROM {ns}.s"
    hr.create_stream_table(f"{ns}.r", texts, refresh_mode="DIFFERENTIAL")
    assert {row.t for row in hr.spark.table(f"lake.{ns}.r").collect()} == formerly_shown
    hr.refresh(f"{ns}.s", full=True)
    assert hr.refresh(f"{ns}.r").mode is Mode.DIFFERENTIAL
    assert {row.t for row in hr.spark.table(f"lake.{ns}.r").collect()} == shown
    assert hr.verify(f"{ns}.r").ok


def test_values_without_equality_are_counted(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.d (src INT, ts INT, doc STRING) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.d VALUES (1, 1, '[1]'), (1, 2, '{{'), (1, 3, 'true')")
    counts = "max(ts) AS t, count(try_parse_json(doc)) AS n"
    hr.create_stream_table(f"{ns}.s", f"SELECT src, {counts} FROM {ns}.d GROUP BY src", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"DELETE FROM lake.{ns}.d WHERE ts = 3")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert [tuple(row) for row in hr.spark.table(f"lake.{ns}.s").collect()] == [(1, 2, 1)]
    assert hr.verify(f"{ns}.s").ok


def test_fields_may_have_names_that_need_quotes(hr: Headrace, ns: str, source: str) -> None:
    kind = "STRUCT<`content-type`: STRING, `größe`: INT>"
    hr.spark.sql(f"CREATE TABLE lake.{ns}.e (k INT, headers {kind}) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.e VALUES (1, named_struct('content-type', 'text', 'größe', 3))")
    part = f"SELECT t.k, e.headers, e.headers.`content-type` AS ct FROM {ns}.t LEFT JOIN {ns}.e ON e.k = t.k"
    hr.create_stream_table(f"{ns}.s", part, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.e VALUES (2, named_struct('content-type', 'json', 'größe', 4))")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    hr.spark.sql(f"DELETE FROM lake.{ns}.e WHERE k = 1")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert {(r.k, r.ct) for r in hr.spark.table(f"lake.{ns}.s").collect()} == {(1, None), (2, "json")}
    assert hr.verify(f"{ns}.s").ok


def test_days_outside_of_pythons_calendar_are_deleted(hr: Headrace, ns: str) -> None:
    days = ("DATE'2020-01-01'", "CAST('+10000-01-01' AS DATE)", "DATE'-0044-03-15'")
    rows = ", ".join(f"({day}, {k})" for k, day in enumerate(days, 1))
    hr.spark.sql(f"CREATE TABLE lake.{ns}.d USING iceberg AS SELECT * FROM VALUES {rows} AS d(day, k)")
    hr.create_stream_table(f"{ns}.s", f"SELECT day, k FROM {ns}.d", refresh_mode="DIFFERENTIAL")
    for change in (f"UPDATE lake.{ns}.d SET k = 9 WHERE k = 3", f"DELETE FROM lake.{ns}.d WHERE k = 2"):
        hr.spark.sql(change)
        assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert hr.verify(f"{ns}.s").ok


def test_a_table_that_older_rules_made_is_made_again(hr: Headrace, ns: str, source: str) -> None:
    name = TableName(LAKE, (ns,), "s")
    hr.create_stream_table(f"{ns}.s", f"SELECT k, sum(v) AS v FROM {ns}.t GROUP BY k", refresh_mode="DIFFERENTIAL")
    hr._catalog.alter_stream_table(name, details={**hr._catalog.stream_table(name).details, "layout": 1})
    again = hr.refresh(f"{ns}.s")
    assert (again.mode, again.reason) == (Mode.FULL, FullReason.DEFINITION_CHANGED)
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 5)")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert hr.verify(f"{ns}.s").ok


ROWS, SUMS = "SELECT k, v FROM {}.t", "SELECT k, sum(v) AS v FROM {}.t GROUP BY k"
COMES, GOES = "INSERT INTO {} VALUES (1, 5)", "DELETE FROM {} WHERE k = 2"


def case(*values: object, long: bool) -> object:
    """Parameters of a test, which may be left to `make test-long`."""
    return pytest.param(*values, marks=[pytest.mark.long] if long else [])


@pytest.mark.parametrize(
    ("where", "query", "change", "full"),
    [
        case("state", ROWS, COMES, False, long=True),
        case("log", ROWS, COMES, False, long=False),
        case("state", ROWS, GOES, False, long=False),
        case("log", ROWS, GOES, False, long=True),
        case("state", SUMS, COMES, False, long=True),
        case("log", SUMS, COMES, False, long=True),
        case("state", ROWS, COMES, True, long=True),
        case("log", ROWS, COMES, True, long=False),
    ],
)
def test_what_a_killed_process_still_commits_is_not_built_on(
    hr: Headrace, ns: str, source: str, query: str, change: str, full: bool, where: str
) -> None:
    hr.create_stream_table(f"{ns}.s", query.format(ns), refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.follows", f"SELECT k FROM {ns}.s", refresh_mode="DIFFERENTIAL")
    table = hr._catalog.stream_table(TableName(LAKE, (ns,), "s"))
    assert table.log is not None
    written = (table.name if where == "state" else table.log).within(STAGING).sql
    hr.spark.sql(change.format(source))
    once = [f"INSERT INTO {written} SELECT * FROM {written}"]

    def commit(event: Event) -> None:
        """After its work was put back, and before anything else is committed."""
        if isinstance(event, RefreshStarted) and once:
            hr.spark.sql(once.pop())

    unsubscribe = hr.events.subscribe(commit)
    with pytest.raises(EnvironmentFault, match="STAGING_CHANGED") as raised:
        hr.refresh(f"{ns}.s", full=full)
    unsubscribe()
    assert raised.value.retryable
    hr.refresh([f"{ns}.s", f"{ns}.follows"])
    assert all(v.ok for v in hr.verify([f"{ns}.s", f"{ns}.follows"]))


@pytest.mark.parametrize(
    ("query", "change"),
    [
        case(ROWS, COMES, long=True),
        case(SUMS, COMES, long=False),
        case(ROWS, GOES, long=False),
    ],
)
def test_nor_is_what_it_commits_while_its_heir_writes(
    hr: Headrace, ns: str, source: str, query: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hr.create_stream_table(f"{ns}.s", query.format(ns), refresh_mode="DIFFERENTIAL")
    hr.spark.sql(change.format(source))
    written = f"`staging`.`{ns}`.`s`"
    late = commits_late(monkeypatch, written, f"INSERT INTO {written} VALUES (7, 7)")
    with pytest.raises(EnvironmentFault, match="STAGING_CHANGED"):
        hr.refresh(f"{ns}.s")
    assert late
    hr.refresh(f"{ns}.s")
    assert hr.verify(f"{ns}.s").ok


def test_a_query_without_sources_is_replaced_by_another(hr: Headrace, ns: str) -> None:
    hr.create_stream_table(f"{ns}.s", "SELECT 1 AS x")
    assert hr.refresh(f"{ns}.s").mode is Mode.NO_CHANGE
    hr.create_stream_table(f"{ns}.s", "SELECT 2 AS x", or_replace=True)
    assert [row.x for row in hr.spark.table(f"lake.{ns}.s").collect()] == [2]
    assert hr.refresh(f"{ns}.s").mode is Mode.NO_CHANGE


@pytest.mark.long
def test_a_star_keeps_meaning_them_in_another_session(hr: Headrace, ns: str, source: str) -> None:
    star, kept = f"SELECT * FROM {ns}.t", f"SELECT * FROM {ns}.t WHERE v > 0 AND k IN (SELECT max(k) FROM {ns}.t)"
    hr.create_stream_table(f"{ns}.s", star, refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.c", kept, refresh_mode="DIFFERENTIAL")
    names = [f"{ns}.s", f"{ns}.c"]
    for column in ("extra STRING", "several MAP<INT, INT>"):
        hr.spark.sql(f"ALTER TABLE {source} ADD COLUMN {column}")
        hr.spark.sql(f"INSERT INTO {source} (k, v) VALUES (3, 30)")
        hr._engine().views.memory.keep_only(())
        assert [r.mode for r in hr.refresh(names)] == [Mode.DIFFERENTIAL] * 2
    assert [r.mode for r in hr.refresh(names, full=True)] == [Mode.FULL] * 2
    assert all(v.ok for v in hr.verify(names))
    assert hr.spark.table(f"lake.{ns}.s").columns == ["k", "v"]


def test_a_replacement_that_ends_too_early_leaves_what_was_there(
    hr: Headrace, ns: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k FROM {ns}.t")
    monkeypatch.setattr(hr._engine().creator.tables, "format_version", 2)
    with pytest.raises(HeadraceError, match="TYPE_NOT_STORABLE"):
        hr.create_stream_table(f"{ns}.s", f"SELECT k, parse_json('1') AS j FROM {ns}.t", or_replace=True)
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 30)")
    hr.refresh(f"{ns}.s")
    assert hr.verify(f"{ns}.s").ok


def at_random(hr: Headrace, ns: str, query: str) -> str:
    """A table that was maintained when it was defined, and whose query cannot be any more; gives its name."""
    name = TableName(LAKE, (ns,), "s")
    hr.create_stream_table(f"{ns}.s", query.format(ns))
    details = hr._catalog.stream_table(name).details
    again = details["query"].replace("v AS", "v + CAST(rand() AS INT) AS")
    assert again != details["query"]
    hr._catalog.alter_stream_table(name, details={**details, "query": again})
    return f"{ns}.s"


def test_what_cannot_be_maintained_any_more_is_recomputed(hr: Headrace, ns: str, source: str) -> None:
    name = at_random(hr, ns, "SELECT k, v AS v FROM {}.t")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 5)")
    assert hr.explain(name).as_dict()["reason"] == FullReason.NOT_DETERMINISTIC
    again = hr.refresh(name)
    assert (again.mode, again.reason, again.rows_inserted) == (Mode.FULL, FullReason.NOT_DETERMINISTIC, 3)
    hr.alter_stream_table(name, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 6)")
    with pytest.raises(HeadraceError, match="NOT_MAINTAINABLE"):
        hr.refresh(name)


def test_nor_is_that_where_its_companion_would_not_follow(hr: Headrace, ns: str, source: str) -> None:
    query = "SELECT k, sum(w) AS w FROM (SELECT k, v AS w FROM {}.t) GROUP BY k"
    name = at_random(hr, ns, query)
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 5)")
    before = hr.status([name])[0].frontier
    with pytest.raises(HeadraceError, match="NOT_MAINTAINABLE") as raised:
        hr.refresh(name)
    assert "CREATE OR REPLACE" in (raised.value.hint or "")
    assert hr.status([name])[0].frontier == before
    hr.create_stream_table(name, query.format(ns), or_replace=True)
    assert hr.verify(name).ok


def test_queries_may_end_in_semicolons_and_comments(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k FROM {ns}.t -- all of them\n;")
    hr.create_stream_table(f"{ns}.c", f"SELECT k, row_number() OVER (ORDER BY k) AS n FROM {ns}.t -- numbered")
    assert all(v.ok for v in hr.verify([f"{ns}.s", f"{ns}.c"]))


def test_signed_zeros_can_leave(hr: Headrace, ns: str) -> None:
    rows = "(1, -0.0D), (2, double('NaN')), (3, NULL)"
    hr.spark.sql(f"CREATE TABLE lake.{ns}.z USING iceberg AS SELECT * FROM VALUES {rows} AS z(k, x)")
    hr.create_stream_table(f"{ns}.s", f"SELECT k, x FROM {ns}.z", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"DELETE FROM lake.{ns}.z WHERE k < 3")
    assert hr.refresh(f"{ns}.s").rows_deleted == 2
    assert hr.verify(f"{ns}.s").ok


def test_a_table_dropped_behind_our_back(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k FROM {ns}.t")
    hr.spark.sql(f"DROP TABLE lake.{ns}.s")
    with pytest.raises(EnvironmentFault) as caught:
        hr.refresh(f"{ns}.s")
    assert caught.value.code == "STORED_TABLE_DROPPED"
    hr.create_stream_table(f"{ns}.s", f"SELECT k FROM {ns}.t", or_replace=True)
    assert hr.verify(f"{ns}.s").ok


def test_unknown_properties_are_refused(hr: Headrace, ns: str, source: str) -> None:
    with pytest.raises(UserError) as caught:
        hr.sql(f"CREATE STREAM TABLE {ns}.s WITH (speed = 'high') AS SELECT k FROM {ns}.t")
    assert caught.value.code == "INVALID_OPTION"


def test_times_need_a_zone(hr: Headrace) -> None:
    with pytest.raises(UserError) as caught:
        hr.at(dt.datetime(2026, 1, 1))
    assert caught.value.code == "INVALID_OPTION"


def test_the_past_is_read_as_one_state(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT sum(v) AS v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    publication = hr.history(f"{ns}.s")[0].publication
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 70)")
    hr.refresh(f"{ns}.s")
    assert publication is not None
    assert hr.at(publication).table(f"{ns}.s").first()[0] == 30
    assert hr.at().sql(f"SELECT s.v = sum(t.v) FROM {ns}.s AS s, {ns}.t AS t GROUP BY s.v").first()[0] is True
    assert hr.at(dt.datetime.now(dt.UTC)).table(f"{ns}.s").first()[0] == 100


def at_stage(hr: Headrace, action: object) -> object:
    """Run something once, when the first stage of writing ends."""
    done = threading.Event()

    def listener(event: Event) -> None:
        if isinstance(event, StageFinished) and event.stage.startswith("compute") and not done.is_set():
            done.set()
            action()  # type: ignore[operator]

    return hr.events.subscribe(listener)


def test_who_lost_the_lease_cannot_publish(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 30)")
    resource = resource_of(TableName(LAKE, (ns,), "s"))
    taken = []

    def steal() -> None:
        taken.extend(hr._catalog.acquire([resource], "thief", dt.timedelta(seconds=60), is_dead=lambda _: True))

    unsubscribe = at_stage(hr, steal)
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(f"{ns}.s")
    unsubscribe()  # type: ignore[operator]
    assert caught.value.code == "LEASE_LOST"
    assert hr.spark.table(f"lake.{ns}.s").count() == 2
    hr._catalog.release(taken)
    assert hr.refresh(f"{ns}.s").rows_inserted == 1
    assert hr.verify(f"{ns}.s").ok


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SELECT k, 60 div v AS v FROM {}", marks=pytest.mark.long),
        "SELECT k % 2 AS g, sum(60 div v) AS v FROM {} GROUP BY 1",
    ],
)
def test_a_row_that_cannot_be_computed_and_is_gone_again_is_no_trouble(
    hr: Headrace, ns: str, source: str, query: str
) -> None:
    hr.create_stream_table(f"{ns}.s", query.format(f"{ns}.t"), refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.r", f"SELECT max(v) AS v FROM {ns}.s", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 0)")
    with pytest.raises(UserError, match="ARITHMETIC_ERROR"):
        hr.refresh(f"{ns}.s")
    assert hr._catalog.dirty_staging() == ()
    hr.spark.sql(f"UPDATE {source} SET v = 12 WHERE k = 3")
    result = hr.refresh(f"{ns}.s")
    assert (result.mode, result.reason) == (Mode.FULL, FullReason.CHANGE_FAILED)
    assert hr.refresh(f"{ns}.r").mode is Mode.DIFFERENTIAL
    hr.spark.sql(f"INSERT INTO {source} VALUES (6, 4)")
    assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert all(v.ok for v in hr.verify([f"{ns}.s", f"{ns}.r"]))


@pytest.mark.parametrize("broken", [False, True], ids=["change", "query"])
def test_a_statement_that_spark_refuses_is_no_trouble_where_the_query_is_fine(
    hr: Headrace, ns: str, source: str, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    def refused(run: Run, *_: object, **__: object) -> None:
        run._context.runner.run("SELECT missing FROM VALUES (1) AS t (v)")

    hr.create_stream_table(f"{ns}.s", f"SELECT k % 2 AS g, sum(v) AS v FROM {ns}.t GROUP BY 1")
    hr.create_stream_table(f"{ns}.d", f"SELECT k, v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 12)")
    monkeypatch.setattr(mode_choice, "_prefers_full", lambda *_: False)
    with monkeypatch.context() as patched:
        patched.setattr(Run, "differential", refused)
        if broken:
            patched.setattr(Run, "full", refused)
        for name in ("s", "d") if broken else ("d",):
            with pytest.raises(UserError, match="COLUMN_NOT_FOUND"):
                hr.refresh(f"{ns}.{name}")
        if not broken:
            result = hr.refresh(f"{ns}.s")
            assert (result.mode, result.reason) == (Mode.FULL, FullReason.STATEMENT_REFUSED)
            assert "missing" in (result.detail or "")
    assert hr._catalog.dirty_staging() == ()
    said = {
        "history": str(hr.history(f"{ns}.s")[0].reason),
        "status": str(hr.status([f"{ns}.s"])[0].last_reason),
        "explain": str(hr.explain(f"{ns}.s")),
    }
    assert ["STATEMENT_REFUSED" in said["history"], "refused" in said["explain"]] == [not broken] * 2
    assert ("STATEMENT_REFUSED" in said["status"]) is not broken
    hr.spark.sql(f"INSERT INTO {source} VALUES (6, 4)")
    for name in ("s", "d"):
        assert hr.refresh(f"{ns}.{name}").mode is Mode.DIFFERENTIAL
    assert "refused" not in str(hr.explain(f"{ns}.s"))
    assert all(v.ok for v in hr.verify([f"{ns}.s", f"{ns}.d"]))


def test_two_refreshers_do_not_meet(hr: Headrace, ns: str, source: str) -> None:
    hr.create_stream_table(f"{ns}.s", f"SELECT k, v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (3, 30)")
    met: list[str] = []
    told: list[Event] = []

    def second() -> None:
        try:
            hr.refresh(f"{ns}.s")
        except HeadraceError as error:
            met.append(error.code)

    def start() -> None:
        other = threading.Thread(target=second)
        other.start()
        other.join()

    unsubscribe, deaf = at_stage(hr, start), hr.events.subscribe(told.append)
    hr.refresh(f"{ns}.s")
    unsubscribe()  # type: ignore[operator]
    deaf()
    assert met == ["LEASE_HELD"]
    assert not any(isinstance(event, RefreshFailed) for event in told)  # nothing is wrong with the table
    assert hr.verify(f"{ns}.s").ok


def test_progress_is_told_stage_by_stage(hr: Headrace, ns: str, source: str) -> None:
    heard: list[Event] = []
    unsubscribe = hr.events.subscribe(heard.append)
    hr.create_stream_table(f"{ns}.s", f"SELECT v, count(*) AS n FROM {ns}.t GROUP BY v", refresh_mode="DIFFERENTIAL")
    unsubscribe()
    started = [e.stage for e in heard if isinstance(e, StageStarted)]
    finished = [e.stage for e in heard if isinstance(e, StageFinished)]
    assert started
    assert sorted(started) == sorted(finished)


def test_columns_written_with_their_tables_whole_name(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT, v INT) USING iceberg")
    hr.spark.sql(f"CREATE VIEW lake.{ns}.v AS SELECT k, v FROM {ns}.t WHERE v > 0")
    query = f"SELECT {ns}.t.k, lake.{ns}.v.v FROM {ns}.t JOIN {ns}.v ON {ns}.t.k = v.k"
    hr.create_stream_table(f"{ns}.s", query)  # no snapshot to read yet
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 1)")
    assert hr.refresh(f"{ns}.s", full=True).rows_inserted == 1
    hr.spark.sql(f"ALTER TABLE lake.{ns}.t ADD COLUMN w INT")  # read through a projection from now on
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (2, 2, 2)")
    assert hr.refresh(f"{ns}.s", full=True).rows_inserted == 2
    assert hr.verify(f"{ns}.s").ok


def test_few_rows_that_follow_from_a_large_change_are_held_the_next_time(
    hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch, over_connect: bool
) -> None:
    rows = "CAST(id % 5 AS INT) AS k, CAST(id AS INT) AS v FROM range(60000)"
    hr.spark.sql(f"CREATE TABLE lake.{ns}.large USING iceberg AS SELECT {rows}")
    query = f"SELECT k, max(v) AS v FROM {ns}.large GROUP BY k"
    hr.create_stream_table(f"{ns}.s", query, refresh_mode="DIFFERENTIAL")
    expected, materialize = dict[str, bool](), SparkRunner.materialize

    def told(runner: SparkRunner, name: str, *args: Any, local: bool = False) -> dict[str, Any]:
        expected[name.rpartition("_")[2]] = local
        return materialize(runner, name, *args, local=local)

    monkeypatch.setattr(SparkRunner, "materialize", told)
    for local in (False, not over_connect):  # of large changes it is told by the one before
        hr.spark.sql(f"DELETE FROM lake.{ns}.large WHERE v % 3 = 1")
        hr.spark.sql(f"INSERT INTO lake.{ns}.large SELECT id % 5, id FROM range(30000)")
        expected.clear()
        assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
        assert expected["touched"] is local
    assert hr.verify(f"{ns}.s").ok


def test_each_stage_is_told_once(hr: Headrace, ns: str, source: str) -> None:
    """So are steps that are part of the stage that reads them, where they are needed and where they are not."""
    hr.spark.sql(f"INSERT INTO {source} VALUES (2, 5), (2, 90)")
    hr.create_stream_table(f"{ns}.s", f"SELECT k, max(v) AS v FROM {ns}.t GROUP BY k", refresh_mode="DIFFERENTIAL")
    for change in (f"DELETE FROM {source} WHERE v = 5", f"DELETE FROM {source} WHERE v = 90"):
        hr.spark.sql(change)
        told = list[str]()
        unsubscribe = hr.events.subscribe(
            lambda e, told=told: told.append(e.stage) if isinstance(e, StageStarted) else None
        )
        hr.refresh(f"{ns}.s")
        unsubscribe()
        assert "compute rescanned" in told
        assert len(told) == len(set(told)), told
    assert hr.verify(f"{ns}.s").ok


@pytest.mark.long
def test_averages_of_large_integers_below_a_join(hr: Headrace, ns: str, source: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.e (k INT, n BIGINT) USING iceberg")
    large = 2**53
    for rows in (f"(1, {large}L)", "(1, 1L), (1, 1L), (1, 3L)", f"(1, {large + 3}L)", "(1, 1L), (2, 5L)"):
        hr.spark.sql(f"INSERT INTO lake.{ns}.e VALUES {rows}")
    groups = f"SELECT k, avg(n) AS a FROM {ns}.e GROUP BY k"
    query = f"SELECT t.k, g.a FROM {ns}.t JOIN ({groups}) g ON g.k = t.k"
    hr.create_stream_table(f"{ns}.s", query, refresh_mode="DIFFERENTIAL")
    insert = f"INSERT INTO {{}} VALUES (1, {large - 1}L)"
    for change in ("DELETE FROM {} WHERE n = 3", insert, "DELETE FROM {} WHERE n = 1"):
        hr.spark.sql(change.format(f"lake.{ns}.e"))
        assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
        assert hr.verify(f"{ns}.s").ok, change  # what is wrong may be replaced by the next change
    expected = (large + large + 3 + large - 1) / 3
    assert {(row.k, row.a) for row in hr.spark.table(f"lake.{ns}.s").collect()} == {(1, expected), (2, 5.0)}


NARROW = {
    "extreme": "SELECT g, CAST(sum(d) / max(CAST(n AS TINYINT)) AS STRING) AS q FROM {0}.t GROUP BY g",
    "value": "SELECT g, CAST(sum(d) / max_by(CAST(n AS TINYINT), n) AS STRING) AS q FROM {0}.t GROUP BY g",
    "key": "SELECT CAST(sum(d) / b AS STRING) AS q FROM (SELECT d, CAST(n AS SMALLINT) AS b FROM {0}.t) GROUP BY b",
    "first": "SELECT g, CAST(sum(d) / max(CAST(n AS TINYINT)) AS STRING) AS q FROM {0}.t GROUP BY g ORDER BY g LIMIT 3",
    "below": "SELECT g, CAST(d / m AS STRING) AS q FROM {0}.t, (SELECT max(CAST(n AS TINYINT)) AS m FROM {0}.t)",
    "recursive": "WITH RECURSIVE r(b, l) AS (SELECT CAST(n AS TINYINT), 1 FROM {0}.t UNION ALL SELECT b, l + 1 FROM r "
    "WHERE l < 2) SELECT b, l, CAST(CAST(100 AS DECIMAL(10,4)) / b AS STRING) AS q FROM r",
    "rows": "SELECT g, d, CAST(n AS TINYINT) AS b FROM {0}.t",
    "reader": "SELECT g, CAST(sum(d) / max(b) AS STRING) AS q FROM {0}.rows GROUP BY g",
    "of_rows": "SELECT g, CAST(d / b AS STRING) AS q FROM {0}.rows",
    "groups": "SELECT g, max(d) AS d, max(CAST(n AS TINYINT)) AS b FROM {0}.t GROUP BY g",
    "of_groups": "SELECT g, CAST(d / b AS STRING) AS q FROM {0}.groups",
}
FURTHER_NARROW = ("value", "key", "first", "reader", "groups", "of_groups")
"""Left to `make test-long`: each has another beside it whose integers are stored alike."""


def test_small_integers_calculate_as_in_the_query(hr: Headrace, ns: str) -> None:
    """Iceberg keeps them as larger ones, by which a quotient has other digits."""
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (g INT, d DECIMAL(10,4), n INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 100.0000, 3), (2, 50.0000, 6)")
    played = [name for name in NARROW if LONG or name not in FURTHER_NARROW]
    for name in played:
        hr.create_stream_table(f"{ns}.{name}", NARROW[name].format(ns), refresh_mode="DIFFERENTIAL")
    names = [f"{ns}.{name}" for name in played]
    assert hr.spark.table(f"lake.{ns}.extreme").where("g = 1").first().q == "33.33333333"
    changes = ("INSERT INTO {} VALUES (1, 1.0000, 7), (3, 10.0000, 7)", "DELETE FROM {} WHERE n = 7", "")
    for change in changes:
        if change:
            hr.spark.sql(change.format(f"lake.{ns}.t"))
        found = {result.mode for result in hr.refresh(names, full=not change)}
        assert found == {Mode.DIFFERENTIAL if change else Mode.FULL}
        assert [each for each in hr.verify(names) if not each.ok] == [], change


def test_nor_do_they_grow_where_they_overflow(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (g INT, n INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 20000)")
    query = f"SELECT g, max(CAST(n AS SMALLINT)) * CAST(2 AS SMALLINT) AS q FROM {ns}.t GROUP BY g"
    hr.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        hr.create_stream_table(f"{ns}.s", query, refresh_mode="DIFFERENTIAL")
    finally:
        hr.spark.conf.unset("spark.sql.ansi.enabled")
    for row, expected in (("(2, 1)", {(1, -25536), (2, 2)}), ("(1, 20001)", {(1, -25534), (2, 2)})):
        hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES {row}")
        assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
        assert {tuple(each) for each in hr.spark.table(f"lake.{ns}.s").collect()} == expected


@pytest.mark.parametrize("mode", ["merge-on-read", pytest.param("copy-on-write", marks=pytest.mark.long)])
def test_columns_may_differ_by_case_alone(hr: Headrace, ns: str, mode: str) -> None:
    how = ", ".join(f"'write.{each}.mode'='{mode}'" for each in ("delete", "update"))
    hr.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT, v INT, V STRING) USING iceberg TBLPROPERTIES ({how})")
        hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 1, 'a'), (2, 2, 'b')")
        hr.create_stream_table(
            f"{ns}.low", f"SELECT k, sum(v) AS s FROM {ns}.t GROUP BY k", refresh_mode="DIFFERENTIAL"
        )
        hr.create_stream_table(f"{ns}.both", f"SELECT k, v, V AS w FROM {ns}.t", refresh_mode="DIFFERENTIAL")
        hr.create_stream_table(f"{ns}.full", f"SELECT v, V AS w, uuid() IS NULL AS n FROM {ns}.t")
        names = [f"{ns}.{name}" for name in ("low", "both", "full")]
        update, alter = "UPDATE {} SET v = v + 1, V = 'c' WHERE k = 1", "ALTER TABLE {} ADD COLUMN x INT"
        for change in (update, alter, "DELETE FROM {} WHERE k = 2"):
            hr.spark.sql(change.format(f"lake.{ns}.t"))
            hr.refresh(names)
            assert [each for each in hr.verify(names[:2]) if not each.ok] == [], change
        assert [tuple(row) for row in hr.spark.table(f"lake.{ns}.both").collect()] == [(1, 2, "c")]
        assert hr.spark.table(f"lake.{ns}.full").count() == 1
    finally:
        hr.spark.conf.unset("spark.sql.caseSensitive")


def test_common_table_expressions_and_tables_may_differ_by_case_alone(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (a INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1), (2)")
    hr.spark.conf.set("spark.sql.caseSensitive", "true")
    hr.spark.sql(f"USE lake.{ns}")
    try:
        query = "WITH T AS (SELECT a + 10 AS a FROM t) SELECT t.a, T.a AS b FROM t CROSS JOIN T"
        hr.create_stream_table(f"{ns}.own", query)
        hr.create_stream_table(f"{ns}.full", f"{query} WHERE uuid() IS NOT NULL")
        hr.spark.sql(f"CREATE VIEW lake.{ns}.v AS {query}")
        hr.create_stream_table(f"{ns}.viewed", f"SELECT count(*) AS n FROM {ns}.v")
        pinned = hr.at()
        hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (3)")
        assert (pinned.sql(query).count(), pinned.table(f"{ns}.v").count()) == (4, 4)
    finally:
        hr.spark.sql("USE lake")
        hr.spark.conf.unset("spark.sql.caseSensitive")
    names = [f"{ns}.own", f"{ns}.full", f"{ns}.viewed"]
    hr.refresh(names)
    assert [each for each in hr.verify(names) if not each.ok] == []
    assert hr.spark.table(f"lake.{ns}.full").count() == 9


@pytest.mark.long
def test_timestamps_stay_what_they_are_where_the_session_takes_the_word_otherwise(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT, l TIMESTAMP_LTZ, n TIMESTAMP_NTZ) USING iceberg")
    at = "TIMESTAMP_LTZ '2024-06-01 0{}:00:00', TIMESTAMP_NTZ '2024-06-01 0{}:00:00'"
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, {at.format(1, 2)}), (2, {at.format(3, 4)})")
    hr.spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    hr.spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    queries = {
        "shown": "SELECT k, l, n, CAST('2024-01-01' AS TIMESTAMP) AS c FROM {t}",
        "grouped": "SELECT l, max(n) AS m, min(l) AS least, count(*) AS c FROM {t} GROUP BY l",
        "joined": "SELECT a.k, b.l, b.n FROM {t} AS a LEFT JOIN {t} AS b ON b.k = a.k + 1",
        "united": "SELECT l FROM {t} UNION ALL SELECT n FROM {t}",
    }
    try:
        for name, query in queries.items():
            hr.create_stream_table(f"{ns}.{name}", query.format(t=f"{ns}.t"), refresh_mode="DIFFERENTIAL")
            own = hr.spark.sql(query.format(t=f"lake.{ns}.t"))
            stored = hr.spark.table(f"lake.{ns}.{name}")
            assert stored.schema.simpleString() == own.schema.simpleString()
            assert sorted(map(repr, stored.collect())) == sorted(map(repr, own.collect()))
    finally:
        hr.spark.conf.unset("spark.sql.timestampType")
        hr.spark.conf.unset("spark.sql.session.timeZone")
    names = [f"{ns}.{name}" for name in queries]
    for change in (f"INSERT INTO lake.{ns}.t VALUES (3, {at.format(5, 6)})", f"DELETE FROM lake.{ns}.t WHERE k = 2"):
        hr.spark.sql(change)
        hr.refresh(names)
        assert [each for each in hr.verify(names) if not each.ok] == [], change


def test_options_by_which_a_text_is_read_otherwise_belong_to_the_definition(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (a INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1), (2), (3)")
    queries = {
        "spark.sql.ansi.relationPrecedence": "SELECT x.a, z.a AS b FROM {t} x, {t} y RIGHT JOIN {t} z "
        "ON z.a = y.a AND y.a > 5",
        "spark.sql.legacy.setopsPrecedence.enabled": "SELECT a FROM {t} UNION SELECT a + 1 FROM {t} INTERSECT SELECT 2",
        "spark.sql.ansi.doubleQuotedIdentifiers": 'SELECT count("a") AS n, "a" AS x FROM {t} GROUP BY "a"',
        "spark.sql.legacy.ctePrecedencePolicy": "WITH x AS (SELECT 1 AS b), "
        "y AS (WITH x AS (SELECT 2 AS b) SELECT b FROM x) SELECT a, b FROM {t} CROSS JOIN y",
    }
    names = [f"{ns}.v{number}" for number in range(len(queries))]
    for name, (option, query) in zip(names, queries.items(), strict=True):
        text = query.format(t=f"lake.{ns}.t").replace('"', "'")
        usual = {tuple(row) for row in hr.spark.sql(text).collect()}
        hr.spark.conf.set(option, "LEGACY" if option.endswith("Policy") else "true")
        try:
            hr.create_stream_table(name, query.format(t=f"{ns}.t"))
            expected = {tuple(row) for row in hr.spark.sql(query.format(t=f"lake.{ns}.t")).collect()}
            assert hr.validate(query.format(t=f"{ns}.t")).reason is FullReason.OPERATOR_NOT_MAINTAINED
        finally:
            hr.spark.conf.unset(option)
        assert {tuple(row) for row in hr.spark.table(f"lake.{name}").collect()} == expected != usual, option
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (4), (6), (NULL)")
    hr.refresh(names)
    assert [each for each in hr.verify(names) if not each.ok] == []
    assert hr.spark.table(f"lake.{names[0]}").where("a IS NOT NULL").count() > 0


def test_a_number_is_looked_for_among_texts_as_a_text(hr: Headrace, ns: str) -> None:
    """Without ANSI mode IN compares both as texts, though = compares them as numbers."""
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (x INT) USING iceberg")
    hr.spark.sql(f"CREATE TABLE lake.{ns}.u (s STRING) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1), (2), (NULL)")
    hr.spark.sql(f"INSERT INTO lake.{ns}.u VALUES ('abc')")
    queries = {
        "without": f"SELECT x FROM {ns}.t WHERE x NOT IN (SELECT s FROM {ns}.u)",
        "among": f"SELECT x FROM {ns}.t WHERE x IN (SELECT s FROM {ns}.u)",
        "numbers": f"SELECT s FROM {ns}.u WHERE s NOT IN (SELECT x FROM {ns}.t)",
        "either": f"SELECT x FROM {ns}.t WHERE x NOT IN (SELECT s FROM {ns}.u) OR x > 2",
        "longest": f"SELECT x FROM {ns}.t WHERE x IN (SELECT max(s) FROM {ns}.u WHERE length(s) = t.x)",
    }
    hr.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for name, query in queries.items():
            hr.create_stream_table(f"{ns}.{name}", query, refresh_mode="DIFFERENTIAL")
    finally:
        hr.spark.conf.unset("spark.sql.ansi.enabled")
    names, found = [f"{ns}.{name}" for name in queries], list[int]()
    changes = (
        "INSERT INTO {}.t VALUES (3)",
        "INSERT INTO {}.u VALUES ('3'), ('02')",
        "INSERT INTO {}.u VALUES (NULL)",
        "DELETE FROM {}.u WHERE s IS NULL OR s = '3'",
    )
    for change in changes:
        hr.spark.sql(change.format(f"lake.{ns}"))
        assert {result.mode for result in hr.refresh(names)} <= {Mode.DIFFERENTIAL, Mode.NO_CHANGE}
        assert [each for each in hr.verify(names) if not each.ok] == [], change
        found.append(hr.spark.table(f"lake.{ns}.without").count())
    assert found == [3, 2, 0, 3]


def test_tables_of_one_name_stay_apart(hr: Headrace, ns: str) -> None:
    unclear = f"SELECT 1 AS x FROM {ns}.o WHERE EXISTS (SELECT 1 FROM {ns}_b.o WHERE o.id = {ns}.o.id)"
    with pytest.raises(HeadraceError, match="COLUMN_AMBIGUOUS"):
        hr.create_stream_table(f"{ns}.u", unclear)
    hr.sql(f"""
    CREATE NAMESPACE {ns}_b;
    CREATE TABLE {ns}.o USING iceberg AS SELECT * FROM VALUES (1), (2) AS t(id);
    CREATE TABLE {ns}_b.o USING iceberg AS SELECT * FROM VALUES (2) AS t(id);
    CREATE STREAM TABLE {ns}.l AS SELECT id FROM {ns}.o;
    CREATE STREAM TABLE {ns}.r AS SELECT lake.{ns}.l.id FROM lake.{ns}.l;
    CREATE STREAM TABLE {ns}.t AS SELECT {ns}.o.id FROM {ns}.o
        WHERE NOT EXISTS (SELECT 1 FROM {ns}_b.o WHERE {ns}_b.o.id = {ns}.o.id);
    ALTER TABLE {ns}.o ADD COLUMN note STRING;
    INSERT INTO {ns}.o VALUES (3, 'new')
    """)
    hr.refresh([f"{ns}.{name}" for name in "tlr"], full=True)
    found = {name: [row.id for row in hr.spark.table(f"lake.{ns}.{name}").orderBy("id").collect()] for name in "rt"}
    assert found == {"r": [1, 2, 3], "t": [1, 3]}
    assert all(each.ok for each in hr.verify([f"{ns}.{name}" for name in "rt"]))
