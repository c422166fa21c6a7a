"""Greens beside public tables: groups of their own, whatever both read."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from catalog_kit.samples import create, lake
from kit.pipelines import Lake, PublishingWorker, roots, scheduler
from kit.waiting import until

from headrace.catalog import Catalog
from headrace.errors import EnvironmentFault
from headrace.events import Event, Events, Notice, Promoted, fields_of
from headrace.names import TableName
from headrace.refresh.cut.cut import Cut
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.schedule import parse_schedule
from headrace.schedule.options import DEPLOY_POOL
from headrace.scheduler import deployments
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.policy.joint_refresh import along
from headrace.scheduler.scheduler_state import read_scheduler_state
from headrace.scheduler.work import RunSummary

GREEN = {"deployment": "green"}


def test_deployments_are_seen_to_while_there_are_any(
    lake_: Lake, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(deployments, "AGAIN_SECONDS", 0.02)
    worker, events, notices = PublishingWorker(lake_, catalog), Events(), list[Event]()
    assert run_once(catalog, worker).failed == 0
    assert worker.deployed == 0
    catalog.set_auto_promote("green", {})
    promoted = Promoted("green", ("s.b",), automatic=True)
    worker.deploys = lambda: catalog.write_events([(dt.datetime.now(dt.UTC), "promoted", fields_of(promoted))])
    events.subscribe(notices.append)
    scheduler(catalog, worker, events, poll=60.0).run(threading.Event(), once=True)
    assert worker.deployed == 1
    assert notices.count(promoted) == 1
    notices.clear()

    def breaks() -> None:
        raise EnvironmentFault("DISK_FULL", "No space is left.")

    worker.deploys, stop = breaks, threading.Event()
    thread = threading.Thread(target=lambda: scheduler(catalog, worker, events).run(stop), daemon=True)
    thread.start()
    until(lambda: worker.deployed > 4)
    stop.set()
    thread.join(60)
    assert [n.message for n in notices if isinstance(n, Notice)] == [
        "Deployments are left alone for now. [DISK_FULL] No space is left."
    ]


def test_a_defect_leaves_deployments_alone_for_a_while(lake_: Lake, catalog: Catalog) -> None:
    worker, events, notices = PublishingWorker(lake_, catalog), Events(), list[Event]()
    events.subscribe(notices.append)
    worker.deploys = lambda: {}["gone"]
    spark = LostSpark(events)
    one = deployments.Deployments(catalog, worker, events, 0.0, spark)
    for _ in range(2):
        with pytest.raises(KeyError):
            one.step()
    (notice,) = (n.message for n in notices if isinstance(n, Notice))
    assert "[REFRESH_BROKE]" in notice
    catalog.set_auto_promote("green", {})
    one.consider(())
    one.end(Patience(events, 60.0))
    assert worker.deployed == 2


def test_new_layouts_are_brought_once_a_spark_that_the_first_look_found_lost_is_back(
    lake_: Lake, catalog: Catalog
) -> None:
    lake_.base("s.a")
    worker, order = PublishingWorker(lake_, catalog), list[str]()
    create(catalog, lake("s.b"), lake("s.a"), details={"layout": 1})
    assert run_once(catalog, worker).refreshed == 1
    create(catalog, lake("s.x"), TableName("elsewhere", ("s",), "t"), schedule="MANUAL")

    def location(_: TableName) -> None:
        if not order:
            order.append("lost")
            raise EnvironmentFault("SPARK_LOST", "It is gone.", retryable=True)

    def restart() -> bool:
        order.append("started again")
        return True

    worker.heads = lambda: Cut(catalog, location)
    worker.restartable, worker.restart, worker.deploys = True, restart, lambda: order.append("deployed")
    run = scheduler(catalog, worker, defaults=Defaults(layout_limit=0)).run
    thread = threading.Thread(target=lambda: run(threading.Event(), once=True), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert order == ["lost", "started again", "deployed"]


def run_once(catalog: Catalog, worker: PublishingWorker) -> RunSummary:
    return scheduler(catalog, worker).run(threading.Event(), once=True)


def units(catalog: Catalog) -> set[frozenset[str]]:
    cut = grouping({t.name: t for t in catalog.stream_tables()}, Defaults())
    return {frozenset(map(str, members)) for members in cut.units.members.values()}


def table(catalog: Catalog, name: str, *sources: TableName, green: bool = False, **options: str) -> TableName:
    create(catalog, lake(name), *sources, options=options, details=GREEN if green else {})
    return lake(name)


def test_greens_never_join_the_groups_of_public_tables(catalog: Catalog) -> None:
    a = lake("s.a")
    b, c = table(catalog, "s.b", a), table(catalog, "s.c", a)
    table(catalog, "s.d", b, c)
    new_b, new_c = table(catalog, "s__green.b", a, green=True), table(catalog, "s__green.c", a, green=True)
    table(catalog, "s__green.d", new_b, new_c, green=True)
    table(catalog, "s__green.e", new_b, c, green=True)  # meets where only one of the two is of its generation
    greens = frozenset({"s__green.b", "s__green.c", "s__green.d"})
    assert units(catalog) == {frozenset({"s.b", "s.c", "s.d"}), greens, frozenset({"s__green.e"})}


def test_a_green_over_a_public_table_reads_versions_that_agree(lake_: Lake, catalog: Catalog) -> None:
    a, worker = lake("s.a"), PublishingWorker(lake_, catalog)
    c = table(catalog, "s.c", a)
    b = table(catalog, "s.new_b", a, green=True)
    between = table(catalog, "s.x", c)  # the other way leads through two public tables
    d = table(catalog, "s.new_d", b, between, green=True)

    def refresh(*names: TableName) -> set[int]:
        for name in names:
            worker.refresh((name,), worker.heads())
        return roots(lake_, catalog)["new_d"]["a"]

    lake_.base("s.a")
    worker.refresh((b,), worker.heads())
    lake_.base("s.a")
    assert refresh(c, between, d) == {0, 1}  # it is loaded from what there is, and not refused
    assert refresh(b, d) == {1}
    lake_.base("s.a")
    assert refresh(b, d) == {1}
    lake_.base("s.a")
    assert refresh(c, between, d) == {1}  # b has passed no version that these reflect, and d waits
    state = read_scheduler_state(catalog, worker.heads(), Defaults(), parse_schedule("ON CHANGE"))
    everything = (c, between, b, d)
    assert along(state, {c: ""}, everything, dt.datetime.now(dt.UTC)).keys() == {b}
    assert along(state, {b: ""}, everything, dt.datetime.now(dt.UTC)) == {}  # nobody waits for a deployment
    assert refresh(b, d) == {3}


def test_greens_count_against_a_pool_of_their_own(catalog: Catalog) -> None:
    green = table(catalog, "s__green.b", lake("s.a"), green=True, pool="finance")
    public = table(catalog, "s.b", lake("s.a"), pool="finance")
    options = grouping({t.name: t for t in catalog.stream_tables()}, Defaults()).options
    assert (options[green].pool, options[public].pool) == (DEPLOY_POOL, "finance")


def test_declared_groups_are_of_one_generation(catalog: Catalog) -> None:
    for name, green in (("s.b", False), ("s.c", False), ("s__green.b", True), ("s__green.c", True)):
        table(catalog, name, lake("s.a"), green=green, refresh_group="both")
    assert units(catalog) == {frozenset({"s.b", "s.c"}), frozenset({"s__green.b", "s__green.c"})}
