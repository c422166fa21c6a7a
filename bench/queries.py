"""FULL against DIFFERENTIAL over the 22 queries of TPC-H: each query twice, the same change, side by side in one run.

Orders leave and arrive with their line items (RF1, RF2), which 18 of the queries read. A query none of whose sources
changed, or whose result stayed the same without being computed, proves nothing: it is counted apart, not as a win.

What several queries read together (the change of a source, rows near it) is read by the one that comes first; here it
is charged in equal parts to all that read it, so that no query looks worse, or better, for its place in the alphabet.

From scale 10 on, FULL is left out of the turns of warming up: there it takes minutes, and each query has run twice by
then, to make its two tables.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import Figure, listed, median, project, show
from bench.tpch import change
from headrace.api import Headrace
from headrace.demo import tpch, tpch22
from headrace.engine.results import Mode, RefreshResult

MODES = ("FULL", "DIFFERENTIAL")
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
    """Seconds of one query's refreshes, by mode, and the modes in which DIFFERENTIAL ones really ran."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {mode: [] for mode in MODES})
    ran: set[Mode] = field(default_factory=set)

    @property
    def ratio(self) -> float:
        """How many times faster than FULL."""
        return median(self.seconds["FULL"]) / median(self.seconds["DIFFERENTIAL"])


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure every query at 0.1 % and 1 % of orders and line items changed, close together and from everywhere."""
    figures: list[Figure] = []
    with project(options.master) as hr:
        load(hr, options.scale)
        names = tpch22.NAMES[: options.cases]
        for mode in MODES:
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
                modes = MODES if measured or options.scale < TEN else MODES[1:]
                results = {name: refresh(hr, name, of, modes[:: 1 if turn % 2 else -1]) for name, of in times.items()}
                if measured:
                    for name, seconds in charged({n: each["DIFFERENTIAL"] for n, each in results.items()}).items():
                        times[name].seconds["DIFFERENTIAL"].append(seconds)
                        times[name].seconds["FULL"].append(results[name]["FULL"].seconds)
            figures += report(times, share, options.scale, close=close)
        wrong = [v.name for v in hr.verify([table("DIFFERENTIAL", name) for name in names]) if not v.ok]
        if wrong:
            raise SystemExit(f"measured tables are wrong: {wrong}")
    return figures


def table(mode: str, name: str) -> str:
    """A query's stream table in a mode."""
    return f"{mode.lower()}.{name}"


def refresh(hr: Headrace, name: str, times: Times, modes: Sequence[str]) -> dict[str, RefreshResult]:
    """Refresh one query in some modes, in this order."""
    results = {mode: hr.refresh(table(mode, name)) for mode in modes}
    times.ran.add(results["DIFFERENTIAL"].mode)
    return results


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


def report(times: dict[str, Times], share: float, scale: float, *, close: bool) -> list[Figure]:
    """One figure per query that was computed, the least and the geometric mean."""
    real = {name: each for name, each in times.items() if Mode.DIFFERENTIAL in each.ran}
    goals, least = (GOALS_AT_TEN, LEAST_AT_TEN) if scale >= TEN else (GOALS, LEAST)
    figures, changed = [], f"{share:.1%} changed{', close together' if close else ''}"
    for name, each in real.items():
        detail = ", ".join(f"{mode} {listed(seconds)} s" for mode, seconds in each.seconds.items())
        label = f"{name}, {changed}: FULL / DIFFERENTIAL"
        figures.append(show(Figure("queries", label, each.ratio, "x", least, True, detail)))
    mean = math.exp(sum(math.log(each.ratio) for each in real.values()) / len(real))
    apart = ", ".join(name for name in times if name not in real) or "none"
    label = f"geometric mean of {len(real)} queries, {changed}: FULL / DIFFERENTIAL"
    goal, detail = goals.get(share), f"no-ops, not counted: {apart}"
    figures.append(show(Figure("queries", label, mean, "x", goal, True, detail)))
    both = {mode: sum(median(each.seconds[mode]) for each in real.values()) for mode in MODES}
    label = f"all {len(real)} queries, {changed}: FULL / DIFFERENTIAL"
    detail = ", ".join(f"{mode} {seconds:.1f} s" for mode, seconds in both.items())
    return [*figures, show(Figure("queries", label, both["FULL"] / both["DIFFERENTIAL"], "x", None, True, detail))]
