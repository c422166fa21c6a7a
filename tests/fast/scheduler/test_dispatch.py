"""Dispatch, simulated: no thread, no clock, thousands of units in a second."""

import heapq
import random
from itertools import pairwise

import pytest

from headrace.graph.critical import remaining, remaining_of_tasks
from headrace.graph.dag import Dag
from headrace.graph.diamonds import Wanted, meetings
from headrace.graph.units import tasks, units, units_read
from headrace.scheduler.policy.dispatch import Dispatch


def simulate(dag, seconds, slots, *, quotas=None, pools=None, fails=(), inside=None, outside=None):
    """Run everything; when each unit started and ended, and what was given up."""
    dispatch = Dispatch(slots, quotas)
    dispatch.draw(dag, remaining_of_tasks(dag, inside or {}, seconds), pools, inside, outside)
    dispatch.add(dag.names)
    now, ends, started, ended, given_up = 0.0, [], {}, {}, []
    while not dispatch.idle:
        for unit in dispatch.start():
            started[unit] = now
            heapq.heappush(ends, (now + seconds[unit], unit))
        assert len(dispatch.running) <= slots
        now, unit = heapq.heappop(ends)
        ended[unit] = now
        if unit in fails:
            given_up += dispatch.fail(unit)
        else:
            dispatch.finish(unit)
    return started, ended, given_up


def pipeline(size, rng):
    """Layers of tables that read one to three of those before them; a few are a hundred times slower than the rest."""
    names = [f"t{i:05}" for i in range(size)]
    dag = Dag(
        {n: rng.sample(names[max(0, i - 400) : i], min(i, rng.choice((0, 1, 1, 2, 3)))) for i, n in enumerate(names)}
    )
    return dag, {n: rng.lognormvariate(0, 0.8) * (20 if rng.random() < 0.01 else 1) for n in names}


@pytest.mark.parametrize("slots", [4, 32])
def test_five_thousand_tables_are_near_the_bound(slots):
    dag, seconds = pipeline(5_000, random.Random(7))
    started, ended, _ = simulate(dag, seconds, slots)
    bound = max(max(remaining(dag, seconds).values()), sum(seconds.values()) / slots)
    assert max(ended.values()) <= 1.15 * bound
    assert all(started[n] >= ended[p] for n in dag.names for p in dag.producers(n))


def test_a_group_of_many_tables_is_near_the_bound():
    rng = random.Random(7)
    layers = [[f"{layer}{place:02}" for place in range(40)] for layer in range(8)]
    reads = {n: rng.sample(above, rng.randint(1, 3)) for above, own in pairwise(layers) for n in own}
    inside = Dag({**reads, "last": layers[-1]})
    dag = Dag({"last": ["before"], "behind": ["last"]})
    seconds = dict.fromkeys([*inside.names, *dag.names], 1.0)
    started, ended, _ = simulate(dag, seconds, 4, inside={"last": inside})
    assert max(ended.values()) <= 1.3 * len(seconds) / 4
    assert all(started[n] >= ended[p] for n in inside.names for p in inside.producers(n))
    assert max(started.values()) == started["behind"] == ended["last"]


@pytest.mark.parametrize("seed", range(40))
def test_small_pipelines(seed):
    rng = random.Random(seed)
    dag, seconds = pipeline(rng.randint(1, 30), rng)
    started, ended, _ = simulate(dag, seconds, rng.randint(1, 5))
    assert started.keys() == ended.keys() == set(dag.names)
    assert all(started[n] >= ended[p] for n in dag.names for p in dag.producers(n))


def test_a_straggler_delays_only_what_reads_from_it():
    dag = Dag({"b": ["a"], "c": ["b"], "y": ["x"], "z": ["y"]})
    started, _, _ = simulate(dag, {"a": 1, "b": 1, "c": 1, "x": 50, "y": 1, "z": 1}, 2)
    assert (started["c"], started["y"]) == (2, 50)


def test_the_longest_way_goes_first():
    dag = Dag({"short": [], "long": [], "end": ["long"]})
    started, ended, _ = simulate(dag, {"short": 3, "long": 2, "end": 2}, 1)
    assert started["long"] == 0
    assert max(ended.values()) == 7


def test_what_waits_goes_by_what_is_urgent_now():
    dispatch, dag = Dispatch(1), Dag({"short": [], "long": [], "end": ["long"]})
    dispatch.draw(dag, remaining(dag, {"short": 3, "long": 2, "end": 2}))
    dispatch.add(dag.names)
    dispatch.draw(dag, remaining(dag, {"short": 3, "long": 2, "end": 2}, {"short": 2}))
    assert dispatch.start() == ("short",)


def test_a_failure_gives_up_its_descendants_alone():
    dag = Dag({"b": ["a"], "c": ["b"], "d": ["c", "x"], "y": ["x"]})
    started, _, given_up = simulate(dag, dict.fromkeys("abcdxy", 1), 2, fails="b")
    assert sorted(given_up) == ["c", "d"]
    assert set(started) == set("abxy")


def test_a_pool_has_its_quota_and_holds_nobody_else_up():
    dag = Dag({n: [] for n in ("f1", "f2", "f3", "o1", "o2")})
    pools = {n: ("finance",) for n in ("f1", "f2", "f3")}
    started, _, _ = simulate(dag, dict.fromkeys(dag.names, 1.0), 3, quotas={"finance": 1}, pools=pools)
    assert sorted(started[n] for n in pools) == [0, 1, 2]
    assert started["o1"] == started["o2"] == 0


def test_what_comes_later_waits_for_what_runs():
    dispatch = Dispatch(4)
    dispatch.draw(Dag({"b": ["a"], "c": []}), {})
    dispatch.add("a")
    assert dispatch.start() == ("a",)
    dispatch.add("bca")
    assert dispatch.start() == ("c",)
    dispatch.finish("a")
    assert dispatch.start() == ("b",)


def test_what_waits_can_be_given_up():
    dispatch = Dispatch(1)
    dispatch.draw(Dag({"b": ["a"]}), {})
    dispatch.add("ab")
    dispatch.start()
    assert dispatch.clear() == ("b",)
    dispatch.finish("a")
    assert dispatch.start() == ()
    assert dispatch.idle


def test_what_is_defined_anew_while_it_waits_waits_for_what_it_reads_now():
    dispatch = Dispatch(4)
    dispatch.draw(Dag({"b": ["a"], "c": ["a"], "d": ["b"]}), {})
    dispatch.add("abcd")
    assert dispatch.start() == ("a",)
    dispatch.draw(Dag({"a": [], "b": ["x"], "c": ["a"], "d": []}), {})
    assert dispatch.start() == ("b", "d")
    dispatch.finish("a")
    assert dispatch.start() == ("c",)


def test_what_is_no_unit_any_more_holds_nobody_up():
    dispatch = Dispatch(1)
    dispatch.draw(Dag({"x": [], "d": [], "e": ["d"], "f": ["d"]}), {"x": 9.0})
    dispatch.add("xdef")
    assert dispatch.start() == ("x",)
    assert dispatch.draw(Dag({"x": [], "e": [], "f": ["e"]}), {}) == ("d",)  # d has joined e
    dispatch.finish("x")
    assert dispatch.start() in {("e",), ("f",)}
    assert not dispatch.knows("d")


def test_what_is_not_to_start_leaves_the_line_and_what_reads_it_need_not_wait():
    dispatch = Dispatch(1)
    dag = Dag({"a": [], "b": ["a"], "c": ["b"], "x": []})
    dispatch.draw(dag, {"a": 9.0})
    dispatch.add(dag.names)
    assert dispatch.start() == ("a",)
    assert dispatch.draw(dag, {}, leaving={"a", "b", "x"}) == ("b", "x")
    assert dispatch.finish("a") == ()
    assert dispatch.start() == ("c",)
    assert dispatch.finish("c") == ()
    assert dispatch.idle


def test_what_was_given_up_and_comes_again_waits_for_its_producers():
    dispatch = Dispatch(2)
    dispatch.draw(Dag({"b": []}), {})
    dispatch.add("b")
    dispatch.draw(Dag({"a": []}), {})
    dispatch.draw(Dag({"b": ["a"]}), {})
    dispatch.add("ab")
    assert dispatch.start() == ("a",)


def test_a_slot_is_given_back_to_the_pool_it_was_taken_from():
    dag, quotas = Dag({"a": [], "b": []}), {"finance": 1}
    dispatch = Dispatch(2, quotas)
    dispatch.draw(dag, {}, {"a": ("finance",), "b": ("finance",)})
    dispatch.add("a")
    dispatch.start()
    dispatch.draw(dag, {}, {"b": ("finance",)})  # a leaves the pool while it runs
    dispatch.finish("a")
    dispatch.add("b")
    assert dispatch.start() == ("b",)


INSIDE = {"g": Dag({"b": [], "c": [], "g": ["b", "c"]})}


def test_what_runs_beside_takes_a_place_in_its_pool_only():
    dispatch = Dispatch(3, {"deploy": 1})
    dispatch.draw(Dag({"a": [], "b": [], "c": []}), {}, {"a": ("deploy",), "b": ("deploy",)})
    dispatch.add(["a", "b", "c"])
    assert dispatch.start(("deploy",)) == ("c",)
    assert dispatch.start() == ("a",)


def a_group(slots=4, quotas=None, pools=None):
    """A unit of three tasks that reads one table and is read by another."""
    dispatch = Dispatch(slots, quotas)
    dispatch.draw(Dag({"g": ["x"], "y": ["g"]}), {}, pools, INSIDE)
    dispatch.add("xgy")
    assert dispatch.start() == ("x",)
    dispatch.finish("x")
    return dispatch


def test_members_of_a_group_run_side_by_side_and_are_read_when_all_are_done():
    dispatch = a_group()
    assert dispatch.start() == ("b", "c")
    assert (dispatch.unit_of("c"), dispatch.busy[0]) == ("g", 2)
    dispatch.finish("c")
    assert dispatch.start() == ()
    dispatch.finish("b")
    assert dispatch.start() == ("g",)
    assert dispatch.runs("g")
    dispatch.finish("g")
    assert (dispatch.start(), dispatch.runs("g")) == (("y",), False)


def test_a_failing_member_ends_its_group_once_the_others_have_ended():
    dispatch = a_group()
    assert dispatch.start() == ("b", "c")
    assert dispatch.fail("b") == ()
    assert dispatch.knows("y")
    assert dispatch.finish("c") == ("y",)
    assert (dispatch.start(), dispatch.idle) == ((), True)


def test_every_member_counts_in_its_own_pool():
    dispatch = a_group(quotas={"finance": 1}, pools={"b": ("finance",), "c": ("finance",)})
    assert dispatch.start() == ("b",)
    dispatch.finish("b")
    assert dispatch.start() == ("c",)


def test_a_group_under_way_may_always_run_one_task():
    dispatch = a_group(quotas={"finance": 1}, pools={"g": ("finance",)})
    assert dispatch.start() == ("b", "c")
    assert dispatch.clear() == ("y",)
    dispatch.slots, dispatch.quotas = 0, {"finance": 0}
    dispatch.finish("b")
    dispatch.finish("c")
    assert dispatch.busy == (1, {"finance": 1})  # so that nobody else claims it
    assert dispatch.start() == ("g",)


def test_a_group_that_is_cut_anew_while_it_waits_runs_as_it_is_then():
    dispatch = Dispatch(4)
    dispatch.draw(Dag({"g": []}), {}, inside=INSIDE)
    dispatch.add("g")
    dispatch.draw(Dag({"g": []}), {}, inside={"g": Dag({"n": [], "g": ["n"]})})
    assert dispatch.start() == ("n",)
    dispatch.finish("n")
    assert dispatch.start() == ("g",)


@pytest.mark.parametrize("seed", range(40))
def test_members_of_groups_start_when_what_they_read_is_there(seed):
    rng = random.Random(seed)
    dag, seconds = pipeline(rng.randint(5, 40), rng)
    cut = units(dag, dag.names, meetings(dag, Wanted(atomic=frozenset(dag.names), tables=frozenset(dag.names))).groups)
    inside = {unit: tasks(dag, names) for unit, names in cut.members.items() if len(names) > 1}
    outside = {name: units_read(dag, cut.unit_of, (name,)) for name in dag.names}
    started, ended, _ = simulate(cut.dag, seconds, rng.randint(1, 4), inside=inside, outside=outside)
    assert started.keys() == ended.keys() == set(dag.names)
    over = {unit: max(ended[name] for name in names) for unit, names in cut.members.items()}
    for name in dag.names:
        assert all(started[name] >= over[unit] for unit in outside[name])
        assert all(started[name] >= ended[p] for p in dag.producers(name))


def an_early_group():
    """A group that has begun while one of the two that it reads runs."""
    dispatch = Dispatch(4, {"narrow": 1})
    dag = Dag({"g": ["x", "y"], "after": ["g"]})
    dispatch.draw(dag, {"y": 1.0}, {"y": ("narrow",), "x": ("narrow",)}, INSIDE, {"b": ["x"], "c": ["y"], "g": []})
    dispatch.add(["x", "y", "g", "after"])
    assert dispatch.start() == ("y",)
    assert not dispatch.runs("g")  # x has not begun: its pool is full
    dispatch.finish("y")
    assert dispatch.start() == ("x", "c")
    assert dispatch.awaited("g") == {"x"}
    return dispatch


def test_a_group_begins_when_all_it_reads_has_begun():
    dispatch = an_early_group()
    dispatch.finish("c")
    assert (dispatch.start(), dispatch.runs("g")) == ((), True)
    dispatch.finish("x")
    assert dispatch.start() == ("b",)
    dispatch.finish("b")
    assert dispatch.start() == ("g",)
    dispatch.finish("g")
    assert dispatch.start() == ("after",)


@pytest.mark.parametrize("runs", [True, False])
def test_a_group_under_way_is_stopped_where_what_it_reads_fails(runs):
    dispatch = an_early_group()
    if not runs:
        dispatch.finish("c")
    assert dispatch.fail("x") == ("g",)
    assert dispatch.stop("g") == (() if runs else ("after",))
    if runs:
        assert dispatch.finish("c") == ("after",)
    assert (dispatch.start(), dispatch.idle) == ((), True)


def test_a_group_under_way_may_go_on_where_what_it_reads_fails():
    dispatch = an_early_group()
    assert dispatch.fail("x") == ("g",)
    dispatch.go_on("g")
    assert dispatch.start() == ("b",)
