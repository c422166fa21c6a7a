"""Alignment: the newest versions that agree, checked against trying all."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterable, Mapping, Sequence

import pytest
from catalog_kit.samples import lake

from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.cut.version_alignment import Past, State, aligned

A, B, C, M, Z = (lake(f"s.{name}") for name in "abcmz")


def states(source: TableName, *seen: tuple[int, int]) -> list[State]:
    """Versions of a table, each with the version of its one source that it reflects."""
    return [State(version, Frontier({source: at})) for version, at in seen]


def find(
    past: Mapping[TableName, Sequence[State]], candidates: Mapping[TableName, Sequence[int]], *tops: TableName
) -> dict[str, int] | None:
    found = aligned(Past(frozenset(tops), past), candidates)
    return None if found is None else {name.table: version for name, version in found.items()}


@pytest.mark.parametrize(
    ("b", "c", "expected"),
    [
        ([(0, 0), (1, 4)], [(0, 0), (1, 4)], {"b": 1, "c": 1}),
        ([(0, 0), (1, 4), (2, 5)], [(0, 0), (1, 4)], {"b": 1, "c": 1}),
        ([(0, 0), (1, 3), (2, 5)], [(0, 0), (1, 4)], {"b": 0, "c": 0}),
        ([(0, 0), (0, 4), (1, 5)], [(0, 0), (1, 4)], {"b": 0, "c": 1}),  # 4 brought b nothing, so that it reflects 4
        ([(0, 1), (0, 3)], [(0, 2), (1, 3)], {"b": 0, "c": 1}),
        ([(0, 1), (0, 3)], [(0, 2)], None),  # between 1 and 3 nobody knows
        ([(0, 1)], [(0, 2)], None),
        ([], [(0, 2)], None),  # nothing is known of b
    ],
)
def test_two_ways(b: list[tuple[int, int]], c: list[tuple[int, int]], expected: dict[str, int] | None) -> None:
    past = {B: states(A, *b), C: states(A, *c)}
    candidates = {B: sorted({v for v, _ in b}) or [0], C: sorted({v for v, _ in c})}
    assert find(past, candidates, A) == expected


def test_a_way_that_is_the_top_itself() -> None:
    past = {B: states(A, (0, 0), (1, 2))}
    assert find(past, {B: [0, 1], A: [0, 1, 2, 3]}, A) == {"b": 1, "a": 2}


def test_ways_through_others() -> None:
    past = {M: states(A, (0, 0), (1, 2), (2, 5)), B: states(M, (0, 0), (1, 1), (2, 2)), C: states(A, (0, 0), (1, 2))}
    assert find(past, {B: [0, 1, 2], C: [0, 1]}, A) == {"b": 1, "c": 1}


def test_what_mixes_versions_itself_is_not_read() -> None:
    mixture = State(1, Frontier({M: 0, A: 3}))
    past = {M: states(A, (0, 0)), B: [State(0, Frontier({M: 0, A: 0})), mixture], C: states(A, (0, 0), (1, 3))}
    assert find(past, {B: [0, 1], C: [0, 1]}, A) == {"b": 0, "c": 0}


def test_several_tops_must_agree_in_one_go() -> None:
    past = {
        B: [State(0, Frontier({A: 0, Z: 0})), State(1, Frontier({A: 1, Z: 0})), State(2, Frontier({A: 1, Z: 1}))],
        C: [State(0, Frontier({A: 0, Z: 0})), State(1, Frontier({A: 0, Z: 1})), State(2, Frontier({A: 2, Z: 1}))],
    }
    assert find(past, {B: [0, 1, 2], C: [0, 1, 2]}, A, Z) == {"b": 0, "c": 0}


def test_what_has_nothing_in_common_is_read_at_its_newest() -> None:
    past = {B: states(A, (0, 0), (1, 4)), C: states(A, (0, 0))}
    assert find(past, {B: [0, 1], C: [0], Z: [7]}, A) == {"b": 0, "c": 0, "z": 7}


@pytest.mark.parametrize("seed", range(150))
def test_it_is_the_newest_of_all_that_agree(seed: int) -> None:
    """One top, tables that are refreshed now and then; versions grow only where something changed."""
    rng = random.Random(seed)
    past: dict[TableName, list[State]] = {}
    for name in (B, C, M):
        version, seen = 0, sorted(rng.sample(range(12), rng.randint(1, 6)))
        past[name] = []
        for at in seen:
            past[name].append(State(version, Frontier({A: at})))
            version += rng.random() < 0.6
    candidates = {name: sorted({s.version for s in found}) for name, found in past.items()}
    known = Past(frozenset([A]), past)
    possible = []
    for versions in itertools.product(*candidates.values()):
        reached = [
            {s.frontier[A] for s in past[name] if s.version == version}
            for name, version in zip(candidates, versions, strict=True)
        ]
        if set.intersection(*reached):
            possible.append(versions)
    found = aligned(known, candidates)
    best = max(possible, default=None)
    assert (None if found is None else tuple(found.values())) == best
    assert all(all(x <= y for x, y in zip(other, best or other, strict=True)) for other in possible)


@pytest.mark.parametrize("seed", range(200))
def test_several_tops_on_several_levels(seed: int) -> None:
    """A random pipeline over three tops, of which some tables are tops, too; against all ways to understand it all."""
    rng = random.Random(seed)
    levels = [lake(f"s.{name}") for name in "azymnpbcd"]
    bases, streams = levels[:3], levels[3:]
    reads = {name: rng.sample(levels[: place + 3], rng.randint(1, 3)) for place, name in enumerate(streams)}
    now = dict.fromkeys(levels, 0)
    past: dict[TableName, list[State]] = {name: [] for name in streams}
    for _ in range(rng.randint(10, 30)):
        name = rng.choice(levels)
        if name in bases:
            now[name] += 1
        elif all(past[source] for source in reads[name] if source in past):
            now[name] += bool(past[name]) and rng.random() < 0.6
            past[name].append(State(now[name], Frontier({source: now[source] for source in reads[name]})))
    tops = frozenset([*bases, *rng.sample(streams[:3], rng.randint(0, 1))])
    candidates = {n: sorted({s.version for s in past[n]}) for n in streams[3:] if past[n]}
    candidates[bases[0]] = list(range(now[bases[0]] + 1))
    possible = [
        versions
        for versions in itertools.product(*candidates.values())
        if together(ways(past, tops, name, version) for name, version in zip(candidates, versions, strict=True))
    ]
    found = aligned(Past(tops, past), candidates)
    best = max(possible, default=None)
    assert (None if found is None else tuple(found.values())) == best
    assert all(all(x <= y for x, y in zip(other, best or other, strict=True)) for other in possible)


def ways(
    past: Mapping[TableName, Sequence[State]], tops: Collection[TableName], name: TableName, version: int
) -> list[dict[TableName, int]]:
    """All ways to understand a version."""
    own = {name: version} if name in tops else {}
    if name not in past:
        return [own]
    states_ = [state for state in past[name] if state.version == version]
    below = (together(ways(past, tops, source, at) for source, at in s.frontier.items()) for s in states_)
    return [way | own for found in below for way in found]


def together(parts: Iterable[Sequence[dict[TableName, int]]]) -> list[dict[TableName, int]]:
    """All combinations that agree."""
    found: list[dict[TableName, int]] = [{}]
    for part in parts:
        pairs = [(one, other) for one in found for other in part]
        merged = [one | other for one, other in pairs if all(one.get(top, at) == at for top, at in other.items())]
        found = [dict(pairs) for pairs in {tuple(sorted(way.items())) for way in merged}]
    return found
