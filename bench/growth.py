"""The same number of changed line items over ever more data: refreshing, beside recomputing by plain Spark.

In each turn line items and their orders close together change and all stream tables are refreshed, then as many from
everywhere change and they are refreshed again; before or after that second refresh, in turns, plain Spark overwrites
its tables. Queries that read neither orders nor line items are left out on both sides: they have nothing to do.

Each scale has a lake and a session of its own. The sums are written beside the other results, as JSON and as a picture.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict

from bench.growth_picture import Point, draw
from bench.measure import Figure, geometric_mean, listed, median, project, show
from bench.tpch22 import change_lines, charged, create, load, overwrite, reading, require_equal, table
from headrace.api.facade import Headrace
from headrace.demo import tpch22

WARM_UP = 3
TEN = 10
PLAIN = "recomputed"
GOALS = {"close": 2.0, "everywhere": 4.0}
"""How many times as long refreshing may take at scale 10 as at scale 1, by where the changed keys are."""

Seconds = dict[str, float]
"""By query."""


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure every scale, and by how much each kind grows from the first to the last."""
    figures: list[Figure] = []
    points: list[Point] = []
    for scale in options.scales:
        turns = _measure(options, scale)
        point = Point(scale, **{of: median([sum(turn[of].values()) for turn in turns]) for of in (*GOALS, PLAIN)})
        points.append(point)
        figures += _figures(point, turns, options)
        (options.results / "growth.json").write_text(json.dumps([asdict(p) for p in points], indent=2) + "\n")
        (options.results / "growth.svg").write_text(draw(points, options.lines))
    return figures + (_growth(points[0], points[-1]) if len(points) > 1 else [])


def _measure(options: argparse.Namespace, scale: float) -> list[dict[str, Seconds]]:
    """Return the seconds of each turn of one scale, by kind."""
    names = reading(tpch22.NAMES)[: options.cases]
    warm_up, measured = min(options.warm_up, WARM_UP), []
    with project(options.master) as hr:
        load(hr, scale)
        create(hr, names, (options.mode,))
        for turn in range(warm_up + options.rounds):
            recomputes = turn >= warm_up or scale < TEN  # there it takes minutes, and each ran to make its table
            taken = _turn(hr, names, turn, options, scale, recomputes)
            told = ", ".join(f"{of} {sum(seconds.values()):.1f} s" for of, seconds in taken.items())
            print(f"  scale {scale:g}, {'turn' if turn >= warm_up else 'warming up'}: {told}", flush=True)
            if turn >= warm_up:
                measured.append(taken)
        require_equal(hr, options.mode, names)
    return measured


def _turn(
    hr: Headrace, names: list[str], turn: int, options: argparse.Namespace, scale: float, recomputes: bool
) -> dict[str, Seconds]:
    """Change, refresh, change otherwise, and refresh and recompute, in turns who is first."""
    change_lines(hr, 2 * turn + 1, options.lines, scale, close=True)
    taken = {"close": _refreshed(hr, names, options.mode)}
    change_lines(hr, 2 * turn + 2, options.lines, scale, close=False)
    steps: list[tuple[str, Callable[[], Seconds]]] = [("everywhere", lambda: _refreshed(hr, names, options.mode))]
    if recomputes:
        steps.append((PLAIN, lambda: {name: overwrite(hr, name) for name in names}))
    for kind, step in steps[:: 1 if turn % 2 else -1]:
        taken[kind] = step()
    return taken


def _refreshed(hr: Headrace, names: list[str], mode: str) -> Seconds:
    """Refresh all stream tables; return their seconds."""
    results = hr.refresh([table(mode, name) for name in names])
    return charged(dict(zip(names, results, strict=True)))


def _figures(point: Point, turns: list[dict[str, Seconds]], options: argparse.Namespace) -> list[Figure]:
    """The figures of one scale: each query and all of them, how many times longer plain Spark took."""
    figures = []
    pair = f"plain Spark / {options.mode}"
    for kind in GOALS:
        label = f"{options.lines:,} line items changed, {kind}, scale {point.scale:g}"
        ratios = []
        for name in turns[0][kind]:
            theirs, ours = ([turn[of][name] for turn in turns] for of in (PLAIN, kind))
            ratios.append(median(theirs) / median(ours))
            detail = f"{listed(theirs)} s, {listed(ours)} s"
            figures.append(show(Figure("growth", f"{name}, {label}: {pair}", ratios[-1], "x", 1.0, True, detail)))
        mean = geometric_mean(ratios)
        figures.append(show(Figure("growth", f"geometric mean, {label}: {pair}", mean, "x", 1.0, True)))
        seconds, detail = getattr(point, kind), f"plain Spark {point.recomputed:.1f} s"
        figures.append(
            show(Figure("growth", f"all {len(ratios)}, {label}: {options.mode}", seconds, "s", detail=detail))
        )
    return figures


def _growth(first: Point, last: Point) -> list[Figure]:
    """How many times as long each kind takes over the most data as over the least."""
    figures, goals = [], GOALS if last.scale == TEN * first.scale else {}
    for kind in (*GOALS, PLAIN):
        before, after = getattr(first, kind), getattr(last, kind)
        label = f"{kind}, scale {last.scale:g} against {first.scale:g}"
        detail = f"{before:.1f} s, {after:.1f} s"
        figures.append(show(Figure("growth", label, after / before, "x", goals.get(kind), detail=detail)))
    return figures
