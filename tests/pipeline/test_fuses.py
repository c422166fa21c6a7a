"""Fuses on Spark: a change that is too large is applied only when somebody says so."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from kit.spark_jobs import running_now
from kit.waiting import until

import headrace
from headrace.api.facade import Headrace
from headrace.config import Settings
from headrace.errors import HeadraceError
from headrace.events import Event, FuseBlown, Notice
from headrace.names import TableName
from headrace.refresh.cut.cut import Cut
from headrace.refresh.fuses.fuse import Fuse
from headrace.refresh.fuses.fuse_guard import guarded
from headrace.refresh.gather_facts import gather, known

TABLES = """
CREATE TABLE {ns}.a USING iceberg TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')
    AS SELECT id AS k, id % 10 AS v FROM range(100);
CREATE STREAM TABLE {ns}.b SCHEDULE 'ON CHANGE' WITH (fuse_ceiling = 50)
    AS SELECT v, count(*) AS n FROM {ns}.a GROUP BY v;
CREATE STREAM TABLE {ns}.c AS SELECT n, count(*) AS m FROM {ns}.b GROUP BY n;
CREATE STREAM TABLE {ns}.other AS SELECT k FROM {ns}.a
"""


@pytest.fixture
def tables(hr: Headrace, ns: str) -> str:
    hr.sql(TABLES.format(ns=ns))
    return ns


@pytest.fixture
def alone(hr: Headrace, ns: str) -> str:
    """Only the one with the fuse."""
    hr.sql(";".join(TABLES.split(";")[:2]).format(ns=ns))
    return ns


def blow(hr: Headrace, ns: str) -> None:
    hr.sql(f"INSERT INTO {ns}.a SELECT id, id % 7 FROM range(1000, 1060)")
    with pytest.raises(HeadraceError, match="FUSE_BLOWN") as caught:
        hr.refresh(f"{ns}.b")
    assert "60 rows changed" in (caught.value.detail or "")
    assert not caught.value.retryable


def rows(hr: Headrace, table: str) -> int:
    return int(hr.sql(f"SELECT sum(n) FROM {table}").collect()[0][0])


def test_apply(hr: Headrace, tables: str) -> None:
    ns, told = tables, list[Event]()
    unsubscribe = hr.events.subscribe(told.append)
    blow(hr, ns)
    assert rows(hr, f"{ns}.b") == 100
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.refresh()  # and the others are refreshed all the same
    assert not hr.status([f"{ns}.other"])[0].behind
    held = {t.name: t.held_up for t in hr.status()}
    assert (held[f"{ns}.b"], held[f"{ns}.c"]) == ("stopped by its fuse", f"{ns}.b is stopped by its fuse")
    assert held[f"{ns}.other"] is None
    (fuse,) = hr.fuses()
    assert (fuse.name, fuse.rows, fuse.limit, fuse.sources) == (f"{ns}.b", 60, 50, {f"{ns}.a": 60})
    summary = hr.run(once=True)  # a scheduler leaves it alone
    assert (summary.refreshed, summary.failed) == (0, 0)
    (result,) = hr.resolve_fuse(f"{ns}.b", "APPLY")
    assert result.rows_inserted > 0
    assert hr.fuses() == ()
    assert rows(hr, f"{ns}.b") == 160
    unsubscribe()
    assert [e.table for e in told if isinstance(e, FuseBlown)] == 2 * [f"{ns}.b"]
    logged = [e.fields for e in hr.event_log() if e.event == "fuse_resolved"]
    assert logged[-1] == {"table": f"{ns}.b", "resolution": "apply"}
    hr.refresh()
    assert all(v.ok for v in hr.verify([f"{ns}.b", f"{ns}.c"]))


def test_skip_is_remembered_until_the_table_is_recomputed(hr: Headrace, alone: str) -> None:
    ns = alone
    blow(hr, ns)
    (result,) = hr.resolve_fuse(f"{ns}.b", "skip")
    assert (result.mode.value, result.rows_inserted) == ("NO_CHANGE", 0)
    (info,) = hr.status([f"{ns}.b"])
    assert (info.behind, info.skipped_rows, info.fuse) == ((), 60, None)
    verified = hr.verify(f"{ns}.b")
    assert (verified.ok, verified.skipped_rows) == (False, 60)
    hr.alter_stream_table(f"{ns}.b", refresh_mode="DIFFERENTIAL")  # or AUTO might recompute it, skipped rows included
    hr.sql(f"INSERT INTO {ns}.a VALUES (2000, 1)")
    assert hr.refresh(f"{ns}.b").rows_inserted == 1  # later changes are followed
    assert rows(hr, f"{ns}.b") == 101
    assert hr.status([f"{ns}.b"])[0].skipped_rows == 60
    hr.refresh(f"{ns}.b", full=True)
    assert hr.status([f"{ns}.b"])[0].skipped_rows == 0
    assert hr.verify(f"{ns}.b").ok


def test_rows_that_no_counter_tells_of_are_counted(hr: Headrace, alone: str) -> None:
    """As of snapshots of writers that leave the counters out."""
    ns = alone
    hr.sql(f"CREATE STREAM TABLE {ns}.free AS SELECT k FROM {ns}.a")
    hr.sql(f"INSERT INTO {ns}.a SELECT id, id % 7 FROM range(1000, 1060)")
    know = known(hr._catalog, TableName("lake", (ns,), "free"))
    facts = gather(know, Cut(hr._catalog, lambda _: None).of(know.table.sources, frozenset()), forced=False, tag="x")
    (source,) = facts.sources
    assert source.change_rows == 60
    unknown = replace(facts, sources=(replace(source, change_rows=None),))
    surroundings = {"catalog": hr._catalog, "session": hr._lazy, "events": hr.events}
    assert guarded(know, unknown, Fuse(60), **surroundings) == {source.name: 60}
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        guarded(know, unknown, Fuse(59), **surroundings)


def test_what_follows_skipped_rows_and_does_not_fit_is_refused(hr: Headrace, alone: str) -> None:
    """Recomputing would take the decision back without a word."""
    ns = alone
    hr.alter_stream_table(f"{ns}.b", refresh_mode="DIFFERENTIAL")
    hr.sql(f"INSERT INTO {ns}.a SELECT id, id FROM range(1000, 1060)")
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.refresh(f"{ns}.b")
    hr.resolve_fuse(f"{ns}.b", "SKIP")
    hr.sql(f"DELETE FROM {ns}.a WHERE k = 1001")
    with pytest.raises(HeadraceError, match="STATE_DIVERGED") as caught:
        hr.refresh(f"{ns}.b")
    assert "FULL" in (caught.value.hint or "")
    assert rows(hr, f"{ns}.b") == 100
    assert hr.status([f"{ns}.b"])[0].skipped_rows == 60
    hr.refresh(f"{ns}.b", full=True)
    assert hr.verify(f"{ns}.b").ok


def test_reinitialize(hr: Headrace, alone: str) -> None:
    ns = alone
    blow(hr, ns)
    result = hr.sql(f"ALTER STREAM TABLE {ns}.b RESOLVE FUSE REINITIALIZE")[0]
    assert result.mode.value == "FULL"
    assert hr.fuses() == ()
    assert hr.verify(f"{ns}.b").ok


def test_a_source_that_is_repaired_needs_no_decision(hr: Headrace, alone: str) -> None:
    ns = alone
    blow(hr, ns)
    hr.sql(f"DELETE FROM {ns}.a WHERE k >= 1010")
    hr.refresh(f"{ns}.b")  # of the 60 rows, 10 are left
    assert hr.fuses() == ()
    assert hr.verify(f"{ns}.b").ok


@pytest.mark.parametrize(
    ("how", "mode"),
    [
        ("again", "merge-on-read"),
        ("overwritten", "copy-on-write"),
        pytest.param("again", "copy-on-write", marks=pytest.mark.long),
        pytest.param("overwritten", "merge-on-read", marks=pytest.mark.long),
    ],
)
def test_rows_that_went_and_came_again_do_not_count(hr: Headrace, ns: str, mode: str, how: str) -> None:
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    hr.sql(f"""
    CREATE TABLE {ns}.a USING iceberg TBLPROPERTIES ({modes})
        AS SELECT id AS k, id % 10 AS v, map('x', int(id)) AS m FROM range(100);
    CREATE STREAM TABLE {ns}.b WITH (fuse_ceiling = 50) AS SELECT k, v, m FROM {ns}.a
    """)
    mended = "SELECT id AS k, id % 10 AS v, map('x', int(id)) AS m"
    if how == "again":  # 180 rows by the counters, 6 in the end
        hr.sql(f"DELETE FROM {ns}.a WHERE k < 90; INSERT INTO {ns}.a {mended} FROM range(84)")
    else:
        hr.sql(f"INSERT OVERWRITE {ns}.a {mended} FROM range(94)")
    assert hr.refresh(f"{ns}.b").mode.value != "NO_CHANGE"
    assert hr.sql(f"SELECT count(*) FROM {ns}.b").collect()[0][0] == 94
    hr.sql(f"INSERT OVERWRITE {ns}.a SELECT id, 11L, map('x', int(id)) FROM range(30)")  # what is left counts
    with pytest.raises(HeadraceError, match="FUSE_BLOWN") as caught:
        hr.refresh(f"{ns}.b")
    assert "124 rows changed" in (caught.value.detail or "")
    hr.resolve_fuse(f"{ns}.b", "skip")
    assert hr.status([f"{ns}.b"])[0].skipped_rows == 124  # as many as it blew by


def test_rows_that_an_update_carries_over_do_not_count(hr: Headrace, alone: str) -> None:
    hr.sql(f"DELETE FROM {alone}.a WHERE k = 3")  # rewrites the file with its hundred rows
    hr.refresh(f"{alone}.b")
    assert hr.fuses() == ()


def test_rows_that_updates_carried_over_are_no_measure_of_what_is_usual(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a (k BIGINT, v BIGINT) USING iceberg
        TBLPROPERTIES ('write.update.mode' = 'copy-on-write', 'write.delete.mode' = 'copy-on-write');
    INSERT INTO {ns}.a SELECT /*+ COALESCE(1) */ id, 0 FROM range(3000);
    CREATE STREAM TABLE {ns}.b WITH (fuse_factor = 2) AS SELECT v, count(*) AS n FROM {ns}.a GROUP BY v
    """)
    for key in range(5):
        hr.sql(f"UPDATE {ns}.a SET v = 1 WHERE k = {key}")  # rewrites a file of 3,000 rows
        hr.refresh(f"{ns}.b")
    hr.sql(f"INSERT INTO {ns}.a SELECT id, 2 FROM range(5000, 6500)")
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.refresh(f"{ns}.b")
    (fuse,) = hr.fuses()
    assert (fuse.rows, fuse.limit, fuse.largest) == (1500, 1000, 2)
    hr.sql(f"UPDATE {ns}.a SET v = 3 WHERE k = 7")
    hr.resolve_fuse(f"{ns}.b", "skip")
    assert hr.status([f"{ns}.b"])[0].skipped_rows == 1502


def test_counting_is_cancelled_with_the_refresh(hr: Headrace, alone: str) -> None:
    ns = alone
    hr.sql(f"INSERT INTO {ns}.a SELECT id, id % 7 FROM range(1000, 1060)")
    name = TableName("lake", (ns,), "b")
    know = known(hr._catalog, name)
    facts = gather(know, Cut(hr._catalog, lambda _: None).of(know.table.sources, frozenset()), forced=False, tag="x")
    (source,) = facts.sources
    endless = "SELECT id AS v, abs(sin(id)) AS __hr_w FROM range(1000000000000)"
    facts = replace(facts, sources=(replace(source, change=endless, appended=False),))
    runner, ended = hr._lazy.runner(), list[str]()

    def count() -> None:
        try:
            guarded(know, facts, Fuse(), catalog=hr._catalog, session=hr._lazy, events=hr.events)
        except HeadraceError as error:
            ended.append(error.code)

    thread = threading.Thread(target=count)
    thread.start()
    until(lambda: running_now(hr).tasks)  # what is cancelled over Spark Connect while it is planned may still begin
    for _ in range(600):
        runner.cancel_all(f"refresh {name}")
        thread.join(0.1)
        if not thread.is_alive():
            break
    assert ended == ["CANCELLED"]
    assert hr.fuses() == ()


def test_a_new_limit_is_judged_by_anew(hr: Headrace, alone: str) -> None:
    ns = alone
    blow(hr, ns)
    hr.sql(f"ALTER STREAM TABLE {ns}.b SET PROPERTIES (fuse_ceiling = 60)")
    assert hr.status([f"{ns}.b"])[0].held_up is None  # and a scheduler would try again
    hr.refresh(f"{ns}.b")
    assert not hr.status([f"{ns}.b"])[0].behind


@pytest.mark.parametrize(
    "how",
    [
        "CREATE OR REPLACE STREAM TABLE {} AS",
        pytest.param("ALTER STREAM TABLE {} SET QUERY AS", marks=pytest.mark.long),
    ],
)
def test_a_new_definition_resolves_a_blown_fuse_and_says_so(hr: Headrace, tables: str, how: str) -> None:
    ns, told, begin = tables, list[Event](), how.format(f"{tables}.b")
    blow(hr, ns)
    with pytest.raises(HeadraceError):
        hr.sql(f"{begin} SELECT missing FROM {ns}.a")
    hr.sql(f"ALTER STREAM TABLE {ns}.b SET SCHEDULE '1 hour'; ALTER STREAM TABLE {ns}.b SET REFRESH MODE DIFFERENTIAL")
    assert [fuse.name for fuse in hr.fuses()] == [f"{ns}.b"]  # nothing of that concerns the change
    assert rows(hr, f"{ns}.b") == 100
    unsubscribe = hr.events.subscribe(told.append)
    hr.sql(f"{begin} SELECT v, count(*) AS n FROM {ns}.a WHERE k > 0 GROUP BY v")
    unsubscribe()
    assert hr.fuses() == ()
    assert rows(hr, f"{ns}.b") == 159
    assert ["which the fuse kept out" in e.message for e in told if isinstance(e, Notice)] == [True]
    logged = [e.fields for e in hr.event_log() if e.event == "fuse_resolved"]
    assert logged[-1] == {"table": f"{ns}.b", "resolution": "redefine"}
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.other AS SELECT v FROM {ns}.a")  # had no fuse: nothing to say
    assert len([e for e in hr.event_log() if e.event == "fuse_resolved"]) == len(logged)
    hr.refresh()
    assert all(v.ok for v in hr.verify([f"{ns}.b", f"{ns}.c"]))


@pytest.mark.parametrize("why", ["view", "column"])
def test_what_must_be_recomputed_anyway_is_kept_out_and_cannot_be_skipped(hr: Headrace, ns: str, why: str) -> None:
    view = "CREATE OR REPLACE VIEW lake.{}.w AS SELECT k, v FROM lake.{}.t WHERE k >= {}"
    hr.sql(f"CREATE TABLE {ns}.t USING iceberg AS SELECT 1L AS k, 1L AS v, 'x' AS s")
    hr.sql(view.format(ns, ns, 0))
    query = f"SELECT k FROM {ns}.w" if why == "view" else f"SELECT k FROM {ns}.t WHERE uuid() IS NOT NULL"
    hr.sql(f"CREATE STREAM TABLE {ns}.b WITH (fuse_ceiling = 10) AS {query}")
    hr.sql(f"INSERT INTO {ns}.t SELECT id + 10, 1, 'x' FROM range(20)")
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.refresh(f"{ns}.b")
    hr.sql(view.format(ns, ns, 1) if why == "view" else f"ALTER TABLE {ns}.t DROP COLUMN s")
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.refresh(f"{ns}.b")
    with pytest.raises(HeadraceError, match="FUSE_NOT_SKIPPABLE"):
        hr.resolve_fuse(f"{ns}.b", "skip")
    assert hr.sql(f"SELECT count(*) FROM {ns}.b").collect()[0][0] == 1
    hr.resolve_fuse(f"{ns}.b", "apply")
    assert hr.fuses() == ()
    assert hr.verify(f"{ns}.b").rows == 21


VIEW = "CREATE OR REPLACE VIEW lake.{ns}.w AS SELECT k, v FROM {ns}.t WHERE k >= {least}"


def viewed(hr: Headrace, ns: str) -> None:
    """A stream table `b` over a view of `t`, with a row, that lets ten rows through."""
    hr.sql(f"CREATE TABLE {ns}.t USING iceberg AS SELECT 1L AS k, 1L AS v")
    hr.sql(VIEW.format(ns=ns, least=0))
    hr.sql(f"CREATE STREAM TABLE {ns}.b WITH (fuse_ceiling = 10) AS SELECT k FROM {ns}.w")


def test_a_change_that_comes_together_with_that_of_a_view_is_judged(hr: Headrace, ns: str) -> None:
    viewed(hr, ns)
    hr.sql(VIEW.format(ns=ns, least=1))
    hr.sql(f"INSERT INTO {ns}.t SELECT id + 10, 1 FROM range(20)")
    with pytest.raises(HeadraceError, match="FUSE_BLOWN") as caught:
        hr.refresh(f"{ns}.b")
    assert f"20 rows changed in its sources (20 of {ns}.t), more than 10" in (caught.value.detail or "")
    assert hr._catalog.dirty_staging() == ()
    assert hr.sql(f"SELECT count(*) FROM {ns}.b").first()[0] == 1
    assert hr.history(f"{ns}.b", limit=1)[0].error_code == "FUSE_BLOWN"
    with pytest.raises(HeadraceError, match="FUSE_NOT_SKIPPABLE"):
        hr.resolve_fuse(f"{ns}.b", "skip")
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.refresh(f"{ns}.b", full=True)
    hr.sql(f"ALTER STREAM TABLE {ns}.b SET PROPERTIES (fuse_ceiling = 20)")  # by which it is judged anew
    result = hr.refresh(f"{ns}.b")
    assert (result.mode.value, result.reason and result.reason.value) == ("FULL", "DEFINITION_CHANGED")
    assert hr.fuses() == ()
    assert hr.verify(f"{ns}.b").rows == 21


def test_the_change_of_a_view_itself_is_none_of_its_sources(hr: Headrace, ns: str) -> None:
    viewed(hr, ns)
    hr.sql(f"CREATE TABLE {ns}.u USING iceberg AS SELECT id AS k, 1L AS v FROM range(50)")
    hr.sql(f"INSERT INTO {ns}.t SELECT id + 10, 1 FROM range(9)")
    hr.sql(f"CREATE OR REPLACE VIEW lake.{ns}.w AS SELECT k, v FROM {ns}.t UNION ALL SELECT k, v FROM {ns}.u")
    hr.refresh(f"{ns}.b")
    assert hr.verify(f"{ns}.b").rows == 60
    hr.sql(f"INSERT INTO {ns}.t SELECT id + 100, 1 FROM range(20)")
    hr.sql(f"CREATE OR REPLACE VIEW lake.{ns}.w AS SELECT k, v FROM {ns}.u")  # and what it reads no more is no matter
    hr.refresh(f"{ns}.b")
    assert hr.verify(f"{ns}.b").rows == 50


def test_a_cycle_that_is_defined_again_is_judged(hr: Headrace, project: Settings, ns: str) -> None:
    hr.sql(f"CREATE TABLE {ns}.t (s BIGINT, d BIGINT) USING iceberg; INSERT INTO {ns}.t VALUES (1, 2), (2, 3)")
    view = f"CREATE OR REPLACE VIEW lake.{ns}.w AS SELECT s, d FROM {ns}.t WHERE s >= "
    hr.sql(view + "0")
    hr.sql(f"CREATE STREAM TABLE {ns}.p WITH (fuse_ceiling = 10) AS SELECT s, d FROM {ns}.w")
    with headrace.open(replace(project, allow_cycles=True), spark=hr.spark) as cyclic:
        cyclic.sql(
            f"CREATE OR REPLACE STREAM TABLE {ns}.p AS SELECT s, d FROM {ns}.w UNION "
            f"SELECT a.s, b.d FROM {ns}.p AS a JOIN {ns}.p AS b ON a.d = b.s"
        )
        cyclic.sql(view + "1")
        cyclic.sql(f"INSERT INTO {ns}.t SELECT id + 10, id + 50 FROM range(20)")
        with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
            cyclic.refresh(f"{ns}.p")
        assert cyclic.sql(f"SELECT count(*) FROM {ns}.p").first()[0] == 3
        cyclic.resolve_fuse(f"{ns}.p", "apply")
        assert cyclic.fuses() == ()
        assert cyclic.verify(f"{ns}.p").rows == 23
        assert cyclic.drop_stream_table(f"{ns}.p") == (f"{ns}.p",)


def test_fuses_of_a_group_are_resolved_together(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a (k BIGINT, v BIGINT) USING iceberg;
    INSERT INTO {ns}.a VALUES (1, 1);
    CREATE STREAM TABLE {ns}.b WITH (fuse_ceiling = 10) AS SELECT k FROM {ns}.a;
    CREATE STREAM TABLE {ns}.c AS SELECT k, v FROM {ns}.a;
    CREATE STREAM TABLE {ns}.d WITH (fuse_ceiling = 15) AS SELECT b.k, c.v FROM {ns}.b JOIN {ns}.c ON b.k = c.k;
    INSERT INTO {ns}.a SELECT id, 1 FROM range(100, 120)
    """)
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.refresh([f"{ns}.{name}" for name in "bcd"])
    with pytest.raises(HeadraceError, match="FUSE_BLOWN"):
        hr.resolve_fuse(f"{ns}.b", "apply")  # d's fuse blows now: of b and c it would read 40 changed rows
    assert [f.name for f in hr.fuses()] == [f"{ns}.b", f"{ns}.d"]
    assert len(hr.resolve_fuse(f"{ns}.d", "apply")) == 3
    assert hr.fuses() == ()
    assert all(v.ok for v in hr.verify([f"{ns}.{name}" for name in "bcd"]))


def test_bad_input(hr: Headrace, alone: str) -> None:
    for call, code in (
        (lambda: hr.resolve_fuse(f"{alone}.b", "apply"), "FUSE_NOT_BLOWN"),
        (lambda: hr.resolve_fuse(f"{alone}.b", "ignore"), "INVALID_OPTION"),
        (lambda: hr.resolve_fuse(f"{alone}.nothing", "skip"), "STREAM_TABLE_NOT_FOUND"),
        (lambda: hr.sql(f"ALTER STREAM TABLE {alone}.b SET PROPERTIES (fuse_ceiling = -1)"), "INVALID_OPTION"),
        (lambda: hr.sql(f"ALTER STREAM TABLE {alone}.b RESOLVE FUSE IGNORE"), "SYNTAX_ERROR"),
    ):
        with pytest.raises(HeadraceError, match=code):
            call()
