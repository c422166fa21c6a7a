"""Sessions that have just begun, and whole processes: refreshing against plain Spark, 0.1 % changed from everywhere.

`young`: two processes, one that refreshes and one that overwrites, each with a session of its own, follow three changes
in turns; the second and the third are told, and the first beside them. `cold`: after one change, `headrace refresh` of
everything as a whole process, Python and Spark included, against a process that overwrites everything, one table after
the other in both. Neither helps the other to warm up, as they would in one session.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench.measure import Figure, geometric_mean, listed, median, project, show
from bench.session import Answer, Session
from bench.tpch import change
from bench.tpch22 import create, load, reading, require_equal
from headrace.api.facade import Headrace
from headrace.demo import tpch22

SHARE = 0.001
TURNS = 3
COLD_GOAL = 1.5
Turn = tuple[Answer, Answer]
"""What refreshed and what overwrote, in one turn."""


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure young sessions, then whole processes."""
    names, numbers = tpch22.NAMES[: options.cases], count(1)
    with project(options.master) as hr:
        load(hr, options.scale)
        create(hr, names, (options.mode,))
        sessions = []
        for number in range(options.rounds):
            sessions.append(_session(hr, options, names, numbers, first=number % 2))
        figures = [f for turn in range(TURNS) for f in _young(turn, [s[turn] for s in sessions], options.mode)]
        figures += _cold(hr, options, names, numbers)
        require_equal(hr, options.mode, names)
    return figures


def _session(
    hr: Headrace, options: argparse.Namespace, names: tuple[str, ...], numbers: count[int], *, first: int
) -> list[Turn]:
    """Let two new sessions follow some changes; in turns the one and the other goes first."""
    turns = []
    given = (options.mode, names, options.master)
    with (
        Session(hr.settings.root, "refresh", *given) as refreshing,
        Session(hr.settings.root, "overwrite", *given) as overwriting,
    ):
        for turn in range(TURNS):
            change(hr, next(numbers), SHARE)
            if (first + turn) % 2:
                refreshed, overwritten = refreshing.turn(), overwriting.turn()
            else:
                overwritten = overwriting.turn()
                refreshed = refreshing.turn()
            turns.append((refreshed, overwritten))
    return turns


def _young(turn: int, measured: list[Turn], mode: str) -> list[Figure]:
    """The figures of one turn over all sessions: of each query, the geometric mean, and the sums."""
    label = f"refresh {turn + 1} of a session: plain Spark / {mode}"
    goal = 1.0 if turn else None
    names = [name for name in measured[0][0] if measured[0][0][name]["mode"] != "NO_CHANGE"]
    if not names:
        return []
    figures = []
    times = [_times(measured, names, of) for of in ("seconds", "processor")]
    for at, name in enumerate(names):
        theirs, ours = ([listed(side[at]) for side in sides] for sides in zip(*times, strict=True))
        last, other = (side[name] for side in measured[-1])
        detail = f"{theirs[0]} s, processor {theirs[1]} s, {other['jobs']} jobs; {ours[0]} s, processor {ours[1]} s, "
        detail += f"{last['mode']}, {last['jobs']} jobs"
        ratio = median(times[0][0][at]) / median(times[0][1][at])
        figures.append(show(Figure("young", f"{name}, {label}", ratio, "x", goal, True, detail)))
    mean = geometric_mean([figure.value for figure in figures])
    figures.append(show(Figure("young", f"geometric mean, {label}", mean, "x", goal, True)))
    for of, sides in zip(("seconds", "processor time"), times, strict=True):
        plain, ours_all = (sum(map(median, side)) for side in sides)
        detail = f"plain Spark {plain:.1f} s, {mode} {ours_all:.1f} s"
        case = f"all of them, {of}, {label}"
        figures.append(show(Figure("young", case, plain / ours_all, "x", goal, True, detail)))
    return figures


def _times(measured: list[Turn], names: list[str], of: str) -> tuple[list[list[float]], list[list[float]]]:
    """Of plain Spark and of refreshing: by query, what each session took."""
    refreshed, overwritten = ([[sides[at][name][of] for sides in measured] for name in names] for at in (0, 1))
    return overwritten, refreshed


def _cold(hr: Headrace, options: argparse.Namespace, names: tuple[str, ...], numbers: count[int]) -> list[Figure]:
    """Measure whole processes, in turns the one and the other first."""
    ours: list[float] = []
    theirs: list[float] = []
    needless: list[float] = []

    def refresh() -> None:
        command = [str(Path(sys.executable).with_name("headrace")), "--no-serve", "refresh", "--max-concurrent", "1"]
        ours.append(_process(command, hr))

    def overwrite() -> None:
        start = time.perf_counter()
        with Session(hr.settings.root, "overwrite", options.mode, names, options.master) as session:
            answer = session.turn()
        theirs.append(time.perf_counter() - start)
        needless.append(sum(answer[name]["seconds"] for name in set(names) - set(reading(names))))

    for turn in range(options.rounds):
        change(hr, next(numbers), SHARE)
        both: list[Callable[[], None]] = [refresh, overwrite]
        for step in both[:: 1 if turn % 2 else -1]:
            step()
    detail = (
        f"plain Spark {listed(theirs)} s, of which {listed(needless)} s for what read nothing that changed; "
        f"headrace refresh {listed(ours)} s"
    )
    label = f"{len(names)} tables, a whole process: plain Spark / headrace refresh"
    return [show(Figure("young", label, median(theirs) / median(ours), "x", COLD_GOAL, True, detail))]


def _process(command: list[str], hr: Headrace) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=hr.settings.root, capture_output=True, check=True)
    return time.perf_counter() - start
