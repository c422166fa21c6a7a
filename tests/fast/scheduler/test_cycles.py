"""Cycles under schedules: one unit, whose members share schedules, lags and troubles."""

import datetime as dt
import io
import threading

from kit.pipelines import PublishingWorker, define, failing, full, roots, rules, scheduler
from rich.console import Console

from headrace.api.schedules.groups import diamond_groups
from headrace.cli.render.running import groups
from headrace.observability.attainment import read_stretch
from headrace.schedule import Kind
from headrace.scheduler.policy.lateness import late_because
from headrace.scheduler.policy.plan_cycle import holds
from headrace.scheduler.scheduler_state import read_scheduler_state, targets

CYCLE = "b: a c; c: b z; d: c; n: n a"


def scheduler_state_of(lake_, catalog):
    own = rules()
    return read_scheduler_state(catalog, PublishingWorker(lake_, catalog).heads(), own.defaults, own.default_schedule)


def once(catalog, worker, **changes):
    return scheduler(catalog, worker, **changes).run(threading.Event(), once=True)


def test_a_cycle_is_refreshed_as_one_unit(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, CYCLE)
    worker = PublishingWorker(lake_, catalog)
    planned = scheduler(catalog, worker).plan()
    assert [p.tables for p in planned] == [("s.b", "s.c"), ("s.n",), ("s.d",)]
    assert once(catalog, worker).refreshed == 3
    assert worker.ran.index(("b", "c")) < worker.ran.index(("d",))
    assert once(catalog, worker, ahead=5).refreshed == 0
    lake_.base("s.z")  # what c alone reads changes b, too
    assert once(catalog, worker, ahead=5).refreshed == 2
    assert roots(lake_, catalog) == {n: {"a": {0}, "z": {1}} for n in "bcd"} | {"n": {"a": {0}}}


def test_schedules_go_round_a_cycle_once(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, f"{CYCLE}; e: d", {"b": "1 hour", "e": "MANUAL"})
    state = scheduler_state_of(lake_, catalog)
    kinds = {n.table: t.schedule.kind for n, t in state.tables.items()}
    assert kinds == {
        "b": Kind.LAG,  # its own
        "c": Kind.DOWNSTREAM,  # goes along with b
        "d": Kind.MANUAL,  # only e reads it
        "e": Kind.MANUAL,
        "n": Kind.ON_CHANGE,  # the default: it reads itself, and nothing else reads it
    }
    assert {n.table: t for n, t in targets(state).items()} == {"b": 3600, "c": 3600}


def test_a_cycle_that_is_read_is_pulled_along(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, CYCLE, {"d": "10 seconds"})
    state = scheduler_state_of(lake_, catalog)
    assert {n.table: t for n, t in targets(state).items()} == {"b": 10, "c": 10, "d": 10}
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a")
    assert once(catalog, worker, ahead=20).refreshed == 3


def test_lags_and_troubles_are_those_of_the_whole_cycle(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, CYCLE)
    once(catalog, PublishingWorker(lake_, catalog))
    lake_.base("s.z")
    catalog.pause([full("b")])
    state = scheduler_state_of(lake_, catalog)
    behind = {n.table: t.standing.behind_since for n, t in state.tables.items()}
    assert behind["b"] == behind["c"] == behind["d"] is not None
    assert behind["n"] is None
    found = holds(state, dt.datetime.now(dt.UTC))
    assert {u.table: (h.table.table, h.reason) for u, h in found.items()} == {
        "c": ("b", "paused"),
        "d": ("b", "paused"),
    }
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    why = late_because(state, full("c"), 1, later, scheduled=True, running={full("b")})
    assert why == "s.b is being refreshed"


def test_how_well_a_target_is_kept_is_told_of_members_too(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, CYCLE, {"b": "1 second"})
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    once(catalog, worker)
    state, now = scheduler_state_of(lake_, catalog), dt.datetime.now(dt.UTC)
    with catalog.reading() as reader:
        stretch = read_stretch(reader, state.tables, now)
    assert {n: stretch.share(full(n), 60) for n in "bcdn"} == dict.fromkeys("bcdn", 1.0)
    lake_.base("s.z")
    scheduler_state_of(lake_, catalog)  # observes it
    later = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)
    with catalog.reading() as reader:
        stretch = read_stretch(reader, state.tables, later)
    shares = {n: stretch.share(full(n), 60) for n in "bcdn"}
    assert shares["n"] == 1.0
    assert all(shares[n] is not None and shares[n] < 0.2 for n in "bcd")


def test_a_member_that_fails_holds_its_cycle_and_nothing_else(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, CYCLE)
    worker = PublishingWorker(lake_, catalog, fails=failing("c"))
    summary = once(catalog, worker)
    assert (summary.refreshed, summary.failed) == (1, 1)
    assert worker.ran == [("n",)]
    assert {n.table for n, scheduling in catalog.scheduling_states().items() if scheduling.retry_at} == {"b", "c"}
    once(catalog, PublishingWorker(lake_, catalog), ahead=60)
    assert set(roots(lake_, catalog)) == {"b", "c", "d", "n"}


def test_a_cycle_is_shown_as_a_group(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, CYCLE)
    (group,) = diamond_groups(catalog, scheduler_state_of(lake_, catalog), dt.datetime.now(dt.UTC))
    assert (group.name, group.members, group.converge) == ("s.c", ("s.b", "s.c"), ())
    assert group.cyclic == ("s.b", "s.c")
    text = io.StringIO()
    for part in groups((group,)):
        Console(file=text, width=200).print(part)
    assert "cycle of s.b ⇄ s.c" in text.getvalue()
