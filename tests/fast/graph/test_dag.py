"""The graph of who reads whom."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.graph import Dag
from headrace.graph.dag import cycle_error

SHOP = {"revenue": ["orders", "customers"], "top": ["revenue"], "both": ["revenue", "top"], "other": ["events"]}

# edges only from higher to lower numbers, so that there is no cycle
ACYCLIC = st.dictionaries(st.integers(0, 20), st.lists(st.integers(0, 20), max_size=4), max_size=20).map(
    lambda edges: {name: [p for p in read if p < name] for name, read in edges.items()}
)


def test_direct_and_transitive() -> None:
    dag = Dag(SHOP)
    assert dag.producers("both") == ("revenue", "top")
    assert dag.consumers("revenue") == ("both", "top")
    assert dag.upstream("both") == ("customers", "orders", "revenue", "top")
    assert dag.downstream("orders") == ("revenue", "top", "both")
    assert dag.downstream("orders", "revenue") == ("top", "both")
    assert (dag.producers("orders"), dag.consumers("unknown"), dag.downstream("unknown")) == ((), (), ())


def test_order_and_levels() -> None:
    dag = Dag(SHOP)
    assert dag.order() == ("customers", "events", "orders", "other", "revenue", "top", "both")
    assert dag.order(["both", "orders"]) == ("orders", "both")
    assert dag.levels() == (("customers", "events", "orders"), ("other", "revenue"), ("top",), ("both",))
    assert len(dag) == 7
    assert "events" in dag


def test_a_cycle_is_named_as_a_path() -> None:
    cyclic = Dag({"a": ["b"], "b": ["c", "x"], "c": ["a"], "d": ["a"]})
    assert cyclic.cycle() == ("a", "b", "c", "a")
    assert cyclic.cycle(through="c") == ("c", "a", "b", "c")
    assert cyclic.cycle(through="d") == ()
    error = cycle_error(cyclic.cycle())
    assert "allow_cycles" not in (cycle_error(cyclic.cycle(), of_greens=True).hint or "")
    assert error.code == "CYCLE"
    assert "a reads b reads c reads a" in error.message


def test_reading_oneself_is_a_cycle() -> None:
    assert Dag({"a": ["a"]}).cycle() == ("a", "a")
    assert Dag({"a": ["a"]}).component("a") == ("a",)


def test_the_members_of_a_cycle_stand_together() -> None:
    dag = Dag({"b": ["a", "z"], "z": ["m"], "m": ["b", "y"], "n": ["z"], "x": ["x", "n"], "y": ["a"]})
    assert dag.parts == (("a",), ("y",), ("b", "m", "z"), ("n",), ("x",))
    assert dag.levels() == (("a",), ("y",), ("b", "m", "z"), ("n",), ("x",))
    assert dag.order(["z", "n", "b", "y"]) == ("y", "b", "z", "n")
    assert dag.component("z") == ("b", "m", "z")
    assert dag.component("n") == ()
    assert dag.upstream("z") == ("a", "y", "b", "m")
    assert dag.downstream("z") == ("b", "m", "n", "x")
    assert dag.roots == ("a",)
    assert Dag({"p": ["q"], "q": ["p"]}).roots == ("p",)


def test_nothing() -> None:
    empty: Dag[str] = Dag({})
    assert (empty.order(), empty.levels(), empty.cycle(), empty.names) == ((), (), (), ())


@settings(deadline=None)
@given(ACYCLIC)
def test_producers_come_first(edges: dict[int, list[int]]) -> None:
    dag = Dag(edges)
    position = {name: i for i, name in enumerate(dag.order())}
    assert set(position) == set(dag.names)
    assert all(position[producer] < position[consumer] for producer, consumer in dag.edges)
    level = {name: i for i, names in enumerate(dag.levels()) for name in names}
    assert all(level[producer] < level[consumer] for producer, consumer in dag.edges)


@settings(deadline=None)
@given(ACYCLIC)
def test_the_order_does_not_depend_on_how_the_graph_was_written(edges: dict[int, list[int]]) -> None:
    backwards = {name: read[::-1] for name, read in reversed(edges.items())}
    assert Dag(backwards).order() == Dag(edges).order()


@settings(deadline=None)
@given(ACYCLIC, st.integers(0, 20))
def test_upstream_and_downstream_are_inverse(edges: dict[int, list[int]], name: int) -> None:
    dag = Dag(edges)
    assert all(name in dag.upstream(reader) for reader in dag.downstream(name))
    assert all(name in dag.downstream(producer) for producer in dag.upstream(name))


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=3)))
def test_every_cycle_found_is_one(edges: dict[int, list[int]]) -> None:
    dag = Dag(edges)
    path = dag.cycle()
    if path:
        assert path[0] == path[-1]
        assert all(producer in edges[name] for name, producer in pairwise(path))


def reached(edges: dict[int, list[int]], start: int) -> set[int]:
    found: set[int] = set()
    queue = [start]
    while queue:
        new = set(edges.get(queue.pop(), ())) - found
        found |= new
        queue += new
    return found


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=3)))
def test_components_are_what_reaches_itself(edges: dict[int, list[int]]) -> None:
    dag = Dag(edges)
    reach = {name: reached(edges, name) for name in dag.names}
    for name in dag.names:
        assert set(dag.component(name)) == {o for o in reach[name] if name in reach[o]}
        path = dag.cycle(through=name)
        assert bool(path) == (name in reach[name])
        assert not path or path[0] == path[-1] == name
    place = {name: i for i, part in enumerate(dag.parts) for name in part}
    assert sorted(place) == sorted(dag.names)
    assert all(place[p] <= place[c] for p, c in dag.edges)


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=3)),
    st.dictionaries(st.integers(0, 8), st.integers(0, 4)),
)
def test_a_unit_reads_what_its_members_read(edges: dict[int, list[int]], numbered: dict[int, int]) -> None:
    whole = Dag(edges)
    last = {numbered[n]: n for n in sorted(numbered) if n in whole}
    unit_of = {n: last[number] for n, number in numbered.items() if n in whole}
    reads: dict[int, set[int]] = {unit: set() for unit in unit_of.values()}
    for name, unit in unit_of.items():
        reads[unit] |= {unit_of[p] for p in whole.producers(name) if p in unit_of} - {unit}
    units, alone = whole.contracted(unit_of), Dag(reads)
    assert (units.names, units.parts, units.edges) == (alone.names, alone.parts, alone.edges)
    assert [units.component(n) for n in units.names] == [alone.component(n) for n in alone.names]
    assert [units.consumers(n) for n in units.names] == [alone.consumers(n) for n in alone.names]
