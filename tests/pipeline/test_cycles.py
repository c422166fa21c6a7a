"""Stream tables that read each other in a circle, on Spark."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kit.definitions import defined
from kit.paths import ways
from pyspark.sql import DataFrame, SparkSession

import headrace
from headrace.api.facade import Headrace
from headrace.config import Settings
from headrace.errors import HeadraceError
from headrace.events import Event, StageFinished, StageStarted

SETUP = """
CREATE TABLE {ns}.edges (s BIGINT, d BIGINT) USING iceberg;
INSERT INTO {ns}.edges VALUES (1, 2), (2, 1), (2, 3);
CREATE STREAM TABLE {ns}.odd AS SELECT s, d FROM {ns}.edges;
CREATE STREAM TABLE {ns}.even AS SELECT DISTINCT e.s, o.d FROM {ns}.odd AS o JOIN {ns}.edges AS e ON e.d = o.s;
"""
CLOSE = """
CREATE OR REPLACE STREAM TABLE {ns}.odd AS
    SELECT s, d FROM {ns}.edges UNION SELECT e.s, v.d FROM {ns}.even AS v JOIN {ns}.edges AS e ON e.d = v.s
"""


@pytest.fixture
def cyclic(project: Settings, hr: Headrace) -> Iterator[Headrace]:
    """The same project, in which cycles are allowed."""
    with headrace.open(replace(project, allow_cycles=True), spark=hr.spark) as found:
        yield found


def held(hr: Headrace, ns: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    rows = [[tuple(r) for r in hr.spark.table(f"lake.{ns}.{name}").collect()] for name in ("odd", "even")]
    assert all(len(set(found)) == len(found) for found in rows)
    return set(rows[0]), set(rows[1])


def stated(hr: Headrace, name: str) -> tuple[object, ...]:
    """A definition without the keys of other members, which depend on the order in which these were made."""
    *others, details, options, status = defined(hr, hr._name(name))
    return (*others, {**details, "source_keys": None}, options, status)  # type: ignore[dict-item]


@pytest.mark.long
def test_what_is_shown_makes_the_same_cycle_again(cyclic: Headrace, ns: str) -> None:
    hr, names = cyclic, [f"{ns}.{name}" for name in ("even", "loop", "odd", "outside")]
    hr.spark.sql("USE lake")
    hr.sql(SETUP.format(ns=ns))
    hr.sql(f"CREATE STREAM TABLE {ns}.loop WITH (pool = 'a') AS SELECT s, d, 1 AS one FROM {ns}.even")
    loop = f"SELECT s, d, 1 AS one FROM {ns}.even UNION SELECT d AS s, s AS d, one FROM {ns}.loop"
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.loop SCHEDULE '5 minutes' WITH (pool = 'b') AS {loop} -- itself")
    hr.sql(CLOSE.format(ns=ns) + f" UNION SELECT s, d FROM {ns}.loop WHERE one = 1")
    hr.sql(f"CREATE STREAM TABLE {ns}.outside AS SELECT count(*) AS n FROM {ns}.odd")
    shown, before = hr.show_create(names), [stated(hr, name) for name in names]
    assert hr.show_create(f"{ns}.loop") == shown[: shown.index(f"\n\nCREATE STREAM TABLE {ns}.outside")]
    hr.drop_stream_table(f"{ns}.odd", cascade=True)
    hr.sql(shown)
    assert [stated(hr, name) for name in names] == before
    assert hr.show_create(names) == shown
    assert all(found.ok for found in hr.verify(names))


def test_two_tables_that_read_each_other(cyclic: Headrace, ns: str) -> None:
    hr, names = cyclic, (f"{ns}.odd", f"{ns}.even")
    hr.sql(SETUP.format(ns=ns))
    heard: list[Event] = []
    unsubscribe = hr.events.subscribe(heard.append)
    hr.sql(CLOSE.format(ns=ns))
    unsubscribe()
    stages = [(type(e), e.stage) for e in heard if isinstance(e, StageStarted | StageFinished)]
    assert stages[:3] == [
        (StageStarted, "iterate, round 1"),
        (StageFinished, "iterate, round 1"),
        (StageStarted, "iterate, round 2"),
    ]
    assert sorted(s for kind, s in stages if kind is StageStarted) == sorted(
        s for kind, s in stages if kind is StageFinished
    )
    edges = {(1, 2), (2, 1), (2, 3)}  # few and short: every step of a way is another round
    assert held(hr, ns) == ways(edges)
    assert len({row.publication for row in hr.history(limit=2)}) == 1
    assert all(r.mode.value == "NO_CHANGE" for r in hr.refresh(names))

    hr.sql(f"CREATE STREAM TABLE {ns}.n REFRESH MODE DIFFERENTIAL AS SELECT s, count(*) AS n FROM {ns}.odd GROUP BY s")
    hr.sql(f"INSERT INTO {ns}.edges VALUES (3, 4)")
    edges |= {(3, 4)}
    assert {r.mode.value for r in hr.refresh(names)} == {"DIFFERENTIAL"}
    assert held(hr, ns) == ways(edges)
    assert hr.refresh(f"{ns}.n").mode.value == "DIFFERENTIAL"

    hr.sql(f"DELETE FROM {ns}.edges WHERE s = 2 AND d = 1")  # the circle in the data: what it held up must go
    edges -= {(2, 1)}
    results = hr.refresh(names)
    assert {(r.mode.value, r.reason and r.reason.value) for r in results} == {("FULL", "CYCLE_SHRANK")}
    assert held(hr, ns) == ways(edges)
    assert hr.refresh(f"{ns}.n").mode.value == "DIFFERENTIAL"
    assert all(v.ok for v in hr.verify((names[1], f"{ns}.n")))  # another test verifies the other one


@pytest.mark.long
def test_what_is_published_while_spark_starts_is_no_difference(
    cyclic: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hr, names = cyclic, (f"{ns}.odd", f"{ns}.even")
    hr.sql(SETUP.format(ns=ns))
    hr.sql(CLOSE.format(ns=ns))
    hr.sql(f"INSERT INTO {ns}.edges VALUES (3, 4)")
    session = type(hr._lazy)
    runner = session.runner

    def late(self: Any) -> Any:
        monkeypatch.setattr(session, "runner", runner)
        assert {result.mode.value for result in hr.refresh(names)} == {"DIFFERENTIAL"}
        return runner(self)

    monkeypatch.setattr(session, "runner", late)
    verified = hr.verify(f"{ns}.odd")
    assert held(hr, ns) == ways({(1, 2), (2, 1), (2, 3), (3, 4)}), "it was refreshed meanwhile"
    assert verified.ok
    assert verified.rows == len(ways({(1, 2), (2, 1), (2, 3)})[0])
    assert hr.verify(f"{ns}.odd").rows == len(held(hr, ns)[0])


AROUND = """
CREATE TABLE {ns}.base (s BIGINT, d BIGINT) USING iceberg;
INSERT INTO {ns}.base VALUES (1, 2), (2, 1), (2, 3);
CREATE STREAM TABLE {ns}.edges REFRESH MODE DIFFERENTIAL AS SELECT s, d FROM {ns}.base WHERE s > 0;
CREATE STREAM TABLE {ns}.odd AS SELECT s, d FROM {ns}.edges;
CREATE STREAM TABLE {ns}.even AS SELECT DISTINCT e.s, o.d FROM {ns}.odd AS o JOIN {ns}.edges AS e ON e.d = o.s;
"""
READERS = """
CREATE STREAM TABLE {ns}.n REFRESH MODE DIFFERENTIAL AS SELECT s, count(*) AS n FROM {ns}.odd GROUP BY s;
CREATE STREAM TABLE {ns}.m REFRESH MODE DIFFERENTIAL AS SELECT d, count(*) AS n FROM {ns}.even GROUP BY d
"""


@pytest.mark.parametrize(
    ("change", "mode"),
    [
        ("INSERT INTO {ns}.base VALUES (3, 4)", "DIFFERENTIAL"),
        pytest.param("DELETE FROM {ns}.base WHERE s = 2 AND d = 1", "FULL", marks=pytest.mark.long),
    ],
)
def test_changes_go_into_a_cycle_and_out_of_it_without_being_read_again(
    cyclic: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch, over_connect: bool, change: str, mode: str
) -> None:
    hr, names = cyclic, [f"{ns}.{name}" for name in ("edges", "even", "odd", "n", "m")]
    for script in (AROUND, CLOSE, READERS):
        hr.sql(script.format(ns=ns))
    asked: list[str] = []
    sql, log = type(hr.spark).sql, re.compile(rf"FROM `?(lake|staging)`?\.`?_headrace`?\.`?{ns}_\w+_log\b")

    def told(session: SparkSession, text: str, *args: Any, **kwargs: Any) -> DataFrame:
        asked.extend(log.findall(text))
        return sql(session, text, *args, **kwargs)

    monkeypatch.setattr(type(hr.spark), "sql", told)
    hr.sql(change.format(ns=ns))
    modes = {result.name.rpartition(".")[2]: result.mode.value for result in hr.refresh(names)}
    assert modes == {"edges": "DIFFERENTIAL", "even": mode, "odd": mode, "n": "DIFFERENTIAL", "m": "DIFFERENTIAL"}
    assert bool(asked) is over_connect
    assert hr._engine().refresher.changes.views == frozenset()
    assert held(hr, ns) == ways({(1, 2), (2, 1), (2, 3), (3, 4)} if mode == "DIFFERENTIAL" else {(1, 2), (2, 3)})
    assert all(v.ok for v in hr.verify([f"{ns}.{name}" for name in ("edges", "n", "m")]))


def test_a_cycle_is_refused_unless_it_is_allowed(hr: Headrace, ns: str) -> None:
    hr.sql(SETUP.format(ns=ns))
    with pytest.raises(HeadraceError) as caught:
        hr.sql(CLOSE.format(ns=ns))
    assert caught.value.code == "CYCLE"
    assert f"{ns}.odd reads {ns}.even reads {ns}.odd" in caught.value.message
    assert "allow_cycles" in (caught.value.hint or "")


def test_what_is_not_monotone_or_has_no_end_changes_nothing(cyclic: Headrace, ns: str) -> None:
    hr, names = cyclic, [f"{ns}.odd", f"{ns}.even"]
    hr.sql(SETUP.format(ns=ns))
    before = [(t.version, t.rows) for t in hr.status(names)]
    refusals = {
        "CYCLE_NOT_MONOTONE": "SELECT s, max(d) AS d FROM {ns}.even GROUP BY s",
        "CYCLE_NOT_SETTLED": "SELECT s, d FROM {ns}.edges UNION SELECT s + 1000, d FROM {ns}.even UNION "
        "SELECT s + 1, d FROM {ns}.odd",
    }
    with headrace.open(replace(hr.settings, max_cycle_rounds=4), spark=hr.spark) as short:
        for code, query in refusals.items():
            with pytest.raises(HeadraceError) as caught:
                short.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.odd AS {query.format(ns=ns)}")
            assert caught.value.code == code
    assert [(t.version, t.rows) for t in hr.status(names)] == before
    assert hr._catalog.dirty_staging() == ()
    hr.sql(f"INSERT INTO {ns}.edges VALUES (3, 4)")
    hr.refresh(names)
    assert all(v.ok for v in hr.verify(names))


def test_the_life_of_a_cycle(cyclic: Headrace, ns: str) -> None:
    hr, names = cyclic, (f"{ns}.odd", f"{ns}.even")
    hr.sql(SETUP.format(ns=ns))
    hr.sql(f"CREATE STREAM TABLE {ns}.n AS SELECT s, count(*) AS n FROM {ns}.odd GROUP BY s")
    hr.sql(CLOSE.format(ns=ns))
    sections = dict(hr.explain(f"{ns}.odd").sections)
    assert f"{ns}.even ⇄ {ns}.odd" in sections["cycle"]
    found = hr.explain(f"{ns}.odd", passes=True)
    assert [title for title, _ in found.sections] == ["choice", "passes"]
    assert any(info.fired for info in found.passes)
    hr.sql(f"ALTER STREAM TABLE {ns}.n SET SCHEDULE 'ON CHANGE'")  # which the cycle follows
    hr.sql(f"INSERT INTO {ns}.edges VALUES (3, 4)")
    time.sleep(1.1)  # ON CHANGE pauses for a second
    planned = hr.run(dry_run=True).planned
    assert (f"{ns}.even", f"{ns}.odd") in [p.tables for p in planned]
    hr.refresh(names, full=True)
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.odd AS SELECT s, d FROM {ns}.edges")  # taken apart again
    results = {r.name: r for r in hr.refresh()}
    assert results[f"{ns}.even"].reason is not None
    assert results[f"{ns}.even"].reason.value == "DEFINITION_CHANGED"
    hr.sql(f"INSERT INTO {ns}.edges VALUES (4, 5)")
    assert "NO_CHANGE" not in {r.mode.value for r in hr.refresh((*names, f"{ns}.n"))}
    assert all(v.ok for v in hr.verify((*names, f"{ns}.n")))


@pytest.mark.long
def test_a_table_that_reads_itself(cyclic: Headrace, ns: str) -> None:
    hr = cyclic
    hr.sql(f"CREATE TABLE {ns}.base USING iceberg AS SELECT * FROM VALUES (1L, 2L), (2L, 3L) AS t(s, d)")
    hr.sql(f"CREATE STREAM TABLE {ns}.edges AS SELECT DISTINCT s, d FROM {ns}.base")
    hr.sql(f"CREATE STREAM TABLE {ns}.path AS SELECT s, d FROM {ns}.edges")
    hr.sql(
        f"CREATE OR REPLACE STREAM TABLE {ns}.path AS SELECT s, d FROM {ns}.edges UNION "
        f"SELECT a.s, b.d FROM {ns}.path AS a JOIN {ns}.path AS b ON a.d = b.s"
    )
    hr.sql(f"INSERT INTO {ns}.base VALUES (3, 4), (1, 2)")
    (_, path) = hr.refresh([f"{ns}.edges", f"{ns}.path"])
    assert (path.mode.value, path.rows_inserted) == ("DIFFERENTIAL", 3)
    hr.sql(f"DELETE FROM {ns}.base WHERE s = 2")
    (_, path) = hr.refresh([f"{ns}.edges", f"{ns}.path"])
    assert (path.mode.value, path.rows_deleted) == ("FULL", 4)
    assert hr.verify(f"{ns}.path").ok
    assert hr.drop_stream_table(f"{ns}.path") == (f"{ns}.path",)


def test_zeros_with_a_sign_lose_it_for_verify_too(cyclic: Headrace, ns: str) -> None:
    """Another member shows a zero's sign in its text, and reads what is stored."""
    hr = cyclic
    hr.sql(f"CREATE TABLE {ns}.base USING iceberg AS SELECT * FROM VALUES (1L, -0.0D), (3L, 1.5D) AS t(id, x)")
    hr.sql(f"CREATE TABLE {ns}.steps USING iceberg AS SELECT * FROM VALUES (1L), (3L) AS t(id)")
    hr.sql(f"CREATE STREAM TABLE {ns}.a AS SELECT id, x FROM {ns}.base")
    hr.sql(f"CREATE STREAM TABLE {ns}.b AS SELECT DISTINCT id, CAST(x AS STRING) AS s FROM {ns}.a")
    hr.sql(
        f"CREATE OR REPLACE STREAM TABLE {ns}.a AS SELECT id, x FROM {ns}.base UNION ALL "
        f"SELECT b.id + 1, CAST(b.s AS DOUBLE) FROM {ns}.b AS b JOIN {ns}.steps AS t ON t.id = b.id"
    )
    assert {(r.id, r.s) for r in hr.spark.table(f"lake.{ns}.b").collect()} == {
        (1, "0.0"),
        (2, "0.0"),
        (3, "1.5"),
        (4, "1.5"),
    }
    assert [(v.missing, v.unexpected) for v in hr.verify([f"{ns}.a", f"{ns}.b"])] == [(0, 0), (0, 0)]
