"""The 22 queries of TPC-H: refreshed FULL, refreshed DIFFERENTIAL or under AUTO, and overwritten by plain Spark.

All three follow the same change in one run, in turns who goes first. Orders leave and arrive with their line items
(RF1, RF2), which 19 of the queries read. A query none of whose sources changed, or whose result stayed the same without
being computed, proves nothing: it is counted apart, not as a win.

What several queries read together (the change of a source, rows near it) is read by the one that comes first; here it
is charged in equal parts to all that read it, so that no query looks worse, or better, for its place in the alphabet.

From scale 10 on, what recomputes is left out of the turns of warming up: there it takes minutes, and each query has run
three times by then, to make its tables. `--without-full` leaves FULL out, which takes as long there as all else.

At the end all stream tables are compared with what plain Spark computed after the last change.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.measure import Figure, geometric_mean, listed, median, project, show
from bench.tpch import change
from bench.tpch22 import charged, create, load, overwrite, require_equal, table
from headrace.api.facade import Headrace
from headrace.demo import tpch22
from headrace.results.refresh_results import Mode, RefreshResult

CHANGES = ((0.001, False), (0.001, True), (0.01, False), (0.01, True))
"""How much changes, and whether the keys are close together, as TPC-H's own are, or from everywhere."""
FULL, SPARK = "FULL", "plain Spark"
WARM_UP = 4
TEN = 10
GOALS = {
    FULL: dict.fromkeys(CHANGES[:2], 2.0),
    SPARK: dict(zip(CHANGES, (2.6, 3.0, 2.0, 2.4), strict=True)),
}
GOALS_AT_TEN = {
    FULL: dict(zip(CHANGES, (8.0, 8.0, 5.0, 5.0), strict=True)),
    SPARK: dict(zip(CHANGES, (10.0, 14.0, 6.0, 9.0), strict=True)),
}
"""What the geometric means must reach, by what is beaten and by the change; fixed cost weighs less at scale 10."""
LEAST = {FULL: 0.9, SPARK: 1.0}


@dataclass(slots=True)
class Times:
    """One query's seconds by who took them, and how the refreshes ran that are measured."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    ran: list[Mode] = field(default_factory=list)
    jobs: list[int | None] = field(default_factory=list)

    def ratio(self, slower: str, faster: str) -> float:
        """How many times longer the one took."""
        return median(self.seconds[slower]) / median(self.seconds[faster])


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure every query at 0.1 % and 1 % of orders and line items changed, close together and from everywhere."""
    figures: list[Figure] = []
    names = tpch22.NAMES[: options.cases]
    with project(options.master) as hr:
        load(hr, options.scale)
        beaten = (SPARK,) if options.without_full else (FULL, SPARK)
        create(hr, names, (options.mode,) if options.without_full else (FULL, options.mode))
        number = 0
        for share, close in CHANGES:
            if share not in options.shares:
                continue
            warm_up = 1 if number else WARM_UP
            times = {name: Times() for name in names}
            for turn in range(warm_up + options.rounds):
                number += 1
                change(hr, number, share, options.scale if close else None)
                measured = turn >= warm_up
                who = (options.mode, *beaten) if measured or options.scale < TEN else (options.mode,)
                results = {name: dict(_turn(hr, name, who, turn)) for name in names}
                if measured:
                    _add(times, results, options.mode)
            figures += report(times, options.mode, beaten, (share, close), options.scale)
        require_equal(hr, options.mode, names)
    return figures


def _turn(hr: Headrace, name: str, who: Sequence[str], turn: int) -> Iterator[tuple[str, RefreshResult | float]]:
    """Bring a query's tables up to date, another one first in each turn."""
    first = turn % len(who)
    for each in (*who[first:], *who[:first]):
        yield each, overwrite(hr, name) if each == SPARK else hr.refresh(table(each, name))


def _add(times: dict[str, Times], results: dict[str, dict[str, RefreshResult | float]], mode: str) -> None:
    """Add a turn to the times."""
    refreshed = {name: each[mode] for name, each in results.items()}
    own = charged({name: result for name, result in refreshed.items() if isinstance(result, RefreshResult)})
    for name, each in results.items():
        for who, result in each.items():
            taken = own[name] if who == mode else result.seconds if isinstance(result, RefreshResult) else result
            times[name].seconds.setdefault(who, []).append(taken)
            if who == mode and isinstance(result, RefreshResult):
                times[name].ran.append(result.mode)
                times[name].jobs.append(result.jobs)


def report(
    times: dict[str, Times], mode: str, beaten: Sequence[str], kind: tuple[float, bool], scale: float
) -> list[Figure]:
    """The figures of all queries that were computed, against plain Spark, and FULL where that ran, too."""
    real = {name: each for name, each in times.items() if {Mode.DIFFERENTIAL, Mode.FULL} & set(each.ran)}
    if not real:
        return []
    changed = f"{kind[0]:.1%} changed{', close together' if kind[1] else ''}"
    apart = ", ".join(name for name in times if name not in real) or "none"
    figures = []
    for slower in beaten:
        for name, each in real.items():
            detail = f"{slower} {listed(each.seconds[slower])} s, {mode} {listed(each.seconds[mode])} s"
            detail += f" by {', '.join(each.ran)}, {each.jobs[-1]} jobs"
            label = f"{name}, {changed}: {slower} / {mode}"
            figures.append(show(Figure("queries", label, each.ratio(slower, mode), "x", LEAST[slower], True, detail)))
        goal = (GOALS_AT_TEN if scale >= TEN else GOALS)[slower].get(kind)
        figures += _means(real, (slower, mode), changed, goal, f"no-ops, not counted: {apart}")
    if FULL in beaten:
        figures += _means(real, (FULL, SPARK), changed, None, "")
    return figures


def _means(
    times: dict[str, Times], pair: tuple[str, str], changed: str, goal: float | None, detail: str
) -> list[Figure]:
    """The geometric mean, and the sums: how many times longer the one of a pair took."""
    slower, faster = pair
    mean = geometric_mean([each.ratio(*pair) for each in times.values()])
    label = f"geometric mean of {len(times)} queries, {changed}: {slower} / {faster}"
    means = Figure("queries", label, mean, "x", goal, True, detail)
    long, short = (sum(median(each.seconds[who]) for each in times.values()) for who in pair)
    label, detail = f"all {len(times)} queries, {changed}: {slower} / {faster}", f"{long:.1f} s, {short:.1f} s"
    return [show(means), show(Figure("queries", label, long / short, "x", None, True, detail))]
