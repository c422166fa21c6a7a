"""Groups of a dense pipeline, simulated: no Spark, no thread, no clock; only what starts when, by the scheduler itself.

Layers of tables of which each reads one to three of the layer above it, so that ways meet nearly everywhere and most
tables are published together. Each pipeline is run with its groups as they are, each member side by side with others
once what it reads itself is there; with groups that begin when all that they read has been published; with groups whose
members run one after the other in one slot; and as if no table belonged to a group, which shows what merging costs. The
bound is the longest way through the graph, or all work divided by the slots, whichever is larger.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.dispatch import simulated
from bench.measure import Figure, show
from headrace.graph.critical import remaining, remaining_of_tasks
from headrace.graph.dag import Dag
from headrace.graph.diamonds import Wanted, meetings
from headrace.graph.units import Units, tasks, units, units_read

LAYERS, WIDTH, SLOTS = 8, 40, 4
PIPELINES = 20
GOAL = 1.3


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One random pipeline.

    Args:
        dag: Tables and sources.
        cut: Which tables are published together.
        seconds: How long each table takes.
        known: How long the scheduler believes that it takes.
    """

    dag: Dag[str]
    cut: Units[str]
    seconds: Mapping[str, float]
    known: Mapping[str, float]

    @property
    def bound(self) -> float:
        """Return the seconds that no order of work can beat."""
        return max(max(remaining(self.dag, self.seconds).values()), sum(self.seconds.values()) / SLOTS)

    @property
    def largest(self) -> int:
        """Return the size of the largest group."""
        return max(map(len, self.cut.members.values()))


def run(_options: argparse.Namespace) -> list[Figure]:
    """Measure with equal and with uneven durations."""
    return [show(figure) for uneven in (False, True) for figure in _figures(uneven=uneven)]


def pipeline(seed: int, *, uneven: bool) -> Pipeline:
    """Return a random pipeline.

    Args:
        seed: Of its graph and durations.
        uneven: Whether durations are log-normal, known to a fifth, and one in a hundred is twenty times as long.
    """
    chance = random.Random(seed)
    layers = [[f"{layer}.{place:02}" for place in range(WIDTH)] for layer in range(LAYERS + 1)]
    reads = {
        name: chance.sample(above, chance.randint(1, 3)) for above, own in itertools.pairwise(layers) for name in own
    }
    dag = Dag(reads)
    cut = units(dag, reads, meetings(dag, Wanted(atomic=frozenset(reads), tables=frozenset(reads))).groups)
    seconds = {name: 1.0 for name in reads}
    if uneven:
        seconds = {n: chance.lognormvariate(0, 0.8) * (20 if chance.random() < 0.01 else 1) for n in reads}
    known = {name: took * (chance.uniform(0.8, 1.2) if uneven else 1.0) for name, took in seconds.items()}
    return Pipeline(dag, cut, seconds, known)


def side_by_side(one: Pipeline) -> float:
    """Return the seconds until everything is published; each member starts when what it reads has been."""
    return _by_members(one, {n: units_read(one.dag, one.cut.unit_of, (n,)) for n in one.seconds})


def begun_when_all_is_read(one: Pipeline) -> float:
    """Return the seconds that it takes if no group begins before all that it reads has been published."""
    return _by_members(one, {})


def _by_members(one: Pipeline, outside: Mapping[str, frozenset[str]]) -> float:
    inside = {unit: tasks(one.dag, names) for unit, names in one.cut.members.items() if len(names) > 1}
    left = remaining_of_tasks(one.cut.dag, inside, one.known, outside=outside)
    return simulated(one.cut.dag, one.seconds, left, SLOTS, inside, outside)


def one_after_the_other(one: Pipeline) -> float:
    """Return the seconds that it takes with each group in one slot."""
    took, known = (
        {unit: sum(times[n] for n in names) for unit, names in one.cut.members.items()}
        for times in (one.seconds, one.known)
    )
    return simulated(one.cut.dag, took, remaining(one.cut.dag, known), SLOTS)


def apart(one: Pipeline) -> float:
    """Return the seconds that it takes without groups."""
    own = Dag({name: [p for p in one.dag.producers(name) if p in one.seconds] for name in one.seconds})
    return simulated(own, one.seconds, remaining(own, one.known), SLOTS)


def _figures(*, uneven: bool) -> list[Figure]:
    all_ = [pipeline(seed, uneven=uneven) for seed in range(PIPELINES)]
    ways = {
        "members side by side": side_by_side,
        "groups begun when all is read": begun_when_all_is_read,
        "one slot a group": one_after_the_other,
        "no groups": apart,
    }
    sizes = sorted(one.largest for one in all_)
    figures = []
    for label, way in ways.items():
        ratios = sorted(way(one) / one.bound for one in all_)
        durations = "uneven" if uneven else "equal"
        case = f"{LAYERS} x {WIDTH} tables in random layers, {SLOTS} slots, {durations} durations, {label}"
        detail = f"{_spread(ratios)} x over {PIPELINES} pipelines; largest group {sizes[0]} to {sizes[-1]} tables"
        goal = GOAL if way is side_by_side else None
        figures.append(Figure("groups", case, ratios[-1], "x", goal, detail=detail))
    return figures


def _spread(ratios: Sequence[float]) -> str:
    return f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {ratios[len(ratios) // 2]:.2f}"
