"""Diamonds and the groups they make, on graphs small enough to draw; and against a slow definition on random ones."""

import itertools
import random

import pytest
from kit.dominator_diamonds import diamonds

from headrace.graph import meeting_ways
from headrace.graph.dag import Dag
from headrace.graph.diamonds import Wanted, meetings, tops
from headrace.graph.units import merged, units


def graph(text):
    """`B: A` reads: B is made from A."""
    return Dag({line.split(":")[0].strip(): line.split(":")[1].split() for line in text.split(";")})


def groups(text, *, none=()):
    dag = graph(text)
    found = meetings(dag, Wanted(atomic=set(dag.names) - set(none)))
    return sorted("".join(sorted(group)) for group in found.groups)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B: a; C: a; D: B C", ["BCD"]),  # simple
        ("B: A; C: A; D: B C; A: a", ["BCD"]),  # the top is a stream table: not a member
        ("B: a; E: B; F: E; C: a; D: F C", ["BCDEF"]),  # deep
        ("B: a; D: a B", ["BD"]),  # one-sided
        ("B: a; C: B; D: C", []),  # a chain
        ("B: a; C: b; D: B C", []),  # two roots
        ("B: a b; C: a b; D: B C", ["BCD"]),  # two roots, both shared
        ("B: a; C: a; D: B C; E: C B", ["BCDE"]),  # two bottoms over the same sides
        ("B: a; C: a; X: a; D: B C; E: C X", ["BCDEX"]),  # overlapping in C
        ("B: a; C: a; D: B C; F: b; G: b; H: F G", ["BCD", "FGH"]),  # two that have nothing to do with each other
        ("B: a; C: a; D: B C; E: D; F: D; G: E F", ["BCD", "EFG"]),  # one after the other
        ("B: a; C: a; D: B C; E: a; F: D E", ["BCDEF"]),  # nested
        ("B: a C; C: B", []),  # a cycle is published together anyway
        ("B: a C; C: B; X: a; D: C X", ["BCDX"]),  # it lies on one way whole
        ("B: a; C: a; D: B C E; E: D", ["BCE"]),  # it is the bottom, under the name of its last member
        ("S: a S; B: S; C: S; D: B C", ["BCD"]),  # it is the top
        ("B: a; C: a; D: B C; E: D", ["BCD"]),  # what reads the bottom alone is outside
        ("B: a; C: a; Z: B; D: B C", ["BCD"]),  # what reads a side without coming back is outside
    ],
)
def test_groups(text, expected):
    assert groups(text) == expected


def test_a_bottom_may_want_none():
    assert groups("B: a; C: a; D: B C", none="D") == []
    assert groups("B: a; C: a; D: B C; E: C B", none="D") == ["BCE"]


def test_what_a_diamond_is_made_of():
    (found,) = meetings(graph("B: A; E: B; C: A; D: E C; A: a"), Wanted(aligned="D")).aligned["D"]
    assert (found.top, found.bottom, found.between) == ("A", "D", ("B", "C", "E"))


def ways(dag, top, bottom):
    if top == bottom:
        return [()]
    return [(reader, *way) for reader in dag.consumers(top) for way in ways(dag, reader, bottom)]


def slowly(dag):
    """The definition: two ways that share nothing but their ends."""
    return {
        (top, bottom)
        for top, bottom in itertools.permutations(dag.names, 2)
        for one, other in itertools.combinations(ways(dag, top, bottom), 2)
        if not set(one[:-1]) & set(other[:-1])
    }


@pytest.mark.parametrize("seed", range(60))
def test_the_definition_on_random_graphs(seed):
    rng = random.Random(seed)
    size = rng.randint(3, 9)
    names = "abcdefghi"[:size]
    dag = Dag({n: rng.sample(names[:i], rng.randint(0, min(i, 3))) for i, n in enumerate(names)})
    assert {(top, bottom) for bottom in names for top in tops(dag, bottom)} == slowly(dag)
    for d in itertools.chain.from_iterable(meetings(dag, Wanted(aligned=names)).aligned.values()):
        assert set(d.between) == {n for way in ways(dag, d.top, d.bottom) for n in way} - {d.bottom}
    cut = units(dag, names, meetings(dag, Wanted(atomic=names)).groups)
    assert sorted(n for inside in cut.members.values() for n in inside) == sorted(names)
    assert not cut.dag.cycle()


@pytest.mark.parametrize("seed", range(40))
def test_dominators_say_the_same_of_random_graphs(seed, monkeypatch):
    """With cycles, databases, all that a table may want of its diamonds, and blocks of few bottoms."""
    rng = random.Random(seed)
    monkeypatch.setattr(meeting_ways, "BLOCK", rng.choice((1, 2, 3, 512)))
    names = [f"n{i:02}" for i in range(rng.randint(2, 16))]
    reads = {n: rng.sample(names[:i], rng.randint(0, min(i, rng.choice((1, 2, 3, 6))))) for i, n in enumerate(names)}
    databases = {n for n in names[: rng.randint(0, 2)] if not reads[n]}
    for name in rng.sample(names[2:], min(rng.choice((0, 0, 1)), len(names[2:]))):
        reads[name].append(rng.choice(names[2:]))
    dag = Dag(reads)
    tables = {n for n in names if not databases.issuperset(reads[n]) or dag.component(n)}
    wants = {n: rng.choice(("atomic", "aligned", "none")) for n in names}
    atomic, aligned = ({n for n in names if wants[n] == want} for want in ("atomic", "aligned"))
    every = [d for d in diamonds(dag) if d.top not in databases or not tables.isdisjoint(d.between)]
    kept = [d for d in every if d.bottom in atomic or (d.bottom in aligned and (d.cyclic or d.top in databases))]
    found = meetings(dag, Wanted(atomic, aligned, databases, tables))
    assert found.bottoms == {d.bottom for d in every}
    assert found.kept == {d.bottom for d in kept}
    assert set(found.groups) == {frozenset(g) for g in merged({*d.between, d.bottom} for d in kept)}
    assert {n: tops(dag, n) for n in names} == {
        n: {d.top for d in diamonds(dag) if d.bottom == n and not d.cyclic} for n in names
    }
    inside = {(d.bottom, d.top): (set(d.between), d.cyclic) for d in every if d.bottom in aligned}
    outermost = {(d.bottom, d.top): (set(d.between), d.cyclic) for each in found.aligned.values() for d in each}
    assert outermost.items() <= inside.items()
    assert all(
        any(b == bottom and o[0] >= i[0] for (b, _), o in outermost.items()) for (bottom, _), i in inside.items()
    )


def test_units_are_called_after_their_last_member():
    dag = graph("B: a; C: a; D: B C; E: D")
    cut = units(dag, "BCDE", [{"B", "C", "D", "a"}])
    assert dict(cut.members) == {"D": ("B", "C", "D"), "E": ("E",)}
    assert cut.dag.producers("E") == ("D",)
    assert "a" not in cut.dag


def test_what_lies_between_members_joins_them():
    dag = graph("B: a; X: B; D: X; E: a")
    cut = units(dag, "BXDE", [{"B", "D"}])
    assert dict(cut.members) == {"D": ("B", "X", "D"), "E": ("E",)}


def test_a_diamond_knows_of_cycles_on_its_ways():
    (one,) = meetings(graph("B: a C; C: B; X: a; D: C X"), Wanted(aligned="D")).aligned["D"]
    assert (one.top, one.bottom, one.between, one.cyclic) == ("a", "D", ("B", "C", "X"), True)
    (other,) = meetings(graph("B: a; C: a; D: B C D"), Wanted(aligned="D")).aligned["D"]
    assert not other.cyclic


def test_cycles_are_units():
    dag = graph("B: a C; C: B; X: C; S: S X")
    cut = units(dag, "BCXS", [])
    assert cut.members == {"C": ("B", "C"), "X": ("X",), "S": ("S",)}
    assert cut.dag.order() == ("C", "X", "S")
