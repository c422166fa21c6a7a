"""Dispatch, simulated: no thread, no clock, thousands of units in a second."""

import heapq
import random

import pytest

from headrace.graph.critical import remaining
from headrace.graph.dag import Dag
from headrace.scheduler.policy.dispatch import Dispatch


def simulate(dag, seconds, slots, *, quotas=None, pools=None, fails=()):
    """Run everything; when each unit started and ended, and what was given up."""
    dispatch = Dispatch(slots, quotas)
    dispatch.draw(dag, remaining(dag, seconds), pools)
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
    pools = {n: "finance" for n in ("f1", "f2", "f3")}
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
    dispatch.draw(dag, {}, {"a": "finance", "b": "finance"})
    dispatch.add("a")
    dispatch.start()
    dispatch.draw(dag, {}, {"b": "finance"})  # a leaves the pool while it runs
    dispatch.finish("a")
    dispatch.add("b")
    assert dispatch.start() == ("b",)
