"""Few changed rows with more partners than Spark can hand to all tasks at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from kit.paths import ways
from kit.semijoins import small_sources_too
from pipeline.conftest import OVER_CONNECT
from pyspark.sql import DataFrame, SparkSession

import headrace
from headrace.api.facade import Headrace
from headrace.config import Settings
from headrace.events import RefreshStarted
from headrace.lake import apply_change
from headrace.optimizer import cardinality
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode


@contextmanager
def least_broadcasts(hr: Headrace) -> Iterator[None]:
    """Let Spark broadcast next to nothing, and nothing of its own accord."""
    options = {"spark.sql.maxBroadcastTableSize": "1", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    sessions = (hr.spark, *hr._lazy.runner().derived())
    before = [{name: session.conf.get(name) for name in options} for session in sessions]
    for session in sessions:
        for name, value in options.items():
            session.conf.set(name, value)
    try:
        yield
    finally:
        for session, values in zip(sessions, before, strict=True):
            for name, value in values.items():
                session.conf.set(name, value or "")


@contextmanager
def least_results(hr: Headrace) -> Iterator[None]:
    """Let the driver take few bytes from the tasks of a job, and Spark broadcast nothing of its own accord."""
    option, automatic = "spark.driver.maxResultSize", "spark.sql.autoBroadcastJoinThreshold"
    sessions = (hr.spark, *hr._lazy.runner().derived())
    before = [session.conf.get(automatic) for session in sessions]
    running = hr.spark.sparkContext._jsc.sc().conf()  # looked up for each job
    running.set(option, "64k")
    for session in sessions:
        session.conf.set(automatic, "-1")
    try:
        yield
    finally:
        running.remove(option)
        for session, value in zip(sessions, before, strict=True):
            session.conf.set(automatic, value or "")


LIMITS = (least_broadcasts,) if OVER_CONNECT else (least_broadcasts, least_results)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_change_that_outgrows_a_broadcast_is_followed_without_one(
    hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch, limit: Callable[[Headrace], AbstractContextManager[None]]
) -> None:
    monkeypatch.setattr(cardinality, "SENT_UNASKED", 0)  # so small tables would be sent to meet the change
    for table, key in (("sales", "id"), ("stock", "id % 3"), ("days", "id % 3")):
        hr.sql(f"CREATE TABLE {ns}.{table} AS SELECT {key} AS k, sha2(string(id), 256) AS v FROM range(30000)")
    hr.create_stream_table(
        f"{ns}.s",
        f"SELECT a.v, b.v AS w, c.v AS d FROM {ns}.sales a "
        f"JOIN {ns}.stock b ON a.k = b.k JOIN {ns}.days c ON b.v = c.v",
        refresh_mode="DIFFERENTIAL",
    )
    begun: list[RefreshStarted] = []
    unsubscribe = hr.events.subscribe(lambda event: begun.append(event) if isinstance(event, RefreshStarted) else None)
    with limit(hr):
        for value, tries in ((100, 2), (101, 3)):  # the second refresh remembers what the first has met
            hr.sql(f"INSERT INTO {ns}.sales VALUES (1, '{value}')")
            assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
            assert len(begun) == tries
        monkeypatch.setattr(apply_change, "SMALL_STATE_CELLS", 0)  # so the removed rows are looked for
        hr.sql(f"DELETE FROM {ns}.sales WHERE v = '100'")
        assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    unsubscribe()
    assert hr.verify(f"{ns}.s").ok


@pytest.mark.long
def test_a_change_without_a_broadcast_may_still_fail_and_is_computed_anew(
    hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second try meets a row that came and went again, by which nothing can be divided."""
    monkeypatch.setattr(cardinality, "SENT_UNASKED", 0)
    for table, key in (("sales", "id"), ("stock", "id % 3")):
        hr.sql(f"CREATE TABLE {ns}.{table} AS SELECT {key} AS k, id + 1 AS v FROM range(30000)")
    query = f"SELECT 100 / a.v AS share, b.v AS w FROM {ns}.sales a JOIN {ns}.stock b ON a.k = b.k"
    hr.create_stream_table(f"{ns}.s", query, refresh_mode="DIFFERENTIAL")
    begun: list[RefreshStarted] = []
    unsubscribe = hr.events.subscribe(lambda event: begun.append(event) if isinstance(event, RefreshStarted) else None)
    hr.sql(f"INSERT INTO {ns}.sales VALUES (1, 0)")
    hr.sql(f"UPDATE {ns}.sales SET v = 7 WHERE v = 0")
    with least_broadcasts(hr):
        result = hr.refresh(f"{ns}.s")
    unsubscribe()
    assert (result.mode, result.reason) == (Mode.FULL, FullReason.CHANGE_FAILED)
    assert [event.mode for event in begun] == ["DIFFERENTIAL", "DIFFERENTIAL", "FULL"]
    assert hr.verify(f"{ns}.s").ok


@pytest.mark.long
def test_what_several_share_is_computed_without_one_too(hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cardinality, "SENT_UNASKED", 0)
    small_sources_too(monkeypatch)
    for table, key in (("orders", "id"), ("lines", "id % 1000")):
        hr.sql(f"CREATE TABLE {ns}.{table} AS SELECT {key} AS k, id AS v FROM range(4000)")
    names, joined = [f"{ns}.values", f"{ns}.counts"], f"FROM {ns}.orders o JOIN {ns}.lines l ON o.k = l.k"
    for name, query in zip(
        names, ("SELECT o.v, l.v AS w {}", "SELECT l.v, count(*) AS n {} GROUP BY l.v"), strict=True
    ):
        hr.create_stream_table(name, query.format(joined), refresh_mode="DIFFERENTIAL")

    def refreshed(turn: int) -> list[bool]:
        for table in ("orders", "lines"):
            hr.sql(f"UPDATE {ns}.{table} SET v = v + 1 WHERE k % 100 = {turn}")
        results = [hr.refresh(name) for name in names]
        assert {result.mode for result in results} == {Mode.DIFFERENTIAL}
        return [any(title.startswith("collect ") for title in result.stages) for result in results]

    refreshed(1)  # and each is seen to need what the other needs
    with least_broadcasts(hr):
        assert refreshed(2) == [True, True]
    assert all(v.ok for v in hr.verify(names))


def test_a_cycle_goes_on_without_one(project: Settings, hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hr.sql(f"CREATE TABLE {ns}.edges AS SELECT id AS s, id + 1 AS d FROM range(3)")
    names, asked, sql = [f"{ns}.odd", f"{ns}.even"], list[str](), type(hr.spark).sql

    def told(session: SparkSession, text: str, *args: Any, **kwargs: Any) -> DataFrame:
        asked.append(text)
        return sql(session, text, *args, **kwargs)

    with headrace.open(replace(project, allow_cycles=True), spark=hr.spark) as cyclic:
        cyclic.sql(f"""
            CREATE STREAM TABLE {ns}.odd AS SELECT s, d FROM {ns}.edges;
            CREATE STREAM TABLE {ns}.even AS
                SELECT DISTINCT e.s, o.d FROM {ns}.odd AS o JOIN {ns}.edges AS e ON e.d = o.s;
            CREATE OR REPLACE STREAM TABLE {ns}.odd AS
                SELECT s, d FROM {ns}.edges UNION SELECT e.s, v.d FROM {ns}.even AS v JOIN {ns}.edges AS e ON e.d = v.s
        """)
        cyclic.sql(f"INSERT INTO {ns}.edges SELECT id AS s, id + 1 AS d FROM range(3, 5)")
        monkeypatch.setattr(type(hr.spark), "sql", told)
        with least_broadcasts(cyclic):
            assert {result.mode for result in cyclic.refresh(names)} == {Mode.DIFFERENTIAL}
        assert sum("BROADCAST(" in text for text in asked) == 1, "the other rounds remember it"
        held = [{(s, d) for s, d in hr.sql(f"SELECT s, d FROM {name}").collect()} for name in names]
    assert held == list(ways({(n, n + 1) for n in range(5)}))
