"""Units that are refreshed by hand, in threads of their own; no Spark computes."""

import signal
import threading
import time
from functools import partial
from itertools import pairwise

import pytest
from kit.pipelines import PublishedGroup, PublishingWorker, define, failing, full, roots

from headrace.api.schedules.refresh_units import UnitsRefresh
from headrace.catalog import resource_of
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.refresh.held_leases import holding_leases
from headrace.scheduler.policy.unit_tasks import unit_tasks
from headrace.spark.interrupts import interrupt_thread

PIPELINE = "b: a; c: a; p: a; d: b c p; e: d z; w: y; x: m; y: x; z: n"
"""The diamond b, c, p, d; x, y and w in a row; z; and e over d and z."""


@pytest.fixture
def worker(lake_, catalog):
    lake_.base("s.a", "s.m", "s.n")
    define(catalog, PIPELINE, b={"pool": "narrow"}, c={"pool": "narrow"}, z={"pool": "narrow"})
    return PublishingWorker(lake_, catalog)


def refresh(worker, wanted, slots=4, **more):
    cut = grouping({t.name: t for t in worker.catalog.stream_tables()}, Defaults())
    heads, members = worker.heads(), cut.units.members
    units = cut.units.dag.order({cut.units.unit_of[full(name)] for name in wanted})
    begin = {unit: partial(PublishedGroup, worker, members[unit], heads) for unit in units}
    cancel = lambda names: worker.cancel(names)  # noqa: E731
    options = {"slots": slots, "quotas": {"narrow": 1}, "cancel": cancel, **more}
    return UnitsRefresh(begin, cut.units.dag, unit_tasks(cut), **options).run()


def names(results):
    return "".join(result.name.removeprefix("s.") for result in results)


def are_free(catalog, tables):
    with holding_leases(catalog, [resource_of(full(name)) for name in tables]):
        return True


def slow(*tables, seconds=60.0):
    return lambda name: seconds if name.table in tables else 0.0


@pytest.mark.parametrize(("slots", "at_once"), [(4, 2), (1, 1)])
def test_members_of_a_group_run_side_by_side(lake_, catalog, worker, slots, at_once):
    worker.seconds = slow(*"bcp", seconds=0.2)
    assert names(refresh(worker, "d", slots).results) == "bcpd"
    assert worker.most_at_once == at_once  # p beside b or c, which share a pool of one
    assert worker.ran == [("b", "c", "p", "d")]
    assert len({tuple(sorted(r["a"])) for r in roots(lake_, catalog).values()}) == 1


def test_tables_that_do_not_read_each_other_run_side_by_side(worker):
    both = threading.Barrier(2, timeout=30)
    worker.fails = lambda _: both.wait() and None  # one alone would wait in vain
    assert names(refresh(worker, "xz").results) == "xz"


def test_groups_and_tables_share_slots_and_pools(lake_, catalog, worker):
    begun, first, three = {}, iter(range(3)), threading.Barrier(3, timeout=30)

    def note(name):
        begun[name.table] = time.monotonic()
        if next(first, None) is not None:
            three.wait()  # fewer at once would wait in vain

    worker.seconds, worker.fails = lambda _: 0.1, note
    found = names(refresh(worker, "bcdepwxyz", slots=3).results)
    assert worker.most_at_once == 3
    narrow = sorted(begun[name] for name in "bcz")
    assert all(second - first >= 0.1 for first, second in pairwise(narrow))
    assert sorted(found) == sorted("bcdepwxyz")
    assert all(versions == {0} for held in roots(lake_, catalog).values() for versions in held.values())


def test_results_are_in_order_whoever_ended_first(worker):
    once = names(refresh(worker, "bcdepwxyz", slots=1).results)
    worker.lake.base("s.a", "s.m", "s.n")
    worker.ran.clear()
    worker.seconds = slow(once[0], *"bcp", seconds=0.3)
    assert names(refresh(worker, "bcdepwxyz").results) == once
    assert worker.ran[0] != (once[0],)


def test_one_at_a_time_they_run_in_order_and_in_the_callers_thread(worker):
    threads, begun = set(), []

    def note(name):
        threads.add(threading.current_thread())
        begun.append(name.table)

    worker.fails = note
    assert names(refresh(worker, "bcdepwxyz", slots=1).results) == "".join(begun)
    assert threads == {threading.current_thread()}


def test_what_reads_a_table_that_fails_is_left_alone_and_the_others_go_on(worker):
    worker.fails, worker.seconds = failing("x", "b"), slow("z", seconds=0.3)
    outcome = refresh(worker, "bcdepwxyz")
    assert names(outcome.results) == "z"
    assert {unit.table: error.message for unit, error in outcome.errors.items()} == {
        "d": "s.b was made to fail.",
        "x": "s.x was made to fail.",
    }
    assert not {("y",), ("w",), ("e",)} & set(worker.ran)


def test_errors_are_in_order_whichever_came_first(worker):
    worker.fails = failing("x", "z")
    first, second = refresh(worker, "xz").errors

    def fail_late(name):
        if name == first:
            time.sleep(0.3)
        failing("x", "z")(name)

    worker.fails = fail_late
    assert tuple(refresh(worker, "xz").errors) == (first, second)


def test_a_failure_ends_its_group_and_no_other(lake_, catalog, worker):
    worker.fails, worker.seconds = failing("p"), lambda name: {"b": 60.0, "x": 1.0}.get(name.table, 0.0)
    begin = time.monotonic()
    outcome = refresh(worker, "dx")
    assert time.monotonic() - begin < 30  # b was cancelled
    assert ([unit.table for unit in outcome.errors], names(outcome.results)) == (["d"], "x")
    assert roots(lake_, catalog).keys() == {"x"}
    assert are_free(catalog, "bcpd")


def test_a_unit_that_is_tried_again_holds_up_what_reads_it(worker):
    again, tried = [], []

    def attempt(unit, error):
        again.append((unit.table, error.code))
        cut = grouping({t.name: t for t in worker.catalog.stream_tables()}, Defaults())
        return lambda: tried.append(unit.table) or PublishedGroup(worker, cut.units.members[unit], worker.heads())

    worker.fails = failing("x", "z", times=1)
    outcome = refresh(worker, "bcdepwxyz", again=attempt)
    assert (sorted(again), sorted(tried)) == ([("x", "TEST_FAULT"), ("z", "TEST_FAULT")], ["x", "z"])
    assert (sorted(names(outcome.results)), outcome.errors) == (sorted("bcdepwxyz"), {})

    worker.lake.base("s.m")
    worker.fails = failing("x")
    outcome = refresh(worker, "xyz", again=attempt)
    assert [unit.table for unit in outcome.errors] == ["x"]  # once more, and no more
    assert (len(again), names(outcome.results)) == (3, "z")


def test_an_interrupt_ends_all_that_runs(lake_, catalog, worker):
    worker.seconds = slow("x", "z", "b")
    interrupt = threading.Timer(0.5, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        refresh(worker, "bcdepwxyz")
    assert not {"x", "z", "b", "d"} & roots(lake_, catalog).keys()
    assert are_free(catalog, "bcdepwxyz")


def test_an_interrupt_while_others_are_cancelled(catalog, worker):
    stop, calls = worker.cancel, []

    def interrupted(names):
        calls.append(names)
        if len(calls) == 1:
            raise KeyboardInterrupt
        stop(names)

    worker.fails, worker.seconds = failing("p"), slow("b", "x")
    with pytest.raises(KeyboardInterrupt):
        refresh(worker, "dx", cancel=interrupted)
    assert full("x") not in calls[0]  # p failed, which is nothing to x
    assert full("x") in calls[1]
    assert are_free(catalog, "bcpdx")


def test_an_interrupt_of_another_thread_comes_while_it_waits(catalog, worker):
    """As a server interrupts a command."""
    worker.seconds = slow("x", "z")
    ended = []

    def work():
        try:
            refresh(worker, "xz")
        except KeyboardInterrupt:
            ended.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    while worker.at_once < 2:
        time.sleep(0.01)
    interrupt_thread(thread.ident, lambda: None, gone=lambda: not thread.is_alive())
    thread.join(30)
    assert ended
    assert are_free(catalog, "xz")


def test_a_defect_ends_all_that_runs_and_is_raised(catalog, worker):
    def break_down(name):
        if name.table == "z":
            raise ZeroDivisionError

    worker.fails, worker.seconds = break_down, slow("x")
    with pytest.raises(ZeroDivisionError):
        refresh(worker, "xz")
    assert are_free(catalog, "xz")
