"""The loop over a real catalog: what it refreshes, in which order, and what it does about trouble."""

import datetime as dt
import itertools
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from catalog_kit.ready import ready_project
from catalog_kit.stream_tables import drop_stream_table
from kit.pipelines import ClockAhead, PublishingWorker, define, failing, full, roots, rules, scheduler
from kit.waiting import until

from headrace.api.facade import Headrace
from headrace.api.schedules.run_schedules import EngineWorker
from headrace.catalog import HistoryEntry, Outcome, RanAs, resource_of
from headrace.catalog.coordination import scheduler_rows
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import (
    Events,
    LagExceeded,
    Notice,
    RetryPlanned,
    SchedulerLoad,
    SchedulerStopped,
    Suspended,
    Waiting,
)
from headrace.refresh import held_leases
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.refresh.held_leases import holding_leases, owner_is_dead
from headrace.schedule.cron import Cron
from headrace.schedule.options import Consistency, Policy
from headrace.scheduler import membership
from headrace.scheduler.idle import RESOURCE, Idle
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.policy.plan_cycle import holds
from headrace.scheduler.policy.slot_shares import Slots
from headrace.scheduler.scheduler_state import patience, read_scheduler_state, targets

NOW = dt.datetime.now(dt.UTC)


def once(catalog, worker, events=None, **changes):
    return scheduler(catalog, worker, events, **changes).run(threading.Event(), once=True)


class Running:
    """A scheduler that runs in a thread while the block lasts."""

    def __init__(self, catalog, worker, events=None, **changes):
        self.stop = threading.Event()
        self.thread = threading.Thread(
            target=lambda: scheduler(catalog, worker, events, **changes).run(self.stop), daemon=True
        )

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(180)
        assert not self.thread.is_alive()


def test_everything_that_is_due_is_refreshed_in_order(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; x: a")
    worker = PublishingWorker(lake_, catalog)
    summary = once(catalog, worker)
    assert (summary.refreshed, summary.failed) == (3, 0)
    assert worker.ran.index(("b",)) < worker.ran.index(("c",))
    assert once(catalog, worker).refreshed == 0
    lake_.base("s.a")
    assert once(catalog, worker, ahead=-30).refreshed == 0  # within the pause that ON CHANGE keeps
    assert once(catalog, worker, ahead=5).refreshed == 3
    assert roots(lake_, catalog) == {"b": {"a": {1}}, "c": {"a": {1}}, "x": {"a": {1}}}


def test_it_tells_how_busy_it_is(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: c", b={"pool": "small"})
    events, told = Events(), []
    events.subscribe(lambda event: told.append(event) if isinstance(event, SchedulerLoad) else None)
    worker = PublishingWorker(lake_, catalog, lambda _: 0.05)
    once(catalog, worker, events, slots=2, quotas={"small": 1})
    assert max(load.running for load in told) == 2
    assert (max(load.queued for load in told), told[-1].queued, told[-1].running) == (1, 0, 0)
    assert {load.pools.get("small", 0) for load in told} == {0, 1}
    assert (told[-1].slots, told[-1].quotas) == (2, {"small": 1})
    assert not [event for event in catalog.events() if event.kind == "scheduler_load"], "nobody keeps it"


def test_what_has_no_schedule_of_its_own_is_pulled_along(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "b: a; c: b; d: c; other: b; by_hand: a", {"d": "1 second", "other": "MANUAL", "by_hand": "MANUAL"})
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    assert worker.ran == [("b",), ("c",), ("d",)]


def test_a_chain_with_schedules_of_its_own_is_refreshed_in_one_go(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; d: c", {"*": "1 minute"})
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a")
    assert once(catalog, worker, ahead=90).refreshed == 3  # lag is measured to a, not to what c reads
    assert worker.ran == 2 * [("b",), ("c",), ("d",)]


def test_what_would_bring_nothing_is_not_refreshed(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; m: b; c: m; d: b", {"b": "1 day", "c": "1 second", "d": "1 second"})
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a")
    assert once(catalog, worker, ahead=3600).refreshed == 0  # b is what holds them up


def test_a_target_lag_is_waited_for(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a", {"b": "1 hour"})
    worker = PublishingWorker(lake_, catalog)
    assert once(catalog, worker).refreshed == 1  # the first load does not wait
    lake_.base("s.a")
    assert once(catalog, worker).refreshed == 0


def test_units_run_side_by_side_and_never_too_many(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "; ".join(f"t{n}: a" for n in range(8)))
    worker = PublishingWorker(lake_, catalog, seconds=lambda _: 0.1)
    once(catalog, worker, slots=3)
    assert worker.most_at_once == 3


def test_all_that_one_look_finds_due_reads_one_cut(lake_, catalog):
    lake_.base("s.x", "s.y")
    define(catalog, "b: y; c: b x; d: x")
    worker = PublishingWorker(lake_, catalog, fails=lambda name: lake_.base("s.x") if name.table == "b" else None)
    once(catalog, worker, slots=1)
    assert roots(lake_, catalog) == {"b": {"y": {0}}, "c": {"x": {0}, "y": {0}}, "d": {"x": {0}}}


def test_changes_are_followed_while_it_runs(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b")
    catalog.alter_stream_table(full("c"), schedule="ON CHANGE EVERY 1 s")
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker):
        until(lambda: len(worker.ran) == 2)
        define(catalog, "late: a")  # a new definition reaches it without a restart
        until(lambda: ("late",) in worker.ran)
        lake_.base("s.a")
        until(lambda: roots(lake_, catalog).get("c") == {"a": {1}})


def test_a_straggler_delays_only_what_reads_from_it(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "slow: a; below: slow; quick: z")
    free = threading.Event()
    worker = PublishingWorker(lake_, catalog, fails=lambda n: n.table == "slow" and free.wait(180))
    with Running(catalog, worker):
        until(lambda: ("quick",) in worker.ran)
        lake_.base("s.z")
        until(lambda: worker.ran.count(("quick",)) == 2)
        assert ("below",) not in worker.ran
        free.set()
        until(lambda: ("below",) in worker.ran)


def test_a_blown_fuse_stops_a_table_and_what_reads_it_and_nothing_else(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; x: a")
    events, told = Events(), []
    events.subscribe(told.append)

    def blow(name):
        if name.table == "b" and full("b") not in catalog.scheduling_states():
            catalog.blow_fuse(name, {"rows": 5})
            raise EnvironmentFault("FUSE_BLOWN", "Too much.")

    worker = PublishingWorker(lake_, catalog, fails=blow)
    summary = once(catalog, worker, events)
    assert (summary.refreshed, summary.failed, worker.ran) == (1, 1, [("x",)])
    assert not [e for e in told if isinstance(e, (RetryPlanned, Suspended))]
    once(catalog, worker, events, ahead=600)
    assert [(e.table, e.for_table, e.reason) for e in told if isinstance(e, Waiting)] == [
        ("s.c", "s.b", "stopped by its fuse")
    ]
    assert worker.ran == [("x",)]
    catalog.mend_fuse(full("b"))
    assert once(catalog, worker, events).refreshed == 2


def test_a_schedule_that_cannot_be_read_here_holds_its_table_and_what_reads_it(lake_, catalog):
    """It was stored by a host that knows more time zones."""
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b", {"b": "0 6 * * * Europe/Atlantis", "c": "ON CHANGE"})
    events, told = Events(), []
    events.subscribe(lambda event: told.append(event) if isinstance(event, Waiting) else None)
    one = scheduler(catalog, PublishingWorker(lake_, catalog), events)
    found = holds(one._look(), NOW)
    assert {name.table for name in found} == {"b", "d"}
    assert "Europe/Atlantis" in found[full("b")].reason
    assert [planned.tables for planned in one.plan() if not planned.waits] == [("s.c",)]
    one.run(threading.Event(), once=True)
    assert roots(lake_, catalog) == {"c": {"a": {0}}}
    assert {(e.table, e.for_table) for e in told} == {("s.b", "s.b"), ("s.d", "s.b")}


def test_nothing_goes_past_a_closed_gate(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "b: a; c: b z; x: a")
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a")
    worker.heads().versions([full("a")])
    catalog.close_gates([full("a")])
    for _ in range(2):
        lake_.base("s.a", "s.z")
    once(catalog, worker, ahead=90)
    assert roots(lake_, catalog) == {"b": {"a": {1}}, "c": {"a": {1}, "z": {1}}, "x": {"a": {1}}}
    assert once(catalog, worker, ahead=90).refreshed == 0  # what waits at the gate makes nothing due
    catalog.open_gates([full("a")])
    once(catalog, worker, ahead=90)
    assert roots(lake_, catalog)["c"] == {"a": {2}, "z": {1}}


def test_a_gate_that_opens_is_noticed_while_it_runs(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a")
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    catalog.close_gates([full("a")])
    lake_.base("s.a")
    with Running(catalog, worker, ahead=90):
        time.sleep(0.3)
        assert roots(lake_, catalog) == {"b": {"a": {0}}}
        catalog.open_gates([full("a")])
        until(lambda: roots(lake_, catalog) == {"b": {"a": {1}}})


def test_what_reads_sources_that_are_apart_waits(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "b: a; c: z; d: b c; e: d", {"*": "ON CHANGE"})
    group = (full("a"), full("z"))
    catalog.create_watermark_group("loads", group, dt.timedelta(minutes=5))
    events, told = Events(), []
    events.subscribe(told.append)
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker, events)
    assert sorted(worker.ran) == [("b",), ("c",)]  # over one source of the group there is nothing to wait for
    assert {(e.table, e.for_table, e.reason) for e in told if isinstance(e, Waiting)} == {
        ("s.d", "s.d", "waiting for watermark group loads"),
        ("s.e", "s.e", "waiting for watermark group loads"),
    }
    catalog.advance_watermark(full("a"), NOW)
    assert once(catalog, worker).refreshed == 0
    catalog.advance_watermark(full("z"), NOW - dt.timedelta(minutes=5))
    assert once(catalog, worker).refreshed == 2
    lake_.base("s.a")
    catalog.advance_watermark(full("a"), NOW + dt.timedelta(seconds=1))
    once(catalog, worker, ahead=90)
    assert roots(lake_, catalog) == {
        "b": {"a": {1}},
        "c": {"z": {0}},
        "d": {"a": {0}, "z": {0}},
        "e": {"a": {0}, "z": {0}},
    }


def test_what_failed_waits_for_watermarks_all_the_same(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "d: a z")
    worker = PublishingWorker(lake_, catalog, fails=failing("d", times=1))
    assert once(catalog, worker).failed == 1
    catalog.create_watermark_group("loads", (full("a"), full("z")), dt.timedelta(0))
    events, told = Events(), []
    events.subscribe(told.append)
    assert once(catalog, worker, events, ahead=90).refreshed == 0
    assert [e.reason for e in told if isinstance(e, Waiting)] == ["waiting for watermark group loads"]


def test_a_watermark_that_is_advanced_is_noticed_while_it_runs(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "d: a z")
    catalog.create_watermark_group("loads", (full("a"), full("z")), dt.timedelta(0))
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker):
        catalog.advance_watermark(full("a"), NOW)
        time.sleep(0.3)
        assert worker.ran == []
        catalog.advance_watermark(full("z"), NOW)
        until(lambda: worker.ran == [("d",)])


def test_a_failure_is_tried_again_later(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; x: a")
    events, told = Events(), []
    events.subscribe(told.append)
    worker = PublishingWorker(lake_, catalog, fails=failing("b", times=1))
    summary = once(catalog, worker, events)
    assert (summary.refreshed, summary.failed, worker.ran) == (1, 1, [("x",)])
    (planned,) = [e for e in told if isinstance(e, RetryPlanned)]
    assert (planned.table, planned.failures) == ("s.b", 1)
    assert 2 <= planned.seconds <= 3
    assert once(catalog, worker, events, ahead=-30).refreshed == 0  # not yet, says the catalog; and c waits for b
    assert [(e.table, e.for_table, e.reason) for e in told if isinstance(e, Waiting)][-1] == ("s.c", "s.b", "retrying")
    catalog.unpause([full("b")])
    assert once(catalog, worker, events).refreshed == 2


def test_a_retry_planned_by_a_clock_that_was_ahead_is_over(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a")
    next_year = NOW + dt.timedelta(days=365)
    catalog.note_failure([full("b")], "TEST_FAULT", "It failed.", lambda _: next_year)
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    assert worker.ran == [("b",)]


def test_what_fails_for_good_is_suspended_until_it_is_resumed(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; x: a")
    events, told = Events(), []
    events.subscribe(told.append)
    worker = PublishingWorker(lake_, catalog, fails=failing("b", times=1, code="ARITHMETIC_ERROR", retryable=False))
    once(catalog, worker, events)
    (suspended,) = [e for e in told if isinstance(e, Suspended)]
    assert (suspended.table, suspended.code) == ("s.b", "ARITHMETIC_ERROR")
    assert catalog.scheduling_states()[full("b")].suspended_at is not None
    catalog.unpause([full("b")])
    assert once(catalog, worker).refreshed == 1
    assert catalog.scheduling_states()[full("b")].suspended_at is None


@pytest.mark.parametrize(("limit", "changes"), [(5, {}), (2, {"suspend_after": 2})])
def test_a_table_is_suspended_after_so_many_failures(lake_, catalog, limit, changes):
    lake_.base("s.a")
    define(catalog, "b: a")
    worker = PublishingWorker(lake_, catalog, fails=failing("b"))
    for number in range(limit):
        assert (scheduling := catalog.scheduling_states().get(full("b"))) is None or (
            scheduling.failures,
            scheduling.suspended_at,
        ) == (number, None)
        with catalog._database.write() as connection:
            connection.exec_driver_sql("UPDATE hr_care SET retry_at = NULL")
        once(catalog, worker, **changes)
    scheduling = catalog.scheduling_states()[full("b")]
    assert (scheduling.failures, scheduling.suspended_at is not None) == (limit, True)


def test_a_paused_table_is_left_alone(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; x: a")
    worker = PublishingWorker(lake_, catalog)
    catalog.pause([full("b")])
    once(catalog, worker)
    assert worker.ran == [("x",)]
    catalog.unpause([full("b")])
    once(catalog, worker)
    assert worker.ran == [("x",), ("b",), ("c",)]


def test_a_frozen_table_is_left_alone(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a", b={"tier": "frozen"})
    assert once(catalog, PublishingWorker(lake_, catalog)).refreshed == 0


def test_what_is_frozen_is_not_pulled_along(lake_, catalog):
    lake_.base("s.a", "s.z")
    define(catalog, "b: a; c: b z", b={"tier": "frozen"})
    worker = PublishingWorker(lake_, catalog)
    worker.refresh([full("b")], worker.heads())
    lake_.base("s.a", "s.z")
    once(catalog, worker)
    assert worker.ran == [("b",), ("c",)]
    assert roots(lake_, catalog)["c"] == {"a": {0}, "z": {0}}


def test_a_failure_by_cron_is_tried_again_before_the_next_time(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a", {"b": "0 0 1 1 *"})
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a")
    year = 366 * 86400
    failed = HistoryEntry(full("b"), NOW, NOW, RanAs.DIFFERENTIAL, Outcome.FAILED)
    worker.fails = failing("b", times=1)
    assert once(catalog, worker, ahead=year).failed == 1
    catalog.record((failed,))
    assert once(catalog, worker, ahead=year + 60).refreshed == 1


def test_a_point_in_time_that_a_table_spends_in_line_is_made_up_for(lake_, catalog):
    """Both wait for one slot; what the second reads was observed before the first began, and has changed since."""
    worker = up_to_date(lake_, catalog, "b: a; c: a", {"*": "*/5 * * * * *"})
    begun = dt.datetime.now(dt.UTC)
    lake_.base("s.a")
    waited = Cron("*/5 * * * * *").next_after(begun) - begun

    def seconds(_):
        if len(worker.ran) == 2:  # the first, for longer than from one point to the next
            lake_.base("s.a")
            return 5.5
        return 0.0

    worker.seconds = seconds
    with Running(catalog, worker, slots=1):
        until(lambda: len(worker.ran) >= 6, seconds=30)
    # no more points have come than these, so that the change is not there by the next one
    assert dt.datetime.now(dt.UTC) - begun < waited + dt.timedelta(seconds=10)
    assert roots(lake_, catalog) == {"b": {"a": {2}}, "c": {"a": {2}}}


def test_a_change_before_a_point_in_time_that_passes_during_a_look_waits_for_no_other(lake_, catalog):
    """What was observed before the point is refreshed after it, and what came in between is not in that."""
    point = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(seconds=4)
    worker = up_to_date(lake_, catalog, "b: a", {"*": f"{point:%S} * * * * *"})
    lake_.base("s.a")
    quick = worker.heads

    def slow():
        worker.heads = quick
        cut = quick()
        cut.of([full("a")], frozenset())
        lake_.base("s.a")
        time.sleep(max(0.0, (point - dt.datetime.now(dt.UTC)).total_seconds()) + 0.1)
        return cut

    worker.heads = slow
    with Running(catalog, worker):
        until(lambda: roots(lake_, catalog) == {"b": {"a": {2}}}, seconds=30)


def test_a_diamond_is_published_together_or_not_at_all(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c; e: d")
    worker = PublishingWorker(lake_, catalog, fails=failing("c", "d", times=1))
    for _ in range(2):  # first c fails, then d, the last step before publishing
        assert once(catalog, worker).failed == 1
        assert roots(lake_, catalog) == {}
        catalog.unpause([full(name) for name in "bcd"])
    assert catalog.dirty_staging()  # what b wrote; the next one puts it back
    assert once(catalog, worker).refreshed == 2
    assert worker.ran == [("b", "c", "d"), ("e",)]
    assert {name.table: of.epoch for name, of in catalog.epochs().items()} == {"b": 1, "c": 1, "d": 1}
    assert len({tuple(sorted(r)) for r in roots(lake_, catalog).values()}) == 1


def test_members_of_a_group_run_side_by_side_and_a_failure_ends_them_all(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; p: a; d: b c p", b={"pool": "narrow"}, c={"pool": "narrow"})
    worker = PublishingWorker(lake_, catalog, seconds=lambda name: 0.2 if name.table in "bcp" else 0.0)
    assert once(catalog, worker, quotas={"narrow": 1}).refreshed == 1
    assert worker.most_at_once == 2  # p beside b or c, which share a pool of one
    assert len({tuple(sorted(r["a"])) for r in roots(lake_, catalog).values()}) == 1
    lake_.base("s.a")
    worker.fails, worker.seconds = failing("p", times=1), lambda name: 60.0 if name.table == "b" else 0.0
    begin = time.monotonic()
    assert once(catalog, worker, ahead=5).failed == 1
    assert time.monotonic() - begin < 30  # b was cancelled
    assert roots(lake_, catalog)["d"] == {"a": {0}}
    worker.seconds = lambda _: 0.0
    assert once(catalog, worker, ahead=60).refreshed == 1
    assert worker.ran == 2 * [("b", "c", "p", "d")]


def test_what_changed_while_a_table_was_refreshed_is_followed_however_late_its_end_is_told(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a")
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    again = iter(["a second change"])
    worker.fails = lambda _: lake_.base("s.a") if next(again, None) else None
    worker.lingers = lambda: time.sleep(0.5)  # many looks find it published, and its refresh not over
    lake_.base("s.a")
    with Running(catalog, worker, ahead=5):
        until(lambda: roots(lake_, catalog) == {"b": {"a": {2}}}, seconds=20)


EARLY = "s: z; t: y; b: a s; c: a s t; d: b c"
"""A diamond below s, of which only c waits for t, which no way joins to the rest."""


def test_a_member_starts_when_what_it_reads_is_published_and_no_diamond_is_torn(lake_, catalog):
    lake_.base("s.a", "s.y", "s.z")
    define(catalog, EARLY)
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    computed, go = [], threading.Event()

    def hold(name):
        computed.append(name.table)
        if name.table == "t":
            assert go.wait(60)

    lake_.base("s.a", "s.y", "s.z")
    worker.fails = hold
    shown: list[tuple[tuple[str, ...], dict[str, set[int]]]] = []  # by d, after each publication
    worker.lingers = lambda: shown.append((worker.ran[-1], roots(lake_, catalog)["d"]))
    with Running(catalog, worker, ahead=5):
        until(lambda: "b" in computed)  # c still waits for t
        assert "c" not in computed
        lake_.base("s.z")
        until(lambda: roots(lake_, catalog)["s"] == {"z": {2}})  # published again, in the middle of the group
        assert computed.count("b") == 1
        worker.fails = lambda _: None
        go.set()
        until(lambda: ("b", "c", "d") in dict(shown))
        first = next(found for ran, found in shown if ran == ("b", "c", "d"))
        assert first == {"a": {1}, "y": {1}, "z": {1}}  # of s what b has read
        until(lambda: roots(lake_, catalog)["d"]["z"] == {2})


@pytest.mark.parametrize("waits", [True, False])
def test_a_group_under_way_is_given_up_when_what_it_reads_fails(lake_, catalog, waits):
    lake_.base("s.a", "s.y", "s.z")
    options = {"refresh_group": "g", "diamond_consistency": "none"}
    define(catalog, EARLY, **{} if waits else dict.fromkeys("bcd", options))
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a", "s.y", "s.z")
    written = threading.Event()

    def fail(name):
        if name.table == "t":
            assert written.wait(60)
            raise HeadraceError("TEST_FAULT", "t was made to fail.", retryable=True)

    worker.fails = fail
    worker.seconds = lambda name: written.set() or 0.2 if name.table == "b" else 0.0
    summary = once(catalog, worker, ahead=5)
    assert (summary.refreshed, summary.failed) == ((1, 1) if waits else (2, 1))
    assert roots(lake_, catalog)["d"] == {"a": {0 if waits else 1}, "y": {0}, "z": {0 if waits else 1}}
    assert {name.table for name in catalog.scheduling_states()} == {"t"}  # the group has not failed
    with holding_leases(catalog, [resource_of(full(name)) for name in "bcd"]):
        pass
    worker.fails = worker.seconds = lambda _: 0.0
    once(catalog, worker, ahead=60)
    assert roots(lake_, catalog)["d"] == {"a": {1}, "y": {1}, "z": {1}}


def test_what_is_resumed_where_ways_meet_is_refreshed_with_the_rest_at_one_cut(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c", {"*": "ON CHANGE"}, d={"diamond_consistency": "none"})
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    catalog.pause([full("c"), full("d")])
    lake_.base("s.a")
    once(catalog, worker, ahead=5)
    assert {name: of["a"] for name, of in roots(lake_, catalog).items()} == {"b": {1}, "c": {0}, "d": {0}}
    catalog.alter_stream_table(full("d"), options={})  # from now on these three are a group
    catalog.unpause([full("d")])
    lake_.base("s.a")
    assert once(catalog, worker, ahead=60).refreshed == 0  # c holds it up: nobody sees b beside an older c
    assert roots(lake_, catalog)["d"] == {"a": {0}}
    catalog.unpause([full("c")])
    assert once(catalog, worker, ahead=60).refreshed == 1
    assert worker.ran[-1] == ("b", "c", "d")
    assert {name: of["a"] for name, of in roots(lake_, catalog).items()} == {"b": {2}, "c": {2}, "d": {2}}


def test_without_consistency_a_failure_blocks_only_its_table(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c", d={"diamond_consistency": "none"})
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a")
    worker.fails = failing("c")
    once(catalog, worker, ahead=2)
    assert roots(lake_, catalog)["b"] == {"a": {1}}
    once(catalog, worker, ahead=4)
    assert roots(lake_, catalog)["d"] == {"a": {0, 1}}  # a mixture, as was wished


def test_what_was_never_loaded_is_waited_for_by_all(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c; e: d", d={"diamond_consistency": "none"})
    worker = PublishingWorker(lake_, catalog, fails=failing("b", times=1))
    events, told = Events(), []
    events.subscribe(told.append)
    assert once(catalog, worker, events).failed == 1
    assert worker.ran == [("c",)]
    planned = {p.tables: p.why for p in scheduler(catalog, worker, ahead=-30).plan()}
    assert planned[("s.e",)] == "s.b is retrying"
    with Running(catalog, worker, events, ahead=30):
        until(lambda: ("e",) in worker.ran)
    assert not [e for e in told if isinstance(e, Suspended)]


def test_what_another_has_refreshed_or_a_user_paused_leaves_the_line(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: c")
    begun, go_on = threading.Event(), threading.Event()

    def wait(_name):
        begun.set()
        assert go_on.wait(60)

    stop, done = threading.Event(), []
    own = scheduler(catalog, PublishingWorker(lake_, catalog, fails=wait), slots=1)
    thread = threading.Thread(target=lambda: done.append(own.run(stop)), daemon=True)
    thread.start()
    assert begun.wait(60)  # of c, behind which is the longest way
    other = PublishingWorker(lake_, catalog)
    other.refresh([full("b")], other.heads())
    until(lambda: own._dispatch.waiting == 1)
    catalog.pause([full("d")])
    until(lambda: own._dispatch.waiting == 0)
    go_on.set()
    until(lambda: full("c") in catalog.frontiers())
    stop.set()
    thread.join(60)
    assert done[0].refreshed == 1
    assert full("d") not in catalog.frontiers()


def test_what_nobody_loads_is_named(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; d: c", {"b": "MANUAL"})
    worker = PublishingWorker(lake_, catalog)
    (planned,) = scheduler(catalog, worker).plan()
    assert (planned.tables, planned.waits, planned.why) == (("s.d",), True, "s.b is not loaded yet")
    rules_ = rules()
    state = read_scheduler_state(catalog, worker.heads(), rules_.defaults, rules_.default_schedule)
    assert {u.table: (h.table.table, h.reason) for u, h in holds(state, NOW).items()} == {
        "c": ("b", "not loaded yet"),
        "d": ("b", "not loaded yet"),
    }
    assert once(catalog, worker).refreshed == 0
    assert worker.ran == []


@pytest.mark.parametrize(
    ("target", "ahead", "order"),
    [("50 seconds", 30, "z"), ("50 seconds", 60, "z b c"), ("10 seconds", 60, "b c z")],
)
def test_what_is_late_goes_before_what_has_a_longer_way(lake_, catalog, target, ahead, order):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; z: a", {"c": target, "z": "10 seconds"})
    worker = PublishingWorker(lake_, catalog, seconds=lambda name: 0.0 if name.table == "z" else 1.0)
    once(catalog, worker, slots=1)
    lake_.base("s.a")
    plan = scheduler(catalog, worker, ahead=ahead).plan()
    assert [p.tables for p in plan] == [(f"s.{name}",) for name in order.split()]


@pytest.mark.parametrize(("policy", "ran"), [("fastest", 1), ("slowest", 0)])
def test_a_group_is_due_when_any_or_when_all_are(lake_, catalog, policy, ran):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c", {"b": "1 hour", "d": "ON CHANGE"}, d={"diamond_schedule_policy": policy})
    worker = PublishingWorker(lake_, catalog)
    assert once(catalog, worker).refreshed == 1
    lake_.base("s.a")
    assert once(catalog, worker, ahead=2).refreshed == ran


@pytest.mark.parametrize("late", ["".join(some) for n in range(4) for some in itertools.combinations("bcd", n)])
@pytest.mark.parametrize("policy", ["fastest", "slowest", "none"])
def test_what_is_due_of_a_diamond_under_every_policy(lake_, catalog, policy, late):
    lake_.base("s.a")
    consistency = {"diamond_consistency": "none"} if policy == "none" else {"diamond_schedule_policy": policy}
    schedules = {name: "10 seconds" if name in late else "1 hour" for name in "bcd"}
    define(catalog, "b: a; c: a; d: b c", schedules, d=consistency)
    worker = PublishingWorker(lake_, catalog)
    once(catalog, worker)
    lake_.base("s.a")
    due = {name for p in scheduler(catalog, worker, ahead=20).plan() for name in p.tables if not p.waits}
    group = set("bcd") if (late if policy == "fastest" else len(late) == 3) else set()
    alone = set(late) - ({"d"} if late == "d" else set())  # of d alone nothing would come: b and c have not moved
    assert due == {f"s.{name}" for name in (alone if policy == "none" else group)}


@pytest.mark.parametrize(
    ("project", "specs", "slowest"),
    [
        ("fastest", {}, False),
        ("slowest", {}, True),
        ("fastest", {"d": "slowest"}, True),
        ("slowest", {"d": "fastest"}, True),  # e says nothing
        ("slowest", {"d": "fastest", "e": "fastest"}, False),
        ("fastest", {"d": "fastest", "e": "slowest"}, True),
        ("fastest", {"b": "slowest"}, False),  # no ways meet at b: it has no say
    ],
)
def test_the_slowest_wish_of_where_ways_meet_wins(lake_, catalog, project, specs, slowest):
    define(catalog, "b: a; c: a; d: b c; e: b c", **{n: {"diamond_schedule_policy": w} for n, w in specs.items()})
    cut = grouping({t.name: t for t in catalog.stream_tables()}, Defaults(policy=Policy(project)))
    (unit,) = cut.units.members
    assert (cut.policy(unit) is Policy.SLOWEST) == slowest


@pytest.mark.parametrize(
    ("project", "spec", "together"),
    [
        ("atomic", None, True),
        ("none", None, False),
        ("aligned", None, False),
        ("none", "atomic", True),
        ("atomic", "none", False),
        ("aligned", "atomic", True),
    ],
)
def test_what_the_project_wants_holds_where_a_table_says_nothing(catalog, project, spec, together):
    define(catalog, "b: a; c: a; d: b c", d={"diamond_consistency": spec} if spec else {})
    cut = grouping({t.name: t for t in catalog.stream_tables()}, Defaults(Consistency(project)))
    assert (len(cut.members(full("d"))) == 3) == together


def test_a_wish_where_no_consistency_is_wanted_is_none(lake_, catalog):
    spec = {"diamond_schedule_policy": "slowest", "diamond_consistency": "none"}
    define(catalog, "b: a; c: a; d: b c; e: b c", d=spec)
    cut = grouping({t.name: t for t in catalog.stream_tables()}, Defaults())
    assert cut.members(full("e")) == (full("b"), full("c"), full("e"))
    assert cut.policy(full("e")) is Policy.FASTEST


def test_what_one_on_another_host_held_when_it_died_is_taken_over(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b")
    lake_.iceberg.commit(full("b"), lake_.metadata(full("b"))[0])  # written, never published
    catalog.acquire([resource_of(full("b"))], "elsewhere:1:abcd", dt.timedelta(seconds=1), is_dead=owner_is_dead)
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker):
        until(lambda: len(worker.ran) == 2)
    assert roots(lake_, catalog)["c"] == {"a": {0}}
    assert catalog.dirty_staging() == ()
    assert dt.timedelta(seconds=30) >= max(held_leases.TTL, membership.TTL)  # how long it is with real clocks


def test_what_takes_too_long_is_cancelled(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a", b={"timeout": "1 second"})
    worker = PublishingWorker(lake_, catalog, seconds=lambda _: 30)
    assert once(catalog, worker).failed == 1
    assert catalog.scheduling_states()[full("b")].error_code == "REFRESH_TIMEOUT"


def test_stopping_lets_what_runs_end_and_starts_nothing(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b")
    begun, free = threading.Event(), threading.Event()
    worker = PublishingWorker(lake_, catalog, fails=lambda _: (begun.set(), free.wait(180)))
    with Running(catalog, worker) as running:
        assert begun.wait(180)
        running.stop.set()
        free.set()
    assert worker.ran == [("b",)]
    assert catalog.schedulers() == ()


def test_each_member_of_a_group_has_its_own_time(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c", b={"timeout": "1 second"}, d={"timeout": "1 second"})
    worker = PublishingWorker(lake_, catalog, seconds=lambda name: 2.0 if name == full("c") else 0.0)
    assert once(catalog, worker).refreshed == 1  # c may take longer than what is read with it, or reads it
    lake_.base("s.a")
    worker.seconds = lambda name: 30.0 if name == full("d") else 0.0
    assert once(catalog, worker, ahead=5).failed == 1
    assert {catalog.scheduling_states()[full(name)].error_code for name in "bcd"} == {"REFRESH_TIMEOUT"}


def test_two_groups_share_a_quota_by_any_of_their_members(lake_, catalog):
    lake_.base("s.a")
    finance, begun = {"pool": "finance"}, []
    define(catalog, "b: a; c: a; d: b c; f: a; g: a; h: f g", b=finance, g=finance)

    def seconds(name):
        if name not in (full("b"), full("g")):
            return 0.0
        begun.append(time.monotonic())
        return 0.5

    assert (
        once(catalog, PublishingWorker(lake_, catalog, seconds=seconds), slots=8, quotas={"finance": 1}).refreshed == 2
    )
    assert begun[1] - begun[0] >= 0.5  # one after the other, though the groups' last members are in no pool


def test_what_outlasts_the_grace_time_is_cancelled(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a")
    begun = threading.Event()
    worker = PublishingWorker(lake_, catalog, seconds=lambda _: 30, fails=lambda _: begun.set())
    with Running(catalog, worker, grace=0.1) as running:
        assert begun.wait(180)
        running.stop.set()
    assert worker.ran == []


def test_draining_ends_it_from_outside(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.membership.BEAT_SECONDS", 0.0)
    events, told = Events(), []
    events.subscribe(told.append)
    with Running(catalog, PublishingWorker(lake_, catalog), events) as running:
        until(lambda: catalog.schedulers())
        catalog.drain()
        until(lambda: not running.thread.is_alive())
    assert isinstance(told[-1], SchedulerStopped)


def test_a_second_one_is_refused_and_told_of_the_first(lake_, catalog):
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker):
        until(lambda: catalog.schedulers())
        (first,) = catalog.schedulers()
        with pytest.raises(UserError, match="SCHEDULER_RUNNING") as caught:
            once(catalog, worker)
        assert first.owner in caught.value.message


def test_one_that_may_be_the_former_self_is_waited_for_until_it_is_silent_or_gives_a_sign(lake_, catalog):
    """In a restarted container, or in another one with a host name in common."""
    worker, other = PublishingWorker(lake_, catalog), f"{socket.gethostname()}/1-0123abcd:1:0123abcd:0123abcd"
    events, told = Events(), []
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    catalog.register_scheduler(other, dt.timedelta(seconds=1))
    once(catalog, worker, events, poll=0.05)
    assert [message[:25] for message in told] == ["A scheduler was registered"[:25]]
    catalog.register_scheduler(other, dt.timedelta(seconds=60))
    with ThreadPoolExecutor() as pool:
        second = pool.submit(once, catalog, worker, poll=0.05)
        time.sleep(0.3)
        assert not second.done()
        catalog.scheduler_beat(other, dt.timedelta(seconds=90))
        with pytest.raises(UserError, match="SCHEDULER_RUNNING"):
            second.result(60)
    assert [s.owner for s in catalog.schedulers()] == [other]


@pytest.fixture
def beside(catalog, monkeypatch):
    """Lets another scheduler be there, which began earlier or later."""
    monkeypatch.setattr("headrace.scheduler.membership.BEAT_SECONDS", 0.0)
    monkeypatch.setattr(type(catalog), "register_scheduler", registered)  # on PostgreSQL there may be several

    def add(owner, began):
        later = "2999-01-01T00:00:00.000000+00:00"
        with catalog._database.write() as connection:
            connection.exec_driver_sql(
                f"INSERT INTO hr_scheduler VALUES ('{owner}', '{began}', '{later}', false, NULL)"
            )

    return add


BEFORE, AFTER = "1999-01-01T00:00:00.000000+00:00", "2999-01-01T00:00:00.000000+00:00"


def test_schedulers_share_the_quota_of_a_pool(lake_, catalog, beside):
    lake_.base("s.a")
    define(catalog, "; ".join(f"t{n}: a" for n in range(4)), **{f"t{n}": {"pool": "p"} for n in range(4)})
    beside("another", AFTER)
    worker = PublishingWorker(lake_, catalog, seconds=lambda _: 0.1)
    assert once(catalog, worker, slots=8, quotas={"p": 2}).refreshed == 4
    assert worker.most_at_once == 1


def test_where_it_has_no_share_others_do_the_work(lake_, catalog, beside):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; x: a", b={"pool": "p"})
    beside("first", BEFORE)
    worker = PublishingWorker(lake_, catalog)
    assert once(catalog, worker, slots=4, quotas={"p": 1}).refreshed == 1
    assert worker.ran == [("x",)]
    with Running(catalog, worker, slots=4, quotas={"p": 1}):
        until(lambda: len(catalog.schedulers()) == 2)
        catalog.unregister_scheduler("first")
        until(lambda: worker.ran[1:] == [("b",), ("c",)])


def test_a_scheduler_makes_room_for_another(lake_, catalog, beside):
    lake_.base("s.a")
    define(catalog, "; ".join(f"t{n}: a" for n in range(8)))
    beside("another", AFTER)
    worker = PublishingWorker(lake_, catalog, seconds=lambda _: 0.1)
    assert once(catalog, worker, slots=4).refreshed == 8
    assert worker.most_at_once == 2


def test_together_schedulers_never_run_more_than_one_alone(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.membership.BEAT_SECONDS", 0.0)
    monkeypatch.setattr(type(catalog), "register_scheduler", registered)
    lake_.base("s.a")
    define(catalog, "; ".join(f"t{n:02}: a" for n in range(12)))
    free = threading.Event()
    worker = PublishingWorker(lake_, catalog, fails=lambda _: free.wait(60))

    def claims():
        return [Slots.of(s.claim).all for s in catalog.schedulers()]

    with Running(catalog, worker):
        until(lambda: worker.at_once == 4)
        with Running(catalog, worker):
            until(lambda: claims() == [4, 0])
            time.sleep(0.2)  # it looks, and finds what is due, and has no room
            assert worker.most_at_once == 4
            free.set()
            until(lambda: len(set(worker.ran)) == 12)
            until(lambda: claims() == [2, 2])
        until(lambda: claims() == [4])
    assert worker.most_at_once == 4


def test_one_that_was_taken_for_dead_registers_again(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.membership.BEAT_SECONDS", 0.0)
    with Running(catalog, PublishingWorker(lake_, catalog)):
        until(lambda: catalog.schedulers())
        (known,) = catalog.schedulers()
        catalog.unregister_scheduler(known.owner)
        until(lambda: [s.owner for s in catalog.schedulers()] == [known.owner])


def test_registering_again_outlasts_an_outage(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.membership.BEAT_SECONDS", 0.0)
    register, calls = type(catalog).register_scheduler, []

    def sometimes(self, owner, ttl, *, is_dead):
        calls.append(1)
        if len(calls) == 2:
            raise EnvironmentFault("CATALOG_UNREACHABLE", "It is gone.", retryable=True)
        register(self, owner, ttl, is_dead=is_dead)

    monkeypatch.setattr(type(catalog), "register_scheduler", sometimes)
    with Running(catalog, PublishingWorker(lake_, catalog)):
        until(lambda: catalog.schedulers())
        (known,) = catalog.schedulers()
        catalog.unregister_scheduler(known.owner)
        until(lambda: len(calls) == 3 and [s.owner for s in catalog.schedulers()] == [known.owner])


def registered(catalog, owner, ttl, *, is_dead):
    with catalog._database.write() as connection:
        scheduler_rows.register(connection, owner, dt.datetime.now(dt.UTC) + ttl, dt.datetime.now(dt.UTC))


def test_what_is_stored_is_maintained_when_nothing_else_is_to_be_done(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a")
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker, maintenance=3600.0):
        until(lambda: worker.maintained == ["b", "c"])
    assert len(worker.ran) == 2
    with Running(catalog, worker, maintenance=3600.0, ahead=1800):  # the last time is remembered
        until(lambda: len(catalog.schedulers()) == 1)
        time.sleep(0.2)
    assert worker.maintained == ["b", "c"]
    with Running(catalog, worker, maintenance=3600.0, ahead=7200):
        until(lambda: worker.maintained == ["b", "c", "b", "c"])


def test_maintenance_forgets_old_events(lake_, catalog):
    define(catalog, "b: a")
    with Running(catalog, PublishingWorker(lake_, catalog), maintenance=0.1):
        until(lambda: catalog.events())
        catalog.write_events([(NOW - dt.timedelta(days=8), "notice", {"message": "old"})])
        until(lambda: "old" not in {event.fields.get("message") for event in catalog.events()}, seconds=20)


def test_maintenance_goes_on_after_one_who_died_at_it(lake_, catalog):
    define(catalog, "b: a; c: a")
    catalog.acquire([RESOURCE], "elsewhere:1:abcd", dt.timedelta(seconds=2))  # and never given back
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker, maintenance=0.1):
        time.sleep(0.5)
        assert worker.maintained == []
        until(lambda: worker.maintained[:2] == ["b", "c"], seconds=20)


def test_maintenance_makes_way(lake_, catalog):
    define(catalog, "b: a; c: a; d: a")
    worker, quiet = PublishingWorker(lake_, catalog), [True]
    idle = Idle(
        catalog,
        worker,
        Events(),
        ClockAhead(0),
        3600.0,
        lambda: quiet[0] and len(worker.maintained) != 1,
        threading.Event(),
        LostSpark(Events()),
    )
    idle.consider()
    idle.end(Patience(Events(), 180))
    assert worker.maintained == ["b"]
    worker.maintained.append("something else was done")
    idle._ask_after = 0.0
    idle.consider()
    idle.end(Patience(Events(), 180))
    assert worker.maintained[2:] == ["c", "d"]  # goes on where it was
    quiet[0] = False
    idle._ask_after = 0.0
    idle.consider()
    idle.end(Patience(Events(), 180))
    assert len(worker.maintained) == 4


def maintaining(catalog, worker, ahead=0.0, events=None):
    """One pass of another process, as far as it comes."""
    idle = Idle(
        catalog,
        worker,
        events or Events(),
        ClockAhead(ahead),
        3600.0,
        lambda: True,
        threading.Event(),
        LostSpark(Events()),
    )
    idle.consider()
    idle.end(Patience(Events(), 180))
    return idle


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_maintenance_that_is_cut_off_goes_on_behind_the_table_that_cut_it_off(lake_, catalog):
    define(catalog, "b: a; c: a; d: a")
    worker = PublishingWorker(lake_, catalog)
    worker.maintained = Deadly("c")
    maintaining(catalog, worker)
    assert worker.maintained == ["b", "c"]  # and was killed within c
    maintaining(catalog, worker)
    assert worker.maintained[2:] == ["d"]
    maintaining(catalog, worker)
    assert len(worker.maintained) == 3, "all had their turn"
    for _ in range(2):
        maintaining(catalog, worker, ahead=4000)
    assert worker.maintained[3:] == ["b", "c", "d"]
    maintaining(catalog, worker, ahead=4100)
    assert len(worker.maintained) == 6
    drop_stream_table(catalog, full("d"))
    maintaining(catalog, PublishingWorker(lake_, catalog), ahead=9000)
    assert {name and name.table for name in catalog.maintenance_turns()} == {None, "b", "c"}


class Deadly(list):
    """What a worker has maintained, which ends when it comes to a table."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def append(self, name):
        super().append(name)
        if name == self.name:
            raise SystemExit


def test_maintenance_that_fails_at_once_is_tried_again_soon_and_told_once(lake_, catalog):
    define(catalog, "b: a")
    events, told = Events(), []
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    worker = PublishingWorker(lake_, catalog)
    fault = EnvironmentFault("SPARK_UNAVAILABLE", "Spark cannot be started.")

    def fails(wanted, waits):
        raise fault

    maintain, worker.maintain = worker.maintain, fails
    idle = maintaining(catalog, worker, events=events)
    assert 0 < idle._ask_after - time.monotonic() <= 60
    idle._ask_after = 0.0
    idle.consider()
    idle.end(Patience(Events(), 180))
    assert 60 < idle._ask_after - time.monotonic() <= 120
    assert ["SPARK_UNAVAILABLE" in message for message in told] == [True]
    worker.maintain = maintain
    idle._ask_after = 0.0
    idle.consider()
    idle.end(Patience(Events(), 180))
    assert worker.maintained == ["b"]


def test_maintenance_that_is_long_overdue_is_done_beside_refreshes(lake_, catalog):
    """Something always runs: it begins after twice the time, and waits for what is being refreshed."""
    lake_.base("s.a")
    define(catalog, "b: a; c: a")
    free = threading.Event()
    worker = PublishingWorker(lake_, catalog, fails=lambda n: n.table == "b" and free.wait(180))
    waited = []
    maintain = worker.maintain
    worker.maintain = lambda wanted, waits: maintain(
        lambda name: wanted(name) and (waited.append(waits()) or True), waits
    )
    try:
        with Running(catalog, worker, maintenance=2.0):
            began = time.monotonic()
            until(lambda: worker.maintained == ["b", "c"])
            assert time.monotonic() - began > 1.5
            free.set()
    finally:
        free.set()
    assert waited == [True, True]


def test_maintenance_knows_from_former_schedulers_that_it_is_overdue(lake_, catalog):
    define(catalog, "b: a; c: a")
    catalog.end_maintenance(NOW, NOW)
    for ahead, done in ((3600 * 1.5, []), (3600 * 2.5, ["b", "c"])):
        worker = PublishingWorker(lake_, catalog)
        idle = Idle(
            catalog, worker, Events(), ClockAhead(ahead), 3600.0, lambda: False, threading.Event(), LostSpark(Events())
        )
        idle.consider()
        idle.end(Patience(Events(), 180))
        assert worker.maintained == done


def test_a_table_that_is_dropped_while_it_waits_is_forgotten(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; x: a")
    begun, free = threading.Event(), threading.Event()
    worker = PublishingWorker(lake_, catalog, fails=lambda n: n.table == "b" and (begun.set(), free.wait(180)))
    with Running(catalog, worker):
        assert begun.wait(180)
        drop_stream_table(catalog, full("c"))
        lake_.base("s.a")
        until(lambda: worker.ran.count(("x",)) == 2)  # it has looked around since
        free.set()
        until(lambda: ("b",) in worker.ran)
    assert ("c",) not in worker.ran


def test_a_group_that_grows_while_it_waits_is_published_whole(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c")
    one = scheduler(catalog, PublishingWorker(lake_, catalog))
    one._consider(True)
    define(catalog, "e: b d")
    one._look_after = 0.0
    one._consider(True)
    assert {one._dispatch.unit_of(task) for task in one._dispatch.start()} == {full("e")}
    assert set(one._cuts) == {full("e")}


def test_a_source_that_cannot_be_read_holds_nothing_else_up(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.loop.UNREAD_PAUSE", dt.timedelta())
    lake_.base("s.a", "s.bad")
    define(catalog, "b: a; x: bad")
    once(catalog, PublishingWorker(lake_, catalog))
    lake_.base("s.a", "s.bad")
    file = Path(lake_.iceberg.pointer(full("bad")))
    text = file.read_text(encoding="utf-8")
    file.unlink()
    events, told = Events(), []
    events.subscribe(told.append)
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker, events):
        until(lambda: worker.ran == [("b",)])
        lake_.base("s.a")
        until(lambda: worker.ran == 2 * [("b",)])
        file.write_text(text, encoding="utf-8")
        until(lambda: ("x",) in worker.ran)
    assert ["METADATA_UNREADABLE" in e.message for e in told if isinstance(e, Notice)] == [True]


def test_a_lost_spark_is_no_fault_of_tables(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.lost_spark.PAUSE_SECONDS", 0.0)
    lake_.base("s.a")
    define(catalog, "b: a; c: a")
    worker = PublishingWorker(lake_, catalog, fails=failing("b", times=8, code="SPARK_LOST"))
    events, told = Events(), []
    events.subscribe(told.append)
    with Running(catalog, worker, events):
        until(lambda: ("b",) in worker.ran)
    assert not any(
        scheduling.failures or scheduling.suspended_at for scheduling in catalog.scheduling_states().values()
    )
    assert any(isinstance(e, Notice) and "SPARK_LOST" in e.message for e in told)
    assert once(catalog, PublishingWorker(lake_, catalog)).failed == 0


def test_a_spark_that_does_not_come_back_ends_the_run(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.lost_spark.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("headrace.scheduler.lost_spark.PATIENCE_SECONDS", 0.0)
    lake_.base("s.a")
    define(catalog, "b: a")
    worker = PublishingWorker(lake_, catalog, fails=failing("b", code="SPARK_LOST"))
    with pytest.raises(HeadraceError, match="SPARK_LOST"):
        scheduler(catalog, worker).run(threading.Event())
    assert catalog.schedulers() == ()
    assert catalog.scheduling_states() == {}


def test_a_spark_of_ours_is_started_again_and_what_ran_is_tried_again(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; x: a")
    worker = PublishingWorker(lake_, catalog, fails=failing("b", times=1, code="SPARK_LOST"))
    worker.restartable = True
    events, told = Events(), []
    events.subscribe(told.append)
    with Running(catalog, worker, events):
        until(lambda: {("b",), ("c",), ("x",)} <= set(worker.ran))
    assert worker.restarts == 1
    assert [e.table for e in told if isinstance(e, RetryPlanned)] == ["s.b"]
    assert any(isinstance(e, Notice) and "started again" in e.message for e in told)


def test_a_table_that_kills_spark_again_and_again_is_suspended(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.policy.backoff.FIRST", 0.01)
    lake_.base("s.a")
    define(catalog, "b: a; x: a")
    worker = PublishingWorker(lake_, catalog, fails=failing("b", code="SPARK_LOST"))
    worker.restartable = True
    with Running(catalog, worker):
        until(
            lambda: catalog.scheduling_states().get(full("b")) and catalog.scheduling_states()[full("b")].suspended_at
        )
        until(lambda: ("x",) in worker.ran)
        until(lambda: worker.restarts == 5)
    assert worker.restarts == 5
    assert catalog.scheduling_states()[full("b")].error_code == "SPARK_LOST"


@pytest.mark.parametrize("code", ["CATALOG_UNAVAILABLE", "STORE_UNAVAILABLE"])
def test_an_outage_suspends_nothing(lake_, catalog, monkeypatch, code):
    monkeypatch.setattr("headrace.scheduler.policy.backoff.FIRST", 0.01)
    lake_.base("s.a")
    define(catalog, "b: a")
    worker = PublishingWorker(lake_, catalog, fails=failing("b", times=7, code=code))
    with Running(catalog, worker):
        until(lambda: ("b",) in worker.ran)
    assert catalog.scheduling_states()[full("b")].failures == 0


def test_a_spark_that_does_not_start_ends_the_run(lake_, catalog, monkeypatch):
    monkeypatch.setattr("headrace.scheduler.lost_spark.PAUSE_SECONDS", 0.0)
    lake_.base("s.a")
    define(catalog, "b: a")
    worker = PublishingWorker(lake_, catalog, fails=failing("b", code="SPARK_LOST"))
    tries = []

    def broken():
        tries.append(1)
        raise EnvironmentFault("SPARK_UNAVAILABLE", "Spark did not start.")

    monkeypatch.setattr(worker, "restart", broken)
    with pytest.raises(HeadraceError, match="SPARK_UNAVAILABLE"):
        scheduler(catalog, worker).run(threading.Event())
    assert len(tries) == 5


def test_whatever_keeps_spark_from_starting_ends_the_waiting(monkeypatch):
    monkeypatch.setattr("headrace.scheduler.lost_spark.PAUSE_SECONDS", 0.0)
    spark = LostSpark(Events(), lambda: 1 // 0)
    spark.lost(EnvironmentFault("SPARK_LOST", "It is gone.", retryable=True))
    until(lambda: not spark.away)
    assert spark.gone is not None
    assert (spark.gone.code, "ZeroDivisionError" in spark.gone.detail) == ("SPARK_UNAVAILABLE", True)


def test_a_lost_spark_is_ended_before_anything_is_asked_of_it():
    order = []
    changes = SimpleNamespace(clear=lambda: order.append("forgotten"))
    session = SimpleNamespace(restartable=True, restart=lambda: order.append("restarted"))
    assert EngineWorker(SimpleNamespace(refresher=SimpleNamespace(changes=changes)), session).restart()
    assert order == ["restarted", "forgotten"]


def test_spark_is_not_restarted_under_what_still_uses_it():
    free, inside, order = threading.Event(), threading.Event(), []
    spark = LostSpark(Events(), lambda: not order.append("restarted"))

    def use():
        with spark.using():
            inside.set()
            free.wait(180)
            order.append("left")

    user = threading.Thread(target=use)
    user.start()
    inside.wait(180)
    spark.lost(EnvironmentFault("SPARK_LOST", "It is gone.", retryable=True))
    assert spark.away
    free.set()
    with spark.using():  # waits until it is back
        assert order == ["left", "restarted"]
    user.join(180)


def test_who_cannot_wait_does_without_a_spark_that_is_being_started():
    free = threading.Event()
    spark = LostSpark(Events(), lambda: free.wait(180))
    with spark.using(wait=False) as there:
        assert there
        spark.lost(EnvironmentFault("SPARK_LOST", "It is gone.", retryable=True))
        with spark.using(wait=False) as here:
            assert not here
    free.set()
    until(lambda: not spark.away)
    with spark.using(wait=False) as there:
        assert there


def test_what_cannot_be_cancelled_ends_by_itself(lake_, catalog, monkeypatch):
    lake_.base("s.a")
    define(catalog, "b: a", b={"timeout": "1 second"})
    worker, tried = PublishingWorker(lake_, catalog, seconds=lambda _: 3.0), []

    def unreachable(_):
        tried.append(1)
        raise EnvironmentFault("SPARK_LOST", "It is gone.", retryable=True)

    monkeypatch.setattr(worker, "cancel", unreachable)
    assert once(catalog, worker).refreshed == 1
    assert tried


def test_nothing_is_cancelled_before_spark_runs(tmp_path):
    with Headrace(ready_project(tmp_path / "shop")) as hr:
        EngineWorker(hr._engine().creator, hr._lazy).cancel([full("b")])
        assert not hr._lazy.started


def test_a_catalog_that_is_gone_is_an_error_when_it_is_asked_once(lake_, catalog, monkeypatch):
    def gone(*_):
        raise EnvironmentFault("CATALOG_UNREACHABLE", "It is gone.", retryable=True)

    monkeypatch.setattr(type(catalog), "scheduling_states", gone)
    with pytest.raises(EnvironmentFault, match="CATALOG_UNREACHABLE"):
        once(catalog, PublishingWorker(lake_, catalog))


def test_a_catalog_that_does_not_answer_is_asked_again(lake_, catalog, monkeypatch):
    lake_.base("s.a")
    define(catalog, "b: a")
    answers, left = type(catalog).scheduling_states, [3]

    def sometimes(self):
        if left[0]:
            left[0] -= 1
            raise EnvironmentFault("CATALOG_UNREACHABLE", "It is gone.", retryable=True)
        return answers(self)

    monkeypatch.setattr(type(catalog), "scheduling_states", sometimes)
    worker = PublishingWorker(lake_, catalog)
    with Running(catalog, worker):
        until(lambda: worker.ran == [("b",)])


def test_a_plan_changes_nothing(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; d: b c; e: d; p: a")
    catalog.pause([full("p")])
    worker = PublishingWorker(lake_, catalog)
    planned = scheduler(catalog, worker).plan()
    assert [(p.tables, p.waits) for p in planned] == [
        (("s.b", "s.c", "s.d"), False),
        (("s.e",), False),
        (("s.p",), True),
    ]
    assert planned[0].why == "for s.e"
    assert planned[2].why == "s.p is paused"
    assert worker.ran == []


def test_holds_lags_and_targets(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b; d: b; e: c", {"c": "1 hour", "d": "10 seconds"})
    once(catalog, PublishingWorker(lake_, catalog))
    lake_.base("s.a")
    catalog.pause([full("c")])
    rules_ = rules()
    state = read_scheduler_state(
        catalog, PublishingWorker(lake_, catalog).heads(), rules_.defaults, rules_.default_schedule
    )
    assert {n.table: t for n, t in targets(state).items()} == {"b": 10, "c": 3600, "d": 10}
    assert {n.table: t for n, t in patience(state).items()} == {"b": 10, "c": 3600, "d": 10, "e": 1}
    now = dt.datetime.now(dt.UTC)
    assert {u.table: (h.table.table, h.reason) for u, h in holds(state, now).items()} == {
        "c": ("c", "paused"),
        "e": ("c", "paused"),
    }
    lags = {n.table: t.standing.behind_since for n, t in state.tables.items()}
    assert len(set(lags.values())) == 1  # all of them lack the same change of a
    assert lags["e"] is not None


def up_to_date(lake_, catalog, tables, schedules, **changes):
    """The worker that has refreshed all there is."""
    lake_.base("s.a")
    define(catalog, tables, schedules)
    worker = PublishingWorker(lake_, catalog, **changes)
    once(catalog, worker)
    return worker


@pytest.mark.parametrize(("tier", "target"), [("hot", 3600), ("warm", 7200), ("cold", 36000), ("frozen", None)])
def test_a_tier_stretches_when_a_table_is_due_and_late(lake_, catalog, tier, target):
    worker = up_to_date(lake_, catalog, "b: a; c: b", {"c": "1 hour"})
    catalog.alter_stream_table(full("c"), options={"tier": tier})
    lake_.base("s.a")
    rules_, heads = rules(), worker.heads()
    state = read_scheduler_state(catalog, heads, rules_.defaults, rules_.default_schedule)
    assert targets(state) == ({} if target is None else dict.fromkeys((full("b"), full("c")), target))
    for seconds in (600, 10_000, 100_000):
        events, told = Events(), []
        events.subscribe(told.append)
        late = scheduler(catalog, worker, events, ahead=seconds)
        due = {name for p in late.plan() for name in p.tables}
        assert due == ({"s.b", "s.c"} if target and seconds > target else set()), seconds
        late._consider(True)
        exceeded = {e.table for e in told if isinstance(e, LagExceeded)}
        assert exceeded == ({"s.b", "s.c"} if target and seconds > target else set()), seconds


def test_what_is_refreshed_on_change_keeps_no_target(lake_, catalog):
    worker = up_to_date(lake_, catalog, "b: a; c: b", {"c": "ON CHANGE EVERY 10 seconds"})
    lake_.base("s.a")
    events, told = Events(), []
    events.subscribe(told.append)
    scheduler(catalog, worker, events, ahead=600)._consider(True)
    assert not [e for e in told if isinstance(e, LagExceeded)]


def test_a_lag_beyond_the_target_is_told_once(lake_, catalog):
    worker = up_to_date(lake_, catalog, "b: a", {"b": "10 seconds"})
    lake_.base("s.a")
    events, told = Events(), []
    events.subscribe(told.append)
    worker.fails = failing("b", times=1)
    late = scheduler(catalog, worker, events, ahead=30)
    for _ in range(2):
        late._seen = None
        late._consider(True)
    assert [(e.table, e.target, e.lag > 10) for e in told if isinstance(e, LagExceeded)] == [("s.b", 10, True)]


@pytest.mark.parametrize("paused", [False, True])
def test_a_lag_beyond_the_target_is_told_while_nothing_moves(lake_, catalog, paused):
    worker = up_to_date(lake_, catalog, "b: a", {"b": "10 seconds"}, seconds=lambda _: 1.0)
    begun = dt.datetime.now(dt.UTC)
    lake_.base("s.a")
    if paused:
        catalog.pause([full("b")])
    events, told = Events(), []
    events.subscribe(lambda event: told.append((second, event.table)) if isinstance(event, LagExceeded) else None)
    one = scheduler(catalog, worker, events)
    for second in (0, 9, 9.5, 15, 15.5):  # from the ninth on it waits in line, where it may
        moment = begun + dt.timedelta(seconds=second)
        one.clock, one._look_after = SimpleNamespace(now=lambda moment=moment: moment), 0.0
        one._consider(True)
    assert one._dispatch.idle == paused
    assert told == [(15, "s.b")]


def test_what_happened_is_kept(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a")
    once(catalog, PublishingWorker(lake_, catalog, fails=failing("b")))
    assert [e.kind for e in catalog.events()] == ["scheduler_started", "retry_planned", "scheduler_stopped"]


def test_an_idle_look_at_many_tables_asks_no_more_of_the_catalog_than_one_at_few(lake_, catalog):
    lake_.base("s.a")

    def asked(names):
        define(catalog, "; ".join(f"{name}: a" for name in names))
        catalog.pause([full(name) for name in names])
        one, told = scheduler(catalog, PublishingWorker(lake_, catalog)), []
        one._consider(True)
        listen = catalog._database.engine, "before_cursor_execute", lambda *given: told.append(given[2])
        one._look_after = 0.0
        sa.event.listen(*listen)
        one._consider(True)
        sa.event.remove(*listen)
        return len(told)

    few = asked([f"t{n:03}" for n in range(5)])
    assert 0 < asked([f"t{n:03}" for n in range(5, 200)]) == few


def test_who_is_nudged_looks_although_nothing_seems_to_have_moved(lake_, catalog, monkeypatch):
    lake_.base("s.a")
    define(catalog, "b: a")
    catalog.pause([full("b")])
    one, looks = scheduler(catalog, PublishingWorker(lake_, catalog)), []
    look = one._look
    monkeypatch.setattr(one, "_look", lambda: looks.append(nudged) or look())
    for nudged in (False, False, False, True):
        one._look_after, one._nudged = 0.0, nudged
        one._consider(True)
    assert looks == [False, False, True]


@pytest.fixture
def refused(catalog, monkeypatch):
    """Set, the catalog can be read, and not written."""
    write, refused = type(catalog._database).write, threading.Event()

    @contextmanager
    def refusing(database, **options):
        with database.faults():
            if refused.is_set():
                said = sqlite3.OperationalError("attempt to write a readonly database")
                raise sa.exc.OperationalError("UPDATE", {}, said)
        with write(database, **options) as connection:
            yield connection

    monkeypatch.setattr(type(catalog._database), "write", refusing)
    monkeypatch.setattr("headrace.scheduler.outage.FIRST_SECONDS", 0.05)
    return refused


def notices(events):
    told = []
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    return told


def test_a_catalog_that_can_only_be_read_is_told_once_and_nothing_is_begun(lake_, catalog, monkeypatch, refused):
    lake_.base("s.a")
    define(catalog, "b: a")
    events, begun = Events(), []
    told = notices(events)

    def fails(name):
        if len(begun) == 1:
            refused.set()
            raise EnvironmentFault("CATALOG_READ_ONLY", "It cannot be written.", retryable=True)

    worker = PublishingWorker(lake_, catalog, fails=fails)
    begin = worker.begin
    monkeypatch.setattr(worker, "begin", lambda *args: begun.append(1) or begin(*args))
    with Running(catalog, worker, events):
        until(lambda: told, seconds=20)
        time.sleep(1)
        assert (len(begun), ["does not answer" in said for said in told]) == (1, [True])
        refused.clear()
        until(lambda: worker.ran == [("b",)], seconds=20)
    assert told[1:] == ["The catalog answers again."]


def test_a_run_goes_on_when_what_is_new_cannot_be_noted(lake_, catalog, refused):
    lake_.base("s.a")
    define(catalog, "b: a")
    events, worker = Events(), PublishingWorker(lake_, catalog)
    told = notices(events)
    with Running(catalog, worker, events):
        until(lambda: worker.ran == [("b",)], seconds=20)
        refused.set()
        lake_.base("s.a")
        until(lambda: told, seconds=20)
        time.sleep(0.5)
        refused.clear()
        until(lambda: len(worker.ran) == 2, seconds=20)
    assert ["answer" in said for said in told] == [True, True]
