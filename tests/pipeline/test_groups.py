"""Atomic diamonds on Spark: together or not at all, each member reading what the others have staged."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from catalog_kit.samples import lake
from kit.waiting import until

from headrace.api.facade import Headrace
from headrace.catalog import resource_of
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Event, StageStarted
from headrace.names import TableName
from headrace.refresh.groups.group_refresh import GroupRefresh
from headrace.results.refresh_results import Mode
from headrace.scheduler.failures import input_failed

DIAMOND = """
CREATE TABLE {ns}.a USING iceberg AS SELECT * FROM VALUES (1L, 1L, 10L), (2L, 1L, 20L), (3L, 2L, 30L) AS t(k, g, v);
CREATE STREAM TABLE {ns}.b REFRESH MODE DIFFERENTIAL AS SELECT k, g, v FROM {ns}.a WHERE v > -1;
CREATE STREAM TABLE {ns}.c REFRESH MODE DIFFERENTIAL
    AS SELECT g, count(*) AS n, sum(1000 DIV v) AS parts FROM {ns}.a GROUP BY g;
CREATE STREAM TABLE {ns}.d REFRESH MODE DIFFERENTIAL {options}
    AS SELECT b.k, c.n, 1000 DIV (b.v - 77) AS x FROM {ns}.b JOIN {ns}.c ON b.g = c.g
"""


@pytest.fixture
def diamond(hr: Headrace, ns: str) -> tuple[str, ...]:
    hr.sql(DIAMOND.format(ns=ns, options=""))
    return tuple(f"{ns}.{name}" for name in "bcd")


def versions(hr: Headrace, names: tuple[str, ...]) -> list[int | None]:
    return [t.version for t in hr.status(names)]


def test_a_group_is_published_in_one_transaction(hr: Headrace, ns: str, diamond: tuple[str, ...]) -> None:
    (group,) = [g for g in hr.diamond_groups() if g.name == f"{ns}.d"]
    assert (group.members, group.converge, group.epoch) == (diamond, (f"{ns}.d",), 1)
    past: dict[int, list[int | dt.datetime]] = {}
    for rows, number in ((4, 100), (5, 101)):
        hr.sql(f"INSERT INTO {ns}.a VALUES ({number}, 2, {number})")
        assert hr.refresh(f"{ns}.b").rows_inserted == 1  # whoever asks for one member refreshes the group
        last = hr.history(limit=3)
        assert {row.name for row in last} == set(diamond)
        assert len({row.publication for row in last}) == 1
        assert {row.mode.value for row in last} == {"DIFFERENTIAL"}
        assert {row.epoch for row in last} == {rows - 2}
        past[rows] = [last[0].publication or 0, dt.datetime.now(dt.UTC)]
    for rows, moments in past.items():  # the whole pipeline as it was then, its source included
        counts = "(SELECT count(*) FROM {ns}.a), (SELECT count(*) FROM {ns}.b), (SELECT sum(n) FROM {ns}.c), "
        counts += "(SELECT count(*) FROM {ns}.d)"
        for moment in moments:
            assert tuple(hr.at(moment).sql(f"SELECT {counts.format(ns=ns)}").first() or ()) == 4 * (rows,), moment
    assert all(v.ok for v in hr.verify(diamond))
    assert next(g for g in hr.diamond_groups() if g.name == f"{ns}.d").epoch == 3
    assert [info.epoch for info in hr.status(diamond)] == [3, 3, 3]
    assert all(r.mode.value == "NO_CHANGE" for r in hr.refresh(diamond))


@pytest.mark.parametrize(("failing", "value"), [pytest.param("c", 0, marks=pytest.mark.long), ("d", 77)])
def test_when_a_member_fails_nothing_is_seen_of_any(
    hr: Headrace, ns: str, diamond: tuple[str, ...], failing: str, value: int
) -> None:
    before = versions(hr, diamond)
    hr.sql(f"INSERT INTO {ns}.a VALUES (9, 1, {value})")
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(diamond)
    assert caught.value.code == "ARITHMETIC_ERROR"
    assert versions(hr, diamond) == before
    assert hr._catalog.dirty_staging() == ()
    failed, *others = (row for row in hr.history(limit=3) if not row.ok)
    assert failed.name == f"{ns}.{failing}"
    assert {row.error_code for row in others} <= {"ROLLED_BACK"}
    assert {row.name for row in others} <= {f"{ns}.b"} if failing == "c" else set(diamond[:2])  # b may run beside c
    assert all(f"as {failed.name} of its group failed" in (row.error_message or "") for row in others)
    hr.sql(f"DELETE FROM {ns}.a WHERE k = 9; INSERT INTO {ns}.a VALUES (4, 2, 40)")
    assert sum(r.rows_inserted for r in hr.refresh(diamond)) > 0
    assert all(v.ok for v in hr.verify(diamond))


def test_a_failure_in_the_last_step_publishes_nothing(hr: Headrace, ns: str, diamond: tuple[str, ...]) -> None:
    before = versions(hr, diamond)
    hr.sql(f"INSERT INTO {ns}.a VALUES (4, 2, 40)")
    resource, taken = resource_of(hr._name(f"{ns}.b")), []

    def steal(event: Event) -> None:
        if isinstance(event, StageStarted) and event.table == f"{ns}.d" and not taken:
            lease = hr._catalog.acquire([resource], "thief", dt.timedelta(seconds=60), is_dead=lambda _: True)
            taken.extend(lease)

    unsubscribe = hr.events.subscribe(steal)
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(diamond)
    unsubscribe()
    assert caught.value.code == "LEASE_LOST"
    assert versions(hr, diamond) == before
    hr._catalog.release(taken)
    assert len(hr.refresh(diamond)) == 3
    assert all(v.ok for v in hr.verify(diamond))


def test_schedules_run_on_threads_of_one_session(hr: Headrace, ns: str, diamond: tuple[str, ...]) -> None:
    hr.sql(f"CREATE STREAM TABLE {ns}.e SCHEDULE 'ON CHANGE' AS SELECT g, max(k) AS k FROM {ns}.a GROUP BY g")
    hr.sql(f"CREATE STREAM TABLE {ns}.f SCHEDULE 'ON CHANGE' AS SELECT k + 1 AS k FROM {ns}.e")
    hr.sql(f"ALTER STREAM TABLE {ns}.d SET SCHEDULE 'ON CHANGE', SET PROPERTIES (pool = 'finance')")
    hr.pause(f"{ns}.e")
    (waits,) = hr.status([f"{ns}.f"])
    assert (waits.held_up, waits.target, waits.lag) == (f"{ns}.e is paused", None, 0.0)
    hr.resume(f"{ns}.e")
    stopping, names = threading.Event(), (*diamond, f"{ns}.e", f"{ns}.f")
    runner = threading.Thread(target=lambda: hr.run(stopping=stopping, max_concurrent=3))
    runner.start()
    try:
        for number in range(2):
            hr.sql(f"INSERT INTO {ns}.a VALUES ({50 + number}, {number}, {number + 1})")
            until(lambda: not any(t.behind for t in hr.status(names)))
    finally:
        stopping.set()
        runner.join(60)
    assert not runner.is_alive()
    assert all(v.ok for v in hr.verify(names))
    assert {e.event for e in hr.event_log(limit=1000)} >= {"scheduler_started", "refresh_finished", "group_published"}


@pytest.mark.long
def test_what_is_defined_anew_is_published_with_its_group_or_not_at_all(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a USING iceberg AS SELECT * FROM VALUES (1L, 10L), (2L, 20L) AS t(k, v);
    CREATE VIEW {ns}.av AS SELECT k, v, 'old' AS w FROM {ns}.a;
    CREATE STREAM TABLE {ns}.b AS SELECT * FROM {ns}.av;
    CREATE STREAM TABLE {ns}.c AS SELECT k, count(*) AS n FROM {ns}.a GROUP BY k;
    CREATE STREAM TABLE {ns}.d SCHEDULE 'ON CHANGE'
        AS SELECT b.k, 1000 DIV (b.v - 77) AS x, n FROM {ns}.b JOIN {ns}.c ON b.k = c.k;
    CREATE STREAM TABLE {ns}.e AS SELECT count(*) AS n, count(DISTINCT k) AS ks FROM {ns}.b
    """)
    names = tuple(f"{ns}.{name}" for name in "bcd")
    before, shown = versions(hr, names), hr.spark.table(f"lake.{ns}.b").collect()
    hr.sql(f"""
    CREATE OR REPLACE VIEW {ns}.av AS SELECT k, v, length('new') AS w, k AS more FROM {ns}.a;
    INSERT INTO {ns}.a VALUES (3, 77)
    """)
    with pytest.raises(HeadraceError, match="ARITHMETIC_ERROR"):
        hr.refresh(f"{ns}.b")
    assert versions(hr, names) == before
    assert hr.spark.table(f"lake.{ns}.b").collect() == shown
    assert hr._catalog.dirty_staging() == ()
    assert hr.history(limit=1)[0].name == f"{ns}.d"
    hr.sql(f"DELETE FROM {ns}.a WHERE k = 3")
    until(lambda: hr.run(once=True).refreshed > 0)  # what failed is due again after a pause
    last = [row for row in hr.history(limit=4) if row.name in names][:3]
    assert {row.name: row.mode.value for row in last}[f"{ns}.d"] == "FULL"  # b was made anew, with other columns
    assert ({row.name for row in last}, len({row.publication for row in last})) == (set(names), 1)
    assert hr.spark.table(f"lake.{ns}.b").columns == ["k", "v", "w", "more"]
    hr.refresh(f"{ns}.e")
    assert all(v.ok for v in hr.verify([*names, f"{ns}.e"]))


def test_where_ways_meet_a_table_is_loaded_at_one_cut(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a USING iceberg AS SELECT * FROM VALUES (1L, 10L), (2L, 20L) AS t(k, v);
    CREATE STREAM TABLE {ns}.b AS SELECT k, v FROM {ns}.a;
    CREATE STREAM TABLE {ns}.c AS SELECT k, count(*) AS n FROM {ns}.a GROUP BY k;
    CREATE STREAM TABLE {ns}.x AS SELECT k FROM {ns}.a;
    CREATE STREAM TABLE {ns}.y AS SELECT k FROM {ns}.a;
    INSERT INTO {ns}.a VALUES (3, 77)
    """)
    hr.refresh([f"{ns}.b", f"{ns}.x"])  # ahead of c and y

    def rows(table: str) -> set[tuple[int, ...]]:
        return {tuple(row) for row in hr.spark.table(f"lake.{ns}.{table}").collect()}

    failing = f"CREATE STREAM TABLE {ns}.d AS SELECT b.k, 1 DIV (v - 77) AS v, n FROM {ns}.b JOIN {ns}.c ON b.k = c.k"
    with pytest.raises(HeadraceError, match="ARITHMETIC_ERROR"):
        hr.sql(failing)
    assert (f"{ns}.d" in [t.name for t in hr.status()], len(rows("c"))) == (False, 2)
    hr.sql(failing.replace("v - 77", "v - 78"))  # a namespace may be t77
    assert (len(rows("c")), len(rows("d"))) == (3, 3)
    assert len({row.publication for row in hr.history(limit=2)}) == 1

    hr.pause(f"{ns}.y")  # left alone, so that what reads it is loaded from the versions that agree
    hr.sql(f"CREATE STREAM TABLE {ns}.z AS SELECT x.k, y.k AS l FROM {ns}.x FULL JOIN {ns}.y ON x.k = y.k")
    assert (rows("y"), rows("z")) == ({(1,), (2,)}, {(1, 1), (2, 2)})

    assert all(v.ok for v in hr.verify([f"{ns}.{name}" for name in "bcdxyz"]))
    hr.resume(f"{ns}.y")
    hr.refresh(f"{ns}.z")
    assert rows("z") == {(1, 1), (2, 2), (3, 3)}


def test_a_member_that_cannot_go_along_with_a_new_definition_is_left_out(
    hr: Headrace, ns: str, diamond: tuple[str, ...]
) -> None:
    hr.sql(f"INSERT INTO {ns}.a VALUES (4, 2, 40)")
    before = versions(hr, diamond)
    replace = f"CREATE OR REPLACE STREAM TABLE {ns}.b AS SELECT k, g"
    with pytest.raises(HeadraceError, match="ARITHMETIC_ERROR") as caught:
        hr.sql(f"{replace}, CAST(77 AS BIGINT) AS v FROM {ns}.a")
    assert f"{ns}.d" in (caught.value.detail or "")
    assert versions(hr, diamond) == before
    hr.sql(f"{replace}, v + 1 AS v FROM {ns}.a")
    assert len({row.publication for row in hr.history(limit=3)}) == 1
    assert {row.name for row in hr.history(limit=3)} == set(diamond)
    before = versions(hr, diamond)
    hr.sql(f"{replace} FROM {ns}.a; INSERT INTO {ns}.a VALUES (5, 2, 50)")  # without the column that d reads
    assert [now == old for now, old in zip(versions(hr, diamond), before, strict=True)] == [False, True, True]
    with pytest.raises(HeadraceError, match="SOURCE_SCHEMA_CHANGED"):
        hr.refresh(diamond)
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.d AS SELECT b.k, c.n FROM {ns}.b JOIN {ns}.c ON b.g = c.g")
    assert all(v.ok for v in hr.verify(diamond))


def test_members_that_start_early_see_of_a_source_one_version(hr: Headrace, ns: str) -> None:
    for name in "ayz":
        hr.sql(f"CREATE TABLE {ns}.{name} USING iceberg AS SELECT 1L AS k")
    hr.sql(f"""
    CREATE STREAM TABLE {ns}.s AS SELECT k FROM {ns}.z;
    CREATE STREAM TABLE {ns}.t AS SELECT k FROM {ns}.y;
    CREATE STREAM TABLE {ns}.b AS SELECT a.k, s.k AS z FROM {ns}.a CROSS JOIN {ns}.s;
    CREATE STREAM TABLE {ns}.c AS SELECT a.k, s.k AS z, t.k AS y FROM {ns}.a CROSS JOIN {ns}.s CROSS JOIN {ns}.t;
    CREATE STREAM TABLE {ns}.d AS SELECT c.k, c.z, c.y FROM {ns}.b JOIN {ns}.c ON b.k = c.k AND b.z = c.z
    """)
    s, t, b, c, d = (lake(f"{ns}.{name}") for name in "stbcd")
    creator = hr._engine().creator

    def begun(*awaited: TableName) -> GroupRefresh:
        group = creator.plan_group((b, c, d), hr._heads(), awaited=[(name,) for name in awaited])
        assert group.begin() is None
        return group

    hr.sql("; ".join(f"INSERT INTO {ns}.{name} VALUES (2)" for name in "ayz"))
    group = begun(s, t)
    hr.refresh(str(s))
    group.prepare((b,))
    hr.sql(f"INSERT INTO {ns}.z VALUES (3)")
    hr.refresh([str(s), str(t)])  # s once more, before c has read it
    group.prepare((c,))
    group.prepare((d,))
    assert [r.mode is Mode.NO_CHANGE for r in group.publish()] == [False, False, False]
    frontiers = hr._catalog.frontiers()
    assert (frontiers[b][s], frontiers[c][s], hr._catalog.newest_versions()[s].version) == (1, 1, 2)
    assert hr.spark.table(f"lake.{ns}.d").count() == 8

    hr.sql(f"INSERT INTO {ns}.a VALUES (3); INSERT INTO {ns}.y VALUES (3)")
    group = begun(t)
    group.prepare((b,))
    group.give_up(input_failed(t, EnvironmentFault("DISK_FULL", "There is no room.")))
    (line,) = hr.history(limit=1)
    assert (line.name, line.error_code) == (str(b), "ROLLED_BACK")
    assert f"{t}, which its group reads, failed. [DISK_FULL]" in (line.error_message or "")
    assert hr._catalog.dirty_staging() == ()

    group = begun(t)
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {t} AS SELECT k + 1 AS k FROM {ns}.y")
    with pytest.raises(EnvironmentFault, match="INPUT_NOT_READY") as caught:
        group.prepare((c,))
    group.give_up(caught.value)
    hr.refresh()
    assert all(v.ok for v in hr.verify())
