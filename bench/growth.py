"""The same number of changed line items over ever more data: refreshing, beside recomputing by plain Spark.

In each turn line items and their orders close together change and all stream tables are refreshed, then as many from
everywhere change and they are refreshed again; before or after that second refresh, in turns, plain Spark overwrites
its tables; from scale 3 on, where that takes minutes, not while warming up. Queries that read neither orders nor line
items are left out on both sides: they have nothing to do.

Each scale has a lake and a session of its own. The sums are written beside the other results, as JSON and as a picture,
in seconds and in seconds of processor time, which do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bench.growth_picture import PROCESSOR, WALL, Point, draw
from bench.measure import Figure, geometric_mean, listed, median, processor_seconds, project, show
from bench.tpch22 import change_lines, charged, create, load, overwrite, reading, require_equal, table
from headrace.api.facade import Headrace
from headrace.demo import tpch22

WARM_UP = 3
TEN, LONG = 10, 3
PLAIN = "recomputed"
GOALS = {"close": 2.0, "everywhere": 4.0}
"""How many times as long refreshing may take at scale 10 as at scale 1, by where the changed keys are."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one step took: seconds by query, and processor time of all."""

    queries: dict[str, float]
    processor: float

    @property
    def seconds(self) -> float:
        """Seconds of all queries."""
        return sum(self.queries.values())


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure every scale, and by how much each kind grows from the first to the last."""
    figures: list[Figure] = []
    points: dict[str, list[Point]] = {WALL: [], PROCESSOR: []}
    for scale in options.scales:
        turns = _measure(options, scale)
        for measure, found in points.items():
            middle = {of: median([getattr(turn[of], measure) for turn in turns]) for of in (*GOALS, PLAIN)}
            found.append(Point(scale, **middle))
        figures += _figures(points[WALL][-1], points[PROCESSOR][-1], turns, options)
        written = {measure: [asdict(point) for point in found] for measure, found in points.items()}
        (options.results / "growth.json").write_text(json.dumps(written, indent=2) + "\n")
        for measure, found in points.items():
            (options.results / f"growth-{measure}.svg").write_text(draw(found, options.lines, measure))
    return figures + [each for measure, found in points.items() for each in _growth(measure, found)]


def _measure(options: argparse.Namespace, scale: float) -> list[dict[str, Taken]]:
    """Return the seconds of each turn of one scale, by kind."""
    names = reading(tpch22.NAMES)[: options.cases]
    warm_up, measured = min(options.warm_up, WARM_UP), []
    with project(options.master) as hr:
        load(hr, scale)
        create(hr, names, (options.mode,))
        for turn in range(warm_up + options.rounds):
            recomputes = turn >= warm_up or scale < LONG
            taken = _turn(hr, names, turn, options, scale, recomputes)
            told = ", ".join(
                f"{of} {each.seconds:.1f} s (processor {each.processor:.1f})" for of, each in taken.items()
            )
            print(f"  scale {scale:g}, {'turn' if turn >= warm_up else 'warming up'}: {told}", flush=True)
            if turn >= warm_up:
                measured.append(taken)
        require_equal(hr, options.mode, names)
    return measured


def _turn(
    hr: Headrace, names: list[str], turn: int, options: argparse.Namespace, scale: float, recomputes: bool
) -> dict[str, Taken]:
    """Change, refresh, change otherwise, and refresh and recompute, in turns who is first."""
    change_lines(hr, 2 * turn + 1, options.lines, scale, close=True)
    taken = {"close": _step(lambda: _refreshed(hr, names, options.mode))}
    change_lines(hr, 2 * turn + 2, options.lines, scale, close=False)
    steps: list[tuple[str, Callable[[], dict[str, float]]]] = [
        ("everywhere", lambda: _refreshed(hr, names, options.mode)),
        (PLAIN, lambda: {name: overwrite(hr, name) for name in names}),
    ]
    for kind, step in steps[: 2 if recomputes else 1][:: 1 if turn % 2 else -1]:
        taken[kind] = _step(step)
    return taken


def _step(step: Callable[[], dict[str, float]]) -> Taken:
    """Take a step's processor time."""
    before = processor_seconds()
    queries = step()
    return Taken(queries, processor_seconds() - before)


def _refreshed(hr: Headrace, names: list[str], mode: str) -> dict[str, float]:
    """Refresh all stream tables; return their seconds.

    One at a time, as the others are overwritten: side by side each would take the longer.
    """
    results = hr.refresh([table(mode, name) for name in names], max_concurrent=1)
    return charged(dict(zip(names, results, strict=True)))


def _figures(wall: Point, processor: Point, turns: list[dict[str, Taken]], options: argparse.Namespace) -> list[Figure]:
    """The figures of one scale: each query and all of them, how many times longer plain Spark took."""
    figures = []
    pair = f"plain Spark / {options.mode}"
    for kind in GOALS:
        label = f"{options.lines:,} line items changed, {kind}, scale {wall.scale:g}"
        ratios = []
        for name in turns[0][kind].queries:
            theirs, ours = ([turn[of].queries[name] for turn in turns] for of in (PLAIN, kind))
            ratios.append(median(theirs) / median(ours))
            detail = f"{listed(theirs)} s, {listed(ours)} s"
            figures.append(show(Figure("growth", f"{name}, {label}: {pair}", ratios[-1], "x", 1.0, True, detail)))
        mean = geometric_mean(ratios)
        figures.append(show(Figure("growth", f"geometric mean, {label}: {pair}", mean, "x", 1.0, True)))
        for measure, point in ((WALL, wall), (PROCESSOR, processor)):
            detail = f"plain Spark {point.recomputed:.1f} s"
            all_of = f"all {len(ratios)}, {label}, {measure}: {options.mode}"
            figures.append(show(Figure("growth", all_of, getattr(point, kind), "s", detail=detail)))
    return figures


def _growth(measure: str, points: list[Point]) -> list[Figure]:
    """How many times as long each kind takes over the most data as over the least."""
    first, last = points[0], points[-1]
    if first is last:
        return []
    figures, goals = [], GOALS if last.scale == TEN * first.scale and measure == WALL else {}
    for kind in (*GOALS, PLAIN):
        before, after = getattr(first, kind), getattr(last, kind)
        label = f"{kind}, scale {last.scale:g} against {first.scale:g}, {measure}"
        detail = f"{before:.1f} s, {after:.1f} s"
        figures.append(show(Figure("growth", label, after / before, "x", goals.get(kind), detail=detail)))
    return figures
