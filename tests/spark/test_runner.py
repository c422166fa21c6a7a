"""The session, and running SQL in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from kit.names import temp_name
from kit.sparks import heard

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.names import TableName
from headrace.semantics import Semantics
from headrace.spark.local_relation import MOST_BYTES, MOST_ROWS
from headrace.spark.runner import SparkRunner
from headrace.spark.session import catalog_names, check_session
from headrace.spark.session_kind import SessionKind


def test_describing_runs_nothing(runner: SparkRunner) -> None:
    with runner.jobs("describe") as group:
        columns = runner.describe("SELECT id, id / 3D AS x, map('a', array(1.5)) AS m FROM range(9) WHERE id > 2")
    assert columns == (
        Column("id", "bigint", False),
        Column("x", "double", True),
        Column("m", "map<string,array<decimal(2,1)>>", False),
    )
    assert group.jobs == 0


def on(runner: SparkRunner, *, connect: bool) -> SparkRunner:
    """The runner, or one of the same session that keeps rows as it would over Spark Connect."""
    if not connect:
        return runner
    other = SparkRunner(runner.session)
    vars(other)["kind"] = SessionKind.CONNECT
    return other


@pytest.mark.parametrize(("connect", "local"), [(False, False), (True, False), (True, True), (False, True)])
@pytest.mark.parametrize(
    "where", ["true", "id > 100", "false", "EXISTS (SELECT 1 FROM range(0) AS r WHERE r.id = x.id)"]
)
def test_materializing_computes_once_and_measures_in_the_same_pass(
    runner: SparkRunner, where: str, connect: bool, local: bool
) -> None:
    name, runner = temp_name("x"), on(runner, connect=connect)
    sql = f"SELECT id FROM range(9) AS x WHERE {where}"
    with runner.jobs("materialize") as group:
        got = runner.materialize(name, sql, {"n": "count(*)", "top": "max(id)"}, local=local)
    assert got == ({"n": 9, "top": 8} if where == "true" else {"n": 0, "top": None})
    assert group.jobs is not None
    assert group.jobs <= (3 if "SELECT" in where else 2) + local
    assert len(runner.run(f"SELECT * FROM {name}")) == got["n"]
    runner.release(name)
    with pytest.raises(HeadraceError, match="TABLE_NOT_FOUND"):
        runner.run(f"SELECT * FROM {name}")
    runner.release(name)


@pytest.mark.parametrize(("where", "expected"), [("true", (9, 8)), ("id > 3 AND id < 3", (0, None))])
def test_appending_measures_in_the_same_pass(
    lake, fresh: Callable[..., TableName], where: str, expected: tuple[int, int | None]
) -> None:
    table = fresh("staging")
    lake.runner.run(f"CREATE TABLE {table.sql} (b BIGINT, a STRING) USING iceberg")
    sql = f"SELECT 'x' AS a, id AS b FROM range(9) WHERE {where}"
    got = lake.runner.append(table, sql, {"n": "count(*)", "top": "max(b)"})
    assert (got["n"], got["top"]) == expected
    assert lake.rows(f"SELECT count(*), max(b) FROM {table.sql} WHERE a = 'x' OR a IS NULL") == [expected]


@pytest.mark.parametrize("local", [False, True])
def test_a_result_can_be_joined_and_united_with_others(runner: SparkRunner, local: bool) -> None:
    name = temp_name("x")
    before = runner.session.conf.get("spark.sql.constraintPropagation.enabled", None)
    sql = "SELECT a.id, b.id AS other FROM range(9) a JOIN range(5) b ON a.id = b.id WHERE a.id > 1"
    runner.materialize(name, sql, {"n": "count(*)"}, local=local)
    assert runner.session.conf.get("spark.sql.constraintPropagation.enabled", None) == before
    assert "Range" not in runner.scalar(f"EXPLAIN SELECT * FROM {name}")
    united = f"SELECT id FROM (SELECT id FROM {name} UNION ALL SELECT other FROM {name} UNION ALL SELECT 7)"
    assert sorted(runner.run(united)) == [(2,), (2,), (3,), (3,), (4,), (4,), (7,)]
    assert runner.scalar(f"SELECT count(*) FROM range(4) r JOIN {name} x ON x.id = r.id") == 2
    runner.release(name)


@pytest.mark.parametrize("sql", ["SELECT id FROM range(9)", "WITH c AS (SELECT id FROM range(9)) SELECT * FROM c"])
@pytest.mark.parametrize("connect", [False, True])
def test_what_is_released_is_freed_at_once(runner: SparkRunner, sql: str, connect: bool) -> None:
    runner = on(runner, connect=connect)
    kept = runner.session.sparkContext._jsc.getPersistentRDDs  # type: ignore[union-attr]  # no public API tells
    name, before = temp_name("x"), set(kept())
    runner.materialize(name, sql, {"n": "count(*)"})
    assert set(kept()) - before
    runner.release(name)
    assert set(kept()) <= before


def test_readers_know_how_many_rows_there_are_and_not_where_they_come_from(runner: SparkRunner) -> None:
    name = temp_name("x")
    sql = "SELECT a.id, CAST(b.id AS STRING) AS s FROM range(1000000) a CROSS JOIN range(1000000) b WHERE a.id = b.id"
    runner.materialize(name, f"SELECT * FROM ({sql}) WHERE id % 100 = 0")
    shown = runner.scalar(f"EXPLAIN SELECT * FROM range(100000000) r JOIN {name} x ON x.id = r.id")
    assert "BroadcastHashJoin" in shown  # of ten thousand rows; a product of millions would be sorted
    assert shown.count("Range") == 1
    runner.release(name)


FEW = """
SELECT id, CAST(id AS DECIMAL(38, 10)) / 3 AS d, IF(id = 1, NULL, CAST(id AS STRING)) AS s, id % 2 = 0 AS b,
  DATE '0001-01-01' + CAST(id AS INT) AS day, TIMESTAMP '2024-03-31 01:30:00' AS t, CAST('2024-03-31' AS TIMESTAMP_NTZ)
  AS n, named_struct('x', id, 'y', array(id, NULL)) AS st, map('k', id) AS m, X'00FF' AS bin, float('NaN') AS f,
  -0.0D AS z, INTERVAL '1' DAY AS i, parse_json('{"a": [1]}') AS v
FROM range(3)
"""


def test_few_rows_stay_what_they_are_and_their_plan_ends_with_them(runner: SparkRunner) -> None:
    kept = runner.session.sparkContext._jsc.getPersistentRDDs  # type: ignore[union-attr]  # no public API tells
    name, before = temp_name("x"), set(kept())
    assert runner.materialize(name, FEW, {"n": "count(*)"}, local=True) == {"n": 3}
    assert set(kept()) <= before
    assert "Range" not in runner.scalar(f"EXPLAIN EXTENDED SELECT * FROM {name}")
    assert runner.describe(f"SELECT * FROM {name}") == runner.describe(FEW)
    shown = [str(row) for row in runner.run(f"SELECT * FROM {name}")]
    assert sorted(shown) == sorted(str(row) for row in runner.run(FEW))
    assert (
        len(runner.run(f"SELECT a.id FROM {name} a JOIN {name} b ON a.id <=> b.id UNION ALL SELECT id FROM {name}"))
        == 6
    )
    runner.release(name)
    with pytest.raises(HeadraceError, match="TABLE_NOT_FOUND"):
        runner.run(f"SELECT * FROM {name}")


def test_what_spark_knows_once_it_has_planned_is_held(runner: SparkRunner) -> None:
    first, second = temp_name("x"), temp_name("x")
    runner.materialize(first, FEW, {"n": "count(*)"}, local=True)
    both = f"SELECT *, 1L AS w FROM {first} WHERE id > 0 UNION ALL SELECT *, -1L FROM {first}"
    with runner.jobs("hold") as group:
        size = runner.hold(second, both, runner.describe(FEW))
    assert group.jobs == 0
    assert 0 < (size or 0) < 100_000
    runner.release(first)
    assert "Range" not in runner.scalar(f"EXPLAIN EXTENDED SELECT * FROM {second}")
    assert runner.describe(f"SELECT * EXCEPT (w) FROM {second}") == runner.describe(FEW)
    listed = "id, d, s, day, st.y, m['k'], bin, v:a[0]::int"
    united = f"SELECT {listed}, 1L FROM ({FEW}) WHERE id > 0 UNION ALL SELECT {listed}, -1L FROM ({FEW})"
    found, wanted = (runner.run(sql) for sql in (f"SELECT {listed}, w FROM {second}", united))
    assert sorted(map(tuple, found), key=str) == sorted(map(tuple, wanted), key=str)
    runner.release(second)


def test_what_is_held_can_be_for_another_session(runner: SparkRunner) -> None:
    first, second, there = temp_name("x"), temp_name("x"), Semantics("Asia/Tokyo", ansi=False)
    sql = "SELECT TIMESTAMP '2026-01-01 00:00:00 UTC' AS at, 1L AS w"
    runner.materialize(first, sql, {"n": "count(*)"}, local=True)
    size = runner.hold(second, f"SELECT * FROM {first}", runner.describe(sql), there)
    assert size is not None
    runner.release(first)
    other = runner.under(there)
    assert other.literal_count(second) == 1
    assert other.run(f"SELECT hour(at), w FROM {second}") == [(9, 1)]
    with pytest.raises(HeadraceError, match="TABLE_NOT_FOUND"):
        runner.run(f"SELECT * FROM {second}")
    other.release(second)
    with pytest.raises(HeadraceError, match="TABLE_NOT_FOUND"):
        other.run(f"SELECT * FROM {second}")


def test_what_has_to_be_computed_or_converted_is_not_held(runner: SparkRunner) -> None:
    first, second = temp_name("x"), temp_name("x")
    runner.materialize(first, "SELECT id FROM range(9)", {"n": "count(*)"}, local=True)
    (column,) = runner.describe("SELECT id FROM range(9)")
    for sql in (
        f"SELECT id FROM {first} WHERE id IN (SELECT id FROM range(3))",
        "SELECT id FROM range(9)",
        f"SELECT CAST(id AS INT) AS id FROM {first}",
    ):
        assert runner.hold(second, sql, (column,)) is None
        with pytest.raises(HeadraceError, match="TABLE_NOT_FOUND"):
            runner.run(f"SELECT * FROM {second}")
    runner.release(first)


def test_more_than_few_rows_are_left_where_they_are(runner: SparkRunner) -> None:
    name = temp_name("x")
    runner.materialize(name, f"SELECT id FROM range({MOST_ROWS + 1})", local=True)
    assert "LocalRelation" not in runner.scalar(f"EXPLAIN EXTENDED SELECT * FROM {name}")
    assert runner.scalar(f"SELECT count(*) FROM {name}") == MOST_ROWS + 1
    assert (runner.literal_count(name), runner.kept_count(name)) == (None, MOST_ROWS + 1)
    runner.release(name)
    assert runner.kept_count(name) is None
    runner.materialize(name, f"SELECT id FROM range({MOST_ROWS})", local=True)
    assert "LocalRelation" in runner.scalar(f"EXPLAIN EXTENDED SELECT * FROM {name}")
    assert runner.kept_count(name) == MOST_ROWS
    runner.release(name)


@pytest.mark.parametrize(
    "long", ["{}", "array({})", "map(1, {})", "named_struct('a', {})", "to_variant_object(array({}))"]
)
def test_few_rows_that_are_long_are_left_where_they_are(runner: SparkRunner, long: str) -> None:
    name, text = temp_name("x"), "repeat('x', {})"
    for length, held in ((100, True), (MOST_BYTES // 8, False)):
        runner.materialize(name, f"SELECT {long.format(text.format(length))} AS v FROM range(9)", local=True)
        assert ("LocalRelation" in runner.scalar(f"EXPLAIN EXTENDED SELECT * FROM {name}")) == held
        runner.release(name)


LONG = """
SELECT array_join(transform(sequence(1, 120000), x -> sha2(CAST(x * 10 + id AS STRING), 512)), '') AS v FROM range(9)
"""
"""More than the session hands over at once, however it is compressed."""


def test_few_rows_that_spark_does_not_hand_over_are_left_where_they_are(runner: SparkRunner) -> None:
    name = temp_name("x")
    runner.materialize(name, LONG, local=True)
    assert runner.literal_count(name) is None
    assert runner.scalar(f"SELECT count(*) FROM {name}") == 9
    runner.release(name)


def test_results_of_common_table_expressions_are_found_within_other_statements(runner: SparkRunner) -> None:
    first, second = temp_name("a"), temp_name("b")
    twice = "WITH c AS (SELECT id, id % 3 AS k FROM {0}) SELECT c.id, d.k FROM c JOIN c AS d ON c.id = d.id"
    runner.materialize(first, twice.format("range(9)"), {"n": "count(*)"})
    runner.materialize(second, twice.format(first), {"n": "count(*)"})
    plan = runner.scalar(f"EXPLAIN {twice.format(second)}")
    assert "Range" not in plan, plan
    assert runner.scalar(f"SELECT count(*) FROM ({twice.format(second)})") == 9
    runner.release(second)
    runner.release(first)


def test_a_pinned_result_outlives_writes_to_its_source(lake, fresh) -> None:
    runner, table, name = lake.runner, fresh(), temp_name("x")
    runner.run(f"CREATE TABLE {table.sql} (k INT)")
    runner.run(f"INSERT INTO {table.sql} VALUES (1)")
    snapshot = lake.meta(table).current_snapshot_id
    runner.materialize(name, f"SELECT * FROM {table.sql} VERSION AS OF {snapshot}", {"n": "count(*)"})
    runner.run(f"INSERT INTO {table.sql} VALUES (2)")
    assert runner.scalar(f"SELECT count(*) FROM {name}") == 1
    runner.release(name)


def test_semantics_have_sessions_of_their_own(runner: SparkRunner) -> None:
    other = Semantics("Asia/Tokyo", ansi=False, case_sensitive=True)
    child = runner.under(other)
    assert child.semantics == other
    assert runner.under(other) is child
    assert child.run("SELECT 1/0, current_timezone()") == [(None, "Asia/Tokyo")]
    with pytest.raises(HeadraceError, match="ARITHMETIC_ERROR"):
        runner.run("SELECT 1/0")


def test_semantics_are_read_however_they_are_written(runner: SparkRunner) -> None:
    session = runner.session
    try:
        session.sql("SET spark.sql.ansi.enabled = TRUE")
        assert runner.semantics.ansi
        session.sql("SET spark.sql.ansi.enabled = FALSE")
        assert not runner.semantics.ansi
    finally:
        session.conf.set("spark.sql.ansi.enabled", "true")


def test_options_set_at_run_time_reach_the_sessions(runner: SparkRunner) -> None:
    runner.run("SET spark.sql.mapKeyDedupPolicy=LAST_WIN")
    child = runner.under(Semantics("UTC", ansi=True, case_sensitive=True))
    assert child.run("SELECT map(1, 'a', 1, 'b')[1]") == [("b",)]
    runner.run("RESET spark.sql.mapKeyDedupPolicy")


def test_what_is_set_for_a_while_does_not_reach_the_sessions(runner: SparkRunner) -> None:
    name = "spark.sql.constraintPropagation.enabled"
    with runner._without_constraints():
        child = runner.under(Semantics("Asia/Seoul", ansi=True, case_sensitive=True))
    assert [each.session.conf.get(name) for each in (runner, child)] == ["true", "true"]


def test_jobs_are_counted_per_thread(runner: SparkRunner) -> None:
    counts = {}

    def work(times: int) -> None:
        with runner.jobs("work") as group:
            for _ in range(times):
                runner.run("SELECT count(*) FROM range(0, 10, 1, 2)")
            heard(runner.session)
        counts[times] = group.jobs

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts[3] == 3 * counts[1] > 0


def test_a_group_can_be_cancelled(runner: SparkRunner) -> None:
    started, codes = threading.Event(), []
    slow = "SELECT sum(x.id * y.id % 7) FROM range(0, 3000000, 1, 2) x JOIN range(3000000) y ON x.id % 7 <> y.id % 11"
    groups = []

    def work() -> None:
        with runner.jobs("slow") as group:
            groups.append(group)
            started.set()
            try:
                runner.run(slow)
            except HeadraceError as error:
                codes.append(error.code)

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(60)
    while thread.is_alive():
        runner.cancel(groups[0])
        thread.join(0.2)
    assert codes == ["CANCELLED"]


def test_a_big_refresh_does_not_starve_a_small_one(runner: SparkRunner) -> None:
    tasks = 6000  # that take minutes; they only sleep
    nap = "java_method('java.lang.Thread', 'sleep', 100L)"
    tracker = runner.session.sparkContext.statusTracker()

    def big() -> None:
        with runner.jobs("refresh big"), pytest.raises(HeadraceError, match="CANCELLED"):
            runner.run(f"SELECT count(n) FROM (SELECT {nap} AS n FROM range(0, {tasks}, 1, {tasks}))")

    def done() -> int | None:
        """Tasks of the big one that have ended; None while none has begun."""
        known = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
        begun = (info for info in known if info.numTasks == tasks and info.numActiveTasks + info.numCompletedTasks)
        return next((info.numCompletedTasks for info in begun), None)

    thread = threading.Thread(target=big)
    thread.start()
    try:
        while done() is None:
            assert thread.is_alive()
            time.sleep(0.01)
        with runner.jobs("refresh small"):
            assert runner.scalar("SELECT sum(id) FROM range(0, 8, 1, 2)") == 28
        ended = done()
    finally:
        while thread.is_alive():
            runner.cancel_all("refresh big")
            thread.join(0.2)
    assert ended is not None  # first come, first served would have had it wait for nearly all of them
    assert ended < tasks / 2


@pytest.mark.parametrize(
    ("sql", "code", "line"),
    [
        ("SELECT a\nFROM range(3)", "COLUMN_NOT_FOUND", 1),
        ("SELECT id\nFROM shop.nope", "TABLE_NOT_FOUND", 2),
        ("SELECT '😀😀' AS e,\n  nope FROM range(3)", "COLUMN_NOT_FOUND", 2),
        ("SELECT id\nFRM range(3)", "SYNTAX_ERROR", 2),
        ("SELECT\n  id AND 1 FROM range(3)", "TYPE_MISMATCH", 2),
        ("SELECT nofn(1)", "FUNCTION_NOT_FOUND", 1),
        ("SELECT id FROM range(3)\nWHERE id = :p", "PARAMETER_UNBOUND", 2),
        ("SELECT id FROM range(3)\nWHERE id = ?", "PARAMETER_UNBOUND", 2),
        ("SELECT id, count(*) FROM range(3)", "QUERY_INVALID", 1),
        ("SELECT\n id / (id - id) FROM range(3)", "ARITHMETIC_ERROR", 2),
        ("SELECT CAST('x' AS INT)", "VALUE_ERROR", 1),
        ("SELECT 9223372036854775807 + id FROM range(3)", "ARITHMETIC_ERROR", 1),
        ("SELECT raise_error('stop')", "RAISED_BY_QUERY", None),
    ],
)
def test_errors_are_told_plainly(runner: SparkRunner, sql: str, code: str, line: int | None) -> None:
    with pytest.raises(HeadraceError) as caught:
        runner.run(sql)
    error = caught.value
    assert error.code == code
    assert not error.retryable
    assert (error.place.line if error.place else None) == line
    text = str(error)
    assert not any(word in text for word in ("\tat ", "SQLSTATE", "Py4J", "org.apache"))


def test_a_failing_write_leaves_the_table(runner: SparkRunner, fresh) -> None:
    table = fresh()
    runner.run(f"CREATE TABLE {table.sql} (k INT)")
    with pytest.raises(HeadraceError, match="ARITHMETIC_ERROR"):
        runner.run(f"INSERT INTO {table.sql} SELECT CAST(id / (id - 5) AS INT) FROM range(9)")
    assert runner.scalar(f"SELECT count(*) FROM {table.sql}") == 0


def test_a_session_without_the_catalogs_is_refused(lake) -> None:
    check_session(lake.runner.session, lake.settings)
    assert catalog_names(lake.runner.session) >= {"lake", "staging", "hadoop_cat"}
    elsewhere = replace(lake.settings, warehouse="/elsewhere")
    with pytest.raises(EnvironmentFault, match="SESSION_NOT_CONFIGURED") as caught:
        check_session(lake.runner.session, elsewhere)
    assert "spark.sql.catalog.lake.warehouse should be '/elsewhere'" in str(caught.value)


def test_names_of_tables_are_found_wherever_a_query_stands(runner: SparkRunner) -> None:
    query = (
        "WITH w AS (SELECT offset FROM s.`a, b`) SELECT k IN (SELECT !c FROM s.u), (SELECT max(x) FROM lake.s.v) "
        "FROM w JOIN t ON EXISTS (FROM s.x |> UNION ALL FROM s.y)"
    )
    assert runner.relations(query) == {"w", "t", "s, a, b", "s, u", "lake, s, v", "s, x", "s, y"}
