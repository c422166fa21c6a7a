"""Several stream tables refreshed by one call: side by side on Spark, and told in order."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from catalog_kit.stream_tables import drop_stream_table

from headrace.api.facade import Headrace
from headrace.catalog import resource_of
from headrace.errors import HeadraceError
from headrace.events import Event, RefreshStarted
from headrace.results.refresh_results import Mode

QUERIES = {
    "totals": "SELECT g, sum(v) AS total, count(*) AS n FROM {ns}.facts GROUP BY g",
    "large": "SELECT k, g, v FROM {ns}.facts WHERE v > 10",
    "most": "SELECT g, max(v) AS most FROM {ns}.large GROUP BY g",
    "named": "SELECT f.k, f.v, d.name FROM {ns}.facts f JOIN {ns}.names d ON f.g = d.g",
    "names_only": "SELECT name, count(*) AS n FROM {ns}.names GROUP BY name",
}


def made(hr: Headrace, ns: str, *names: str) -> list[str]:
    """Stream tables over two sources: all of them, or those of these names."""
    hr.spark.sql(
        f"CREATE TABLE lake.{ns}.facts USING iceberg AS SELECT id AS k, id % 5 AS g, id % 40 AS v FROM range(200)"
    )
    hr.spark.sql(f"CREATE TABLE lake.{ns}.names USING iceberg AS SELECT id AS g, 'n' || id AS name FROM range(4)")
    for name in names or QUERIES:
        hr.create_stream_table(f"{ns}.{name}", QUERIES[name].format(ns=ns), refresh_mode="DIFFERENTIAL")
    return [f"{ns}.{name}" for name in names or QUERIES]


def change(hr: Headrace, ns: str, number: int) -> None:
    hr.spark.sql(f"INSERT INTO lake.{ns}.facts VALUES ({1000 + number}, {number % 5}, 30)")
    hr.spark.sql(f"DELETE FROM lake.{ns}.facts WHERE k = {number}")
    hr.spark.sql(f"UPDATE lake.{ns}.names SET name = 'm{number}' WHERE g = {number % 4}")


@pytest.mark.long
def test_they_follow_their_sources_and_are_told_in_order(hr: Headrace, ns: str) -> None:
    tables, orders = made(hr, ns), []
    for number, slots in enumerate((None, 1)):
        change(hr, ns, number)
        results = hr.refresh(tables, max_concurrent=slots)
        assert {r.mode for r in results} == {Mode.DIFFERENTIAL}
        orders.append([r.name for r in results])
    assert all(done.ok for done in hr.verify(tables))
    assert orders[0] == orders[1] == [r.name for r in hr.refresh(tables)]  # also where nothing moved
    assert sorted(orders[0]) == sorted(tables)
    assert orders[0].index(f"{ns}.large") < orders[0].index(f"{ns}.most")


def test_tables_that_do_not_read_each_other_run_side_by_side(hr: Headrace, ns: str) -> None:
    tables = made(hr, ns, "totals", "names_only")
    both, met = threading.Barrier(2, timeout=60), []

    def note(event: Event) -> None:
        if isinstance(event, RefreshStarted):
            met.append(both.wait() in (0, 1))  # one alone would wait in vain

    change(hr, ns, 0)
    untell = hr.events.subscribe(note)
    try:
        hr.refresh(tables, max_concurrent=2)
    finally:
        untell()
    assert met == [True, True]


def test_jobs_are_counted_by_table(hr: Headrace, ns: str) -> None:
    tables = made(hr, ns, "totals", "large", "most")
    hr.refresh(tables, full=True)  # what is done once only is behind them
    alone = {r.name: r.jobs for r in hr.refresh(tables, full=True, max_concurrent=1)}
    assert {r.name: r.jobs for r in hr.refresh(tables, full=True)} == alone


@pytest.mark.long
def test_a_failure_is_raised_when_the_others_are_done(hr: Headrace, ns: str) -> None:
    tables = made(hr, ns, "totals", "large", "most")
    failing, reader = f"{ns}.ratios", f"{ns}.most_ratios"
    hr.create_stream_table(failing, f"SELECT k, 10 DIV (v - 77) AS ratio FROM {ns}.facts")
    hr.create_stream_table(reader, f"SELECT max(ratio) AS most FROM {failing}")
    hr.spark.sql(f"INSERT INTO lake.{ns}.facts VALUES (2000, 1, 77)")
    with pytest.raises(HeadraceError) as caught:
        hr.refresh([*tables, failing, reader])
    assert caught.value.code == "ARITHMETIC_ERROR"
    tried = [row.name for row in hr.history(limit=None) if row.name in (failing, reader) and not row.ok]
    assert tried == [failing]
    assert all(done.ok for done in hr.verify(tables))
    assert {info.name for info in hr.status([*tables, failing]) if info.behind} == {failing}


def test_tables_that_are_dropped_while_their_leases_are_waited_for(hr: Headrace, ns: str) -> None:
    tables = made(hr, ns, "totals", "large", "named")
    dropped, patient = [f"{ns}.large", f"{ns}.named"], dt.timedelta(minutes=2)
    change(hr, ns, 0)
    busy = hr._catalog.acquire([resource_of(hr._name(table)) for table in dropped], "somebody", dt.timedelta(minutes=5))
    with ThreadPoolExecutor(2) as pool:
        everything = pool.submit(hr.refresh, wait=patient, max_concurrent=4)
        one = pool.submit(hr.refresh, dropped[1], wait=patient)
        while any(info.behind for info in hr.status([t for t in tables if t not in dropped])):
            assert not everything.done()
        for table in dropped:
            drop_stream_table(hr._catalog, hr._name(table))
        hr._catalog.release(busy)
        assert not {result.name for result in everything.result(60)} & {*dropped}
        with pytest.raises(HeadraceError) as caught:
            one.result(60)
    assert caught.value.code == "STREAM_TABLE_NOT_FOUND"
