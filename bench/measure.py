"""Figures, and the small things that measuring needs."""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

import headrace
from headrace.api.facade import Headrace
from headrace.project.new_project import init_project


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Args:
        suite: The suite it belongs to.
        case: What was measured.
        value: The figure.
        unit: `s`, `ms`, `rows/s` or `x` (a ratio).
        goal: What it must reach, None when it is only recorded.
        at_least: Whether larger is better.
        detail: What it was computed from.
    """

    suite: str
    case: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False
    detail: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "met": self.met}

    def __str__(self) -> str:
        goal = "" if self.goal is None else f" (goal {'≥' if self.at_least else '≤'} {self.goal:g} {self.unit})"
        return f"{self.case}: {self.value:.3g} {self.unit}{goal} {self.detail}"


def show(figure: Figure) -> Figure:
    """Print a figure as soon as it is there."""
    print(f"  {figure}", flush=True)
    return figure


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean, as of ratios."""
    return math.exp(sum(map(math.log, values)) / len(values))


def listed(values: list[float]) -> str:
    """All values, for the detail of a figure."""
    return "[" + ", ".join(f"{v:.2f}" for v in values) + "]"


def machine() -> dict[str, Any]:
    """What the figures are taken on; to be asked before anything is measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cores": os.cpu_count(), "memory_gib": round(memory, 1), "load_before": os.getloadavg()[0]}


def processor_seconds() -> float:
    """Processor time of this process and of those it has started, such as Spark's: what other work hardly changes."""
    this = psutil.Process()
    spent = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return float(sum(times.user + times.system for times in spent))


@contextmanager
def project(master: str, **options: str) -> Iterator[Headrace]:
    """A fresh project in a temporary folder, with Spark running."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        settings = init_project(Path(folder) / "project")
        settings = replace(settings, spark_master=master, spark_options={**settings.spark_options, **options})
        with headrace.open(settings) as hr:
            hr.sql("SELECT 1").collect()
            yield hr
