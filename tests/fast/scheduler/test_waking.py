"""Changes of definitions reach schedulers in other processes at once; of their own these look every ten minutes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from catalog_kit.databases import Postgres, sql
from catalog_kit.killed import start
from kit.pipelines import Lake, PublishingWorker, define, full, scheduler
from psycopg.conninfo import conninfo_to_dict

from headrace.catalog import Catalog, Publication
from headrace.schedule import Kind, Schedule

AT_ONCE = Schedule("ON CHANGE", 0, Kind.ON_CHANGE)


def look_seldom(url: str, folder: str) -> None:
    with Catalog.open(url) as catalog:
        worker = PublishingWorker(Lake(url, Path(folder)), catalog)
        scheduler(catalog, worker, default_schedule=AT_ONCE, poll=600.0).run(threading.Event())


def until(condition: Callable[[], object]) -> float:
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() < begun + 60, "it did not happen"
        time.sleep(0.02)
    return time.monotonic() - begun


@pytest.fixture
def schedulers(postgres: Postgres, tmp_path: Path) -> Iterator[tuple[Lake, Catalog]]:
    """Two of them, that have seen what there is and wait; all they do from now on is because they were told."""
    url = postgres.fresh()
    with Catalog.open(url) as catalog:
        lake = Lake(url, tmp_path)
        lake.base("s.a")
        define(catalog, "first: a")
        processes = [start(look_seldom, url, str(tmp_path)) for _ in range(2)]
        try:
            until(lambda: len(catalog.schedulers()) == 2 and listeners(url) == 2 and catalog.frontiers())
            yield lake, catalog
        finally:
            for process in processes:
                process.kill()
                process.join(10)


def listeners(url: str) -> int:
    with sql(url) as connection:
        found = connection.exec_driver_sql(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %%' AND datname = current_database()"
        )
        return int(found.scalar_one())


def loaded(catalog: Catalog, name: str) -> bool:
    return full(name) in catalog.frontiers()


def test_changes_of_definitions_reach_every_process(schedulers: tuple[Lake, Catalog]) -> None:
    lake, catalog = schedulers
    define(catalog, "b: a")
    until(lambda: loaded(catalog, "b"))
    catalog.pause([full("b")])
    lake.base("s.a")
    define(catalog, "c: a")
    until(lambda: loaded(catalog, "c"))
    assert catalog.frontiers()[full("b")][full("a")] < catalog.frontiers()[full("c")][full("a")]
    catalog.unpause([full("b")])
    until(lambda: catalog.frontiers()[full("b")] == catalog.frontiers()[full("c")])
    catalog.alter_stream_table(full("b"), schedule="MANUAL")
    lake.base("s.a")
    catalog.publish(Publication(drops=(full("first"),)))
    until(lambda: catalog.frontiers()[full("c")][full("a")] > catalog.frontiers()[full("b")][full("a")])
    assert {n.table for n in catalog.frontiers()} == {"b", "c"}


def test_all_are_asked_to_drain(schedulers: tuple[Lake, Catalog]) -> None:
    _, catalog = schedulers
    catalog.drain()
    until(lambda: not catalog.schedulers())


def test_who_lost_the_connection_listens_again(schedulers: tuple[Lake, Catalog]) -> None:
    lake, catalog = schedulers
    with sql(lake.url, autocommit=True) as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %%'"
            " AND datname = current_database()"
        )
    define(catalog, "b: a")  # nobody hears that; whoever comes back looks all the same
    until(lambda: loaded(catalog, "b"))
    until(lambda: listeners(lake.url) == 2)


def test_who_listens_notices_a_server_that_vanished(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, connect, woken = [], psycopg.connect, threading.Event()

    def connecting(*address: str, **options: Any) -> Any:
        if address:  # who listens; the catalog itself gives options only
            asked.append(conninfo_to_dict(address[0]))
        return connect(*address, **options)

    monkeypatch.setattr(psycopg, "connect", connecting)
    with Catalog.open(postgres.fresh()) as catalog, catalog.listening(woken.set):
        assert woken.wait(180)
    assert {"connect_timeout", "keepalives_idle", "tcp_user_timeout"} <= asked[0].keys()
