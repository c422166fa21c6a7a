"""The graph of who reads whom."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UserError
from headrace.graph import Dag

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


def test_restriction_keeps_the_edges_between() -> None:
    assert Dag(SHOP).restricted(["orders", "revenue", "both"]).edges == (("orders", "revenue"), ("revenue", "both"))


def test_a_cycle_is_named_as_a_path() -> None:
    cyclic = Dag({"a": ["b"], "b": ["c", "x"], "c": ["a"], "d": ["a"]})
    assert cyclic.cycle() == ("a", "b", "c", "a")
    with pytest.raises(UserError) as error:
        cyclic.order()
    assert error.value.code == "CYCLE"
    assert "a reads b reads c reads a" in error.value.message


def test_reading_oneself_is_a_cycle() -> None:
    assert Dag({"a": ["a"]}).cycle() == ("a", "a")


def test_a_definition_that_closes_a_circle_is_refused() -> None:
    dag = Dag(SHOP)
    with pytest.raises(UserError) as error:
        dag.with_producers("orders", ["both"])
    assert error.value.code == "CYCLE"
    assert dag.with_producers("new", ["both"]).upstream("new")[-1] == "both"


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
    else:
        assert len(dag.order()) == len(dag)
