"""FULL against DIFFERENTIAL, or AUTO, over the 22 queries of TPC-H: each twice, side by side in one run.

Orders leave and arrive with their line items (RF1, RF2), which 18 of the queries read. A query none of whose sources
changed, or whose result stayed the same without being computed, proves nothing: it is counted apart, not as a win.

What several queries read together (the change of a source, rows near it) is read by the one that comes first; here it
is charged in equal parts to all that read it, so that no query looks worse, or better, for its place in the alphabet.

From scale 10 on, FULL is left out of the turns of warming up: there it takes minutes, and each query has run twice by
then, to make its two tables.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import Figure, geometric_mean, listed, median, project, show
from bench.tpch import change
from headrace.api.facade import Headrace
from headrace.demo import tpch, tpch22
from headrace.results.refresh_results import Mode, RefreshResult

CHANGES = ((0.001, False), (0.001, True), (0.01, False), (0.01, True))
"""How much changes, and whether the keys are close together, as TPC-H's own are, or from everywhere."""
TOGETHER = ("read change of", "collect")
"""How the titles of stages begin that read for several stream tables."""
WARM_UP = 4
GOALS = {0.001: 2.0}
LEAST = 0.9
TEN = 10
GOALS_AT_TEN = {0.001: 8.0, 0.01: 5.0}
LEAST_AT_TEN = 0.95
"""Goals from scale 10 on, where fixed cost is a smaller part."""


@dataclass(slots=True)
class Times:
    """Seconds of one query's refreshes, under FULL and under the other mode, and how those under the other one ran."""

    full: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    ran: list[Mode] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times faster than FULL."""
        return median(self.full) / median(self.other)


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure every query at 0.1 % and 1 % of orders and line items changed, close together and from everywhere."""
    figures: list[Figure] = []
    modes = ("FULL", options.mode)
    with project(options.master) as hr:
        load(hr, options.scale)
        names = tpch22.NAMES[: options.cases]
        for mode in modes:
            hr.sql(f"CREATE NAMESPACE lake.{mode.lower()}")
            for name in names:
                hr.create_stream_table(table(mode, name), tpch22.text(name), refresh_mode=mode)
        number = 0
        for share, close in CHANGES:
            warm_up = 1 if number else WARM_UP
            times = {name: Times() for name in names}
            for turn in range(warm_up + options.rounds):
                number += 1
                change(hr, number, share, options.scale if close else None)
                measured = turn >= warm_up
                run = (modes if measured or options.scale < TEN else modes[1:])[:: 1 if turn % 2 else -1]
                results = {name: {mode: hr.refresh(table(mode, name)) for mode in run} for name in names}
                if measured:
                    for name, seconds in charged({n: each[options.mode] for n, each in results.items()}).items():
                        times[name].other.append(seconds)
                        times[name].ran.append(results[name][options.mode].mode)
                        times[name].full.append(results[name]["FULL"].seconds)
            figures += report(times, options.mode, share, options.scale, close=close)
        wrong = [v.name for v in hr.verify([table(options.mode, name) for name in names]) if not v.ok]
        if wrong:
            raise SystemExit(f"measured tables are wrong: {wrong}")
    return figures


def table(mode: str, name: str) -> str:
    """A query's stream table in a mode."""
    return f"{mode.lower()}.{name}"


def charged(results: Mapping[str, RefreshResult]) -> dict[str, float]:
    """Seconds of each refresh; what some of them read together is charged to all of these in equal parts.

    Args:
        results: All refreshes of one turn.
    """
    together: dict[str, list[float]] = defaultdict(list)
    for result in results.values():
        for title, seconds in result.stages.items():
            if title.startswith(TOGETHER):
                together[title].append(seconds)
    seconds = {}
    for name, result in results.items():
        own = [title for title in result.stages if title in together]
        parts = (sum(together[title]) / len(together[title]) - result.stages[title] for title in own)
        seconds[name] = result.seconds + sum(parts)
    return seconds


def load(hr: Headrace, scale: float) -> None:
    """Generate and load all tables."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="headrace-tpch-") as folder:
        tpch.generate(Path(folder), scale)
        for statement in tpch.load_statements(Path(folder)):
            hr.sql(statement)
    hr.sql("USE lake.tpch")
    print(f"  TPC-H at scale {scale:g} loaded in {time.perf_counter() - start:.0f} s", flush=True)


def report(times: dict[str, Times], mode: str, share: float, scale: float, *, close: bool) -> list[Figure]:
    """One figure per query that was computed, the least and the geometric mean."""
    real = {name: each for name, each in times.items() if {Mode.DIFFERENTIAL, Mode.FULL} & set(each.ran)}
    goals, least = (GOALS_AT_TEN, LEAST_AT_TEN) if scale >= TEN else (GOALS, LEAST)
    figures, changed = [], f"{share:.1%} changed{', close together' if close else ''}"
    for name, each in real.items():
        detail = f"FULL {listed(each.full)} s, {mode} {listed(each.other)} s"
        if mode == "AUTO":
            detail += f" by {', '.join(each.ran)}"
        label = f"{name}, {changed}: FULL / {mode}"
        figures.append(show(Figure("queries", label, each.ratio, "x", least, True, detail)))
    mean = geometric_mean([each.ratio for each in real.values()])
    apart = ", ".join(name for name in times if name not in real) or "none"
    label = f"geometric mean of {len(real)} queries, {changed}: FULL / {mode}"
    goal, detail = goals.get(share), f"no-ops, not counted: {apart}"
    figures.append(show(Figure("queries", label, mean, "x", goal, True, detail)))
    full, other = (sum(map(median, values)) for values in zip(*((e.full, e.other) for e in real.values()), strict=True))
    label, detail = f"all {len(real)} queries, {changed}: FULL / {mode}", f"FULL {full:.1f} s, {mode} {other:.1f} s"
    return [*figures, show(Figure("queries", label, full / other, "x", None, True, detail))]
