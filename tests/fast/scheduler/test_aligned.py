"""Aligned diamonds over a real catalog: members keep their own schedules, the table where they meet never mixes."""

from __future__ import annotations

import datetime as dt
import random
import threading

import pytest
from kit.pipelines import PublishingWorker, contents, define, full, mixed, roots, scheduler

from headrace.refresh.cut.align_cut import alignment, readable_later
from headrace.refresh.cut.cut import Cut
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.schedule import parse_schedule
from headrace.scheduler.policy.intervals import interval
from headrace.scheduler.scheduler_state import read_scheduler_state

ALIGNED = {"diamond_consistency": "aligned"}
NOW = dt.datetime.now(dt.UTC)


def once(catalog, worker, ahead=90):
    return scheduler(catalog, worker, ahead=ahead).run(threading.Event(), once=True)


def refresh(catalog, worker, *names):
    for name in names:
        worker.refresh((full(name),), worker.heads())


def state(catalog):
    heads = Cut(catalog, lambda _: None)
    return read_scheduler_state(catalog, heads, Defaults(), parse_schedule("ON CHANGE"))


def tables(catalog):
    return {t.name: t for t in catalog.stream_tables()}


def test_members_are_no_group(lake_, catalog):
    define(catalog, "b: a; c: a; d: b c", d=ALIGNED)
    cut = grouping(tables(catalog), Defaults())
    assert cut.members(full("d")) == (full("d"),)
    assert cut.bottoms(full("d")) == ()


def test_the_table_reads_the_newest_versions_that_agree(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c", {"*": "MANUAL"}, d=ALIGNED)
    worker = PublishingWorker(lake_, catalog)
    refresh(catalog, worker, *"bcd")
    lake_.base("s.a")
    refresh(catalog, worker, "b", "d")
    assert roots(lake_, catalog) == {"b": {"a": {1}}, "c": {"a": {0}}, "d": {"a": {0}}}
    assert state(catalog).tables[full("d")].trails == {full("b"): 1}
    assert not state(catalog).tables[full("d")].news
    lake_.base("s.a")
    refresh(catalog, worker, "b", "c", "b", "d")
    assert roots(lake_, catalog)["d"] == {"a": {2}}
    assert state(catalog).tables[full("d")].trails == {}


def test_versions_that_may_yet_be_read_are_kept(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c; other: b c", {"*": "MANUAL"}, d=ALIGNED)
    worker = PublishingWorker(lake_, catalog)
    refresh(catalog, worker, *"bcd")
    for _ in range(3):
        lake_.base("s.a")
        refresh(catalog, worker, "b")
    with catalog.reading() as reader:
        kept = readable_later(reader, tables(catalog), reader.frontiers(), Defaults())
    assert [(v.relation, v.version) for v in kept] == [(full("b"), n) for n in (1, 2, 3)]


def test_a_way_that_is_the_source_itself(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "b: a; d: a b z", {"*": "MANUAL"}, d=ALIGNED)
    worker = PublishingWorker(lake_, catalog)
    refresh(catalog, worker, *"bd")
    lake_.base("s.a", "s.z")
    refresh(catalog, worker, "d")
    assert roots(lake_, catalog)["d"] == {"a": {0}, "z": {1}}  # nothing has to agree with z
    refresh(catalog, worker, *"bd")
    assert roots(lake_, catalog)["d"] == {"a": {1}, "z": {1}}


def test_no_versions_that_agree(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c", {"*": "MANUAL"}, d=ALIGNED)
    worker = PublishingWorker(lake_, catalog)
    refresh(catalog, worker, "b")
    lake_.base("s.a")
    refresh(catalog, worker, "c")
    with catalog.reading() as reader:
        newest = {n: v.version for n, v in reader.newest_versions().items()}
        assert alignment(reader, full("d"), tables(catalog), reader.frontiers(), newest).versions is None


def test_the_quicker_are_refreshed_along_with_the_slower(lake_, catalog):
    lake_.base("s.a")
    schedules = {"b": "1 second", "c": "1 hour", "d": "1 second"}
    define(catalog, "b: a; c: a; d: b c", schedules, d=ALIGNED)
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    worker.ran.clear()
    lake_.base("s.a")
    once(catalog, worker)
    assert ("c",) not in worker.ran  # it has a schedule of its own
    assert roots(lake_, catalog)["d"] == {"a": {0}}
    lake_.base("s.a")
    worker.ran.clear()
    once(catalog, worker, ahead=4000)
    assert {("b",), ("c",)} <= set(worker.ran)
    once(catalog, worker, ahead=4000)
    assert roots(lake_, catalog) == {name: {"a": {2}} for name in "bcd"}


def test_what_is_partly_refreshed_with_its_diamond_is_wholly(lake_, catalog):
    lake_.base("s.t", "s.u")
    graph = "b: t u; c: t; d: b c; x: u; e: d x; f: b c y; y: v"
    define(catalog, graph, d=ALIGNED, f={**ALIGNED, "refresh_group": "g"}, y={"refresh_group": "g"})
    cut = grouping({n: t for n, t in tables(catalog).items() if n.table not in "fy"}, Defaults())
    assert set(cut.members(full("d"))) == {full(name) for name in "bcdxe"}
    apart = {n: t for n, t in tables(catalog).items() if n.table in "bcfy"}
    assert set(grouping(apart, Defaults()).members(full("f"))) == {full(name) for name in "bcfy"}


def test_a_table_that_was_never_loaded_waits_for_versions_that_agree(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c", {"b": "MANUAL", "c": "MANUAL", "d": "1 second"}, d=ALIGNED)
    worker = PublishingWorker(lake_, catalog)
    refresh(catalog, worker, "b")
    lake_.base("s.a")
    refresh(catalog, worker, "c")
    worker.ran.clear()
    once(catalog, worker)
    assert worker.ran == []
    refresh(catalog, worker, "b")
    once(catalog, worker)
    assert worker.ran == [("b",), ("d",)]
    assert roots(lake_, catalog)["d"] == {"a": {1}}


def test_what_waits_for_another_is_not_refreshed_along(lake_, catalog):
    lake_.base("s.a")
    schedules = {"p": "1 hour", "b": "1 second", "c": "1 hour", "d": "1 second"}
    define(catalog, "p: z; b: p a; c: a; d: b c", schedules, d=ALIGNED)
    lake_.base("s.z")
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    catalog.pause([full("p")])
    lake_.base("s.a")
    worker.ran.clear()
    once(catalog, worker, ahead=4000)
    assert ("c",) in worker.ran
    assert ("b",) not in worker.ran


def test_how_long_between_two_refreshes(lake_, catalog):
    schedules = {"b": "1 minute", "c": "@hourly", "m": "MANUAL", "d": "DOWNSTREAM"}
    define(catalog, "b: a; c: a; m: a; d: b; e: d", schedules, b={"tier": "warm"}, e={"tier": "frozen"})
    lake_.base("s.a")
    of = state(catalog)
    found = {name: interval(of, full(name), NOW) for name in ("b", "c", "m", "e")}
    assert found == {"b": 120, "c": 3600, "m": float("inf"), "e": float("inf")}


@pytest.mark.parametrize("seed", range(3))
def test_random_refreshes_never_mix(lake_, catalog, seed):
    rng = random.Random(seed)
    lake_.base("s.a", "s.z")
    define(catalog, "b: a z; m: a; c: m z; d: b c; e: d m", {"*": "MANUAL"}, d=ALIGNED, e=ALIGNED)
    worker = PublishingWorker(lake_, catalog)
    refresh(catalog, worker, "b", "m", "c", "d", "e")
    reached = set()
    for _ in range(25):
        for name in rng.sample(("s.a", "s.z"), rng.randint(0, 2)):
            lake_.base(name)
        refresh(catalog, worker, *rng.sample(("b", "m", "c", "d", "e"), rng.randint(1, 5)))
        for one in contents(lake_, catalog, "d", "e"):
            assert not mixed(one)
        reached.add(tuple(sorted((n, tuple(v)) for n, v in roots(lake_, catalog)["d"].items())))
    refresh(catalog, worker, "m", "b", "c", "d", "e")
    assert len(reached) > 1
    assert roots(lake_, catalog)["d"] == roots(lake_, catalog)["b"]  # both reflect everything
