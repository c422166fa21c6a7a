"""The scheduler's order of work, simulated: no Spark, no thread, no clock; only what starts when, by its own decisions.

The bound is what no scheduler can beat: the longest way through the graph, or all work divided by the slots, whichever
is larger. Durations are drawn from a log-normal distribution (median 1 s, a few seconds now and then), and one table in
a hundred takes twenty times as long; the scheduler knows each table's last duration, which is off by up to a fifth.
"""

from __future__ import annotations

import argparse
import heapq
import random
import time
from collections.abc import Collection, Mapping

from bench.measure import Figure, show
from headrace.graph.critical import remaining
from headrace.graph.dag import Dag
from headrace.scheduler.policy.dispatch import Dispatch

TABLES = 5_000
SLOTS = (4, 32)
GOAL = 1.15


def run(_options: argparse.Namespace) -> list[Figure]:
    """Measure all shapes with few and with many slots."""
    figures = []
    for shape, dag in _shapes(random.Random(7)).items():
        chance = random.Random(11)
        seconds = {name: chance.lognormvariate(0, 0.8) * (20 if chance.random() < 0.01 else 1) for name in dag.names}
        known = {name: took * chance.uniform(0.8, 1.2) for name, took in seconds.items()}
        for slots in SLOTS:
            figures.append(show(_figure(shape, dag, seconds, known, slots)))
    return figures


def _shapes(chance: random.Random) -> dict[str, Dag[str]]:
    names = [f"t{number:04}" for number in range(TABLES)]
    before = {name: names[max(0, place - 400) : place] for place, name in enumerate(names)}
    return {
        "random graph": Dag(
            {n: chance.sample(b, min(len(b), chance.choice((0, 1, 1, 2, 3)))) for n, b in before.items()}
        ),
        "fan-out": Dag({n: names[place // 50 : place // 50 + 1] if place else [] for place, n in enumerate(names)}),
        "chains of 50": Dag({n: [] if place % 50 == 0 else [names[place - 1]] for place, n in enumerate(names)}),
        "layers of 500": Dag(
            {
                n: chance.sample(names[place // 500 * 500 - 500 : place // 500 * 500], 2) if place >= 500 else []
                for place, n in enumerate(names)
            }
        ),
    }


def _figure(shape: str, dag: Dag[str], seconds: Mapping[str, float], known: Mapping[str, float], slots: int) -> Figure:
    begun = time.perf_counter()
    took = simulated(dag, seconds, remaining(dag, known), slots)
    deciding = (time.perf_counter() - begun) / len(dag.names) * 1e6
    way, work = max(remaining(dag, seconds).values()), sum(seconds.values()) / slots
    detail = f"{took:.0f} s; longest way {way:.0f} s, work {work:.0f} s; {deciding:.0f} µs per table to decide"
    case = f"dispatch of {TABLES:,} tables, {shape}, {slots} at once, against the bound"
    return Figure("dispatch", case, took / max(way, work), "x", GOAL, detail=detail)


def simulated(
    dag: Dag[str],
    seconds: Mapping[str, float],
    left: Mapping[str, float],
    slots: int,
    inside: Mapping[str, Dag[str]] | None = None,
    outside: Mapping[str, Collection[str]] | None = None,
) -> float:
    """Return the seconds until everything is done.

    Args:
        dag: What is dispatched.
        seconds: How long each task takes.
        left: How long the way from each to the end is thought to take.
        slots: How many run at once.
        inside: Tasks of units that have several.
        outside: By task, the other units that it reads; one that is missing reads all that its unit does.
    """
    dispatch: Dispatch[str] = Dispatch(slots)
    dispatch.draw(dag, left, inside=inside, outside=outside)
    dispatch.add(dag.names)
    now, ends = 0.0, list[tuple[float, str]]()
    while not dispatch.idle:
        for task in dispatch.start():
            heapq.heappush(ends, (now + seconds[task], task))
        now, done = heapq.heappop(ends)
        dispatch.finish(done)
    return now
