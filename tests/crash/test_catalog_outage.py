"""The catalog's PostgreSQL is stopped under running schedules and started again: they go on, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from catalog_kit.databases import Postgres
from catalog_kit.proxy import BreakingProxy
from kit.pipelines import Lake, PublishingWorker, define, full, roots, scheduler
from kit.sparks import SHORT_LIVED_OPTIONS
from kit.waiting import running, until

import headrace
from headrace.catalog import Catalog
from headrace.config import default_settings
from headrace.errors import EnvironmentFault
from headrace.events import Event, Events, Notice, RefreshFinished, Suspended
from headrace.results.refresh_results import VerifyResult
from headrace.schedule import Kind, Schedule

AT_ONCE = Schedule("ON CHANGE", 0, Kind.ON_CHANGE)
OUTAGE_SECONDS = 4.0


def patiently(call: Callable[[], Sequence[VerifyResult]]) -> list[bool]:
    """Spark finds out one by one that its connections to the catalog are dead, each time by failing."""
    try:
        return [result.ok for result in call()]
    except EnvironmentFault as error:
        if not error.retryable:
            raise
        return [False]


def notices(told: list[Event], text: str) -> int:
    return sum(text in event.message for event in told if isinstance(event, Notice))


def test_schedules_outlast_an_outage(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.fresh()
    events, told = Events(), []
    events.subscribe(told.append)
    with Catalog.open(url) as catalog:
        lake = Lake(url, tmp_path)
        lake.base("s.a", "s.z")
        define(catalog, "b: a; c: a; d: b c; x: z; y: x")
        worker = PublishingWorker(lake, catalog, seconds=lambda _: 0.3)
        run = scheduler(catalog, worker, events, default_schedule=AT_ONCE).run
        with running(run):
            until(lambda: len(worker.ran) >= 3)
            lake.base("s.a", "s.z")
            until(lambda: worker.at_once)
            with postgres.outage():  # in the middle of refreshes
                time.sleep(OUTAGE_SECONDS)
                until(lambda: notices(told, "does not answer"))
            lake.base("s.a", "s.z")
            heads = {n.table: v for n, v in worker.heads().versions([full("a"), full("z")]).items()}
            newest = {name: {base: {heads[base]}} for base, names in (("a", "bcd"), ("z", "xy")) for name in names}
            until(lambda: roots(lake, catalog) == newest)
        assert notices(told, "does not answer") == notices(told, "answers again") == 1
        assert not any(scheduling.suspended_at for scheduling in catalog.scheduling_states().values())
        assert catalog.schedulers() == ()
        assert catalog.dirty_staging() == ()


@pytest.fixture
def reachable(postgres: Postgres) -> Iterator[str]:
    """A catalog that Spark reaches, too: JDBC knows no Unix sockets."""
    database = postgres.fresh()
    proxy = BreakingProxy(postgres.socket_folder)
    yield f"postgresql://postgres@127.0.0.1:{proxy.port}/{database.partition('?')[0].rpartition('/')[2]}"
    proxy.close()


def test_spark_outlasts_it_too(reachable: str, postgres: Postgres, tmp_path: Path) -> None:
    settings = replace(
        default_settings(tmp_path), spark_master="local[2]", catalog_url=reachable, spark_options=SHORT_LIVED_OPTIONS
    )
    told: list[Event] = []
    with headrace.open(settings) as hr:
        hr.events.subscribe(told.append)
        hr.sql("CREATE NAMESPACE lake.o; CREATE TABLE lake.o.a (id INT, v INT) USING iceberg")
        hr.sql("INSERT INTO lake.o.a VALUES (1, 1), (2, 2)")
        hr.create_stream_table("o.b", "SELECT v, count(*) AS n FROM o.a GROUP BY v", schedule="ON CHANGE")
        hr.create_stream_table("o.c", "SELECT sum(n) AS n FROM o.b", schedule="ON CHANGE")
        with running(lambda stopping: hr.run(stopping=stopping)):
            told.clear()
            hr.sql("INSERT INTO lake.o.a VALUES (3, 3)")
            until(lambda: any(not isinstance(e, Notice) for e in told))
            with postgres.outage():
                until(lambda: notices(told, "does not answer"))
            until(lambda: notices(told, "answers again"))
            until(lambda: not any(info.behind for info in hr.status()))
        assert any(isinstance(e, RefreshFinished) for e in told)
        assert not any(isinstance(e, Suspended) for e in told)
        until(lambda: all(patiently(hr.verify)))
        assert [row.rows_inserted for row in hr.history("o.c", limit=1)] == [1]
