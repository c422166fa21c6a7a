"""Whole pipelines: in parallel against one after the other, chains, wide pipelines, a diamond from end to end."""

from __future__ import annotations

import argparse
import time

from bench.measure import Figure, listed, median, project, show
from headrace.api.facade import Headrace

WARM_UP = 2
SETTLED = 10
"""Turns after which Java compiles little more: it takes a core from those that run side by side, not from one alone."""
PAUSE = 1.05
"""Seconds that ON CHANGE keeps between two refreshes of a table."""


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure all shapes in one warm session."""
    turns = max(options.rounds, 3)
    with project(options.master) as hr:
        hr.sql("CREATE NAMESPACE lake.p")
        return [
            _diamond(hr, turns),
            *_chain(hr, turns),
            *_independent(hr, turns),
            _wide(hr, turns),
            _fan_out(hr, turns),
        ]


def _source(hr: Headrace, name: str) -> None:
    hr.sql(f"CREATE TABLE p.{name} (k BIGINT, g BIGINT, v BIGINT) USING iceberg")
    hr.sql(f"INSERT INTO p.{name} SELECT id, id % 10, id FROM range(1000)")


def _stream(hr: Headrace, name: str, query: str) -> None:
    hr.create_stream_table(f"p.{name}", query, schedule="ON CHANGE", refresh_mode="DIFFERENTIAL")


def _change(hr: Headrace, name: str, number: int) -> None:
    hr.sql(f"INSERT INTO p.{name} VALUES ({10_000 + number}, {number % 10}, 1)")


def _once(hr: Headrace, tables: int, at_once: int | None = None) -> tuple[float, float]:
    """Seconds of one run of what is due, and of its refreshes added up."""
    time.sleep(PAUSE)
    start = time.perf_counter()
    summary = hr.run(once=True, max_concurrent=at_once)
    took = time.perf_counter() - start
    if len(summary.results) != tables or summary.failed:
        raise SystemExit(f"{len(summary.results)} of {tables} tables were refreshed")
    return took, sum(result.seconds for result in summary.results)


def _independent(hr: Headrace, turns: int) -> list[Figure]:
    _source(hr, "many")
    names = [f"m{i:02}" for i in range(50)]
    for i, name in enumerate(names):
        _stream(hr, name, f"SELECT k, v + {i} AS v FROM p.many WHERE v >= 0")
    times: dict[str, list[float]] = {"four at once": [], "one at once": [], "refresh, four at once": []}
    for turn in range(SETTLED + turns):
        for number, (way, measured) in enumerate(times.items()):
            _change(hr, "many", len(times) * turn + number)
            if way.startswith("refresh"):
                start = time.perf_counter()
                hr.refresh([f"p.{name}" for name in names], max_concurrent=4)
                took = time.perf_counter() - start
            else:
                took = _once(hr, len(names), 4 if way == "four at once" else 1)[0]
            if turn >= SETTLED:
                measured.append(took)
    for name in names:
        hr.drop_stream_table(f"p.{name}")
    parallel, single, listed_ones = times.values()
    detail = ", ".join(f"{way} {listed(seconds)} s" for way, seconds in times.items())
    label = "50 independent tables, 4 at once"
    return [
        show(Figure("pipelines", f"{label} against 1", median(single) / median(parallel), "x", 2, True, detail)),
        show(Figure("pipelines", f"{label} against hr.refresh", median(listed_ones) / median(parallel), "x")),
    ]


def _chain(hr: Headrace, turns: int) -> list[Figure]:
    _source(hr, "chained")
    names = [f"c{i}" for i in range(10)]
    for before, name in zip(("chained", *names), names, strict=False):
        _stream(hr, name, f"SELECT k, g, v FROM p.{before} WHERE v >= 0")
    ratios, overheads = [], []
    for turn in range(WARM_UP + turns):
        _change(hr, "chained", turn)
        took, refreshing = _once(hr, len(names))
        if turn >= WARM_UP:
            ratios.append(took / refreshing)
            overheads.append((took - refreshing) / len(names) * 1000)
    for name in reversed(names):
        hr.drop_stream_table(f"p.{name}")
    return [
        show(
            Figure("pipelines", "chain of 10, against its refreshes", median(ratios), "x", 1.3, False, listed(ratios))
        ),
        show(Figure("pipelines", "overhead per table", median(overheads), "ms", 15, False, listed(overheads))),
    ]


def _wide(hr: Headrace, turns: int) -> Figure:
    _source(hr, "wide")
    layers = [[f"w{layer}_{i:02}" for i in range(20)] for layer in range(3)]
    for layer, names in enumerate(layers):
        for i, name in enumerate(names):
            _stream(hr, name, f"SELECT k, g, v FROM p.{layers[layer - 1][i] if layer else 'wide'} WHERE v >= 0")
    ratios = []
    for turn in range(WARM_UP + turns):
        _change(hr, "wide", turn)
        took, refreshing = _once(hr, 60)
        if turn >= WARM_UP:
            ratios.append(refreshing / took)
    for names in reversed(layers):
        for name in names:
            hr.drop_stream_table(f"p.{name}")
    return show(Figure("pipelines", "3 layers of 20, refreshes under way", median(ratios), "x", detail=listed(ratios)))


def _fan_out(hr: Headrace, turns: int) -> Figure:
    _source(hr, "spread")
    _stream(hr, "hub", "SELECT k, g, v FROM p.spread WHERE v >= 0")
    names = [f"f{i:02}" for i in range(30)]
    for i, name in enumerate(names):
        _stream(hr, name, f"SELECT g, sum(v) + {i} AS total FROM p.hub GROUP BY g")
    ratios = []
    for turn in range(WARM_UP + turns):
        _change(hr, "spread", turn)
        took, refreshing = _once(hr, 1 + len(names))
        if turn >= WARM_UP:
            ratios.append(refreshing / took)
    for name in (*names, "hub"):
        hr.drop_stream_table(f"p.{name}")
    label = "one table read by 30, refreshes under way"
    return show(Figure("pipelines", label, median(ratios), "x", detail=listed(ratios)))


def _diamond(hr: Headrace, turns: int) -> Figure:
    _source(hr, "top")
    _stream(hr, "left", "SELECT k, g, v FROM p.top WHERE v > 0")
    _stream(hr, "right", "SELECT g, sum(v) AS total FROM p.top GROUP BY g")
    _stream(hr, "bottom", "SELECT l.k, l.v, r.total FROM p.left l JOIN p.right r ON l.g = r.g WHERE l.k > 900")
    times = []
    for turn in range(10 + turns):
        _change(hr, "top", turn)
        start = time.perf_counter()
        hr.refresh("p.bottom")
        if turn >= 10:
            times.append(time.perf_counter() - start)
    label = "diamond, one row from top to bottom, published"
    return show(Figure("pipelines", label, median(times), "s", 2.5, detail=listed(times)))
