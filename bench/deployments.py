"""How far a public stream table is behind its source while a green of it is loaded, against how far it is otherwise.

A scheduler with two slots follows changes of one row, at a pace that leaves room. The lag is the time from the source's
commit to the publication that has it. It is measured alone and beside greens in turns; a green is cancelled when it is
loaded, and the next one begins. How long the refreshes themselves took stands beside the lag.
"""

from __future__ import annotations

import argparse
import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.measure import Figure, listed, median, project, show
from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.names import LAKE, TableName

ROWS = 20_000_000
KEYS = 100_000
SLOTS = 2
CHANGES = 8
"""Changes that are followed in a turn of either kind; as many turns as rounds are asked for."""
PACE = (3.0, 5.0)
"""Seconds from one change to the next, drawn anew for each: at one pace, changes would keep falling on the same
moment between two looks of the scheduler at its sources, another one beside greens than alone."""
GOAL = 1.2
LOOK_SECONDS = 0.01
PATIENCE = 300.0

BLUE = TableName(LAKE, ("lag",), "totals")
QUERY = "SELECT k, sum(amount) AS amount, count(*) AS n FROM lag.facts GROUP BY k"
GREEN = "SELECT k, sum(length(sha2(CAST(id + {} AS STRING), 512))) AS amount, count(*) AS n FROM lag.facts GROUP BY k"
"""Takes ten times as long to load, so that several changes fall into one load."""


@dataclass
class Turns:
    """What was measured of one kind.

    Args:
        lags: Seconds from commits to publications.
        refreshes: Seconds that these refreshes took.
        loads: Greens that were loaded meanwhile.
    """

    lags: list[float] = field(default_factory=list)
    refreshes: list[float] = field(default_factory=list)
    loads: int = 0

    def __str__(self) -> str:
        return f"{median(self.lags):.2f} s {listed(self.lags)}, refreshes {median(self.refreshes):.2f} s"


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure one aggregate over a large table."""
    with project(options.master) as hr:
        hr.spark.sql("CREATE NAMESPACE lake.lag")
        hr.spark.sql(
            f"CREATE TABLE lake.lag.facts USING iceberg AS SELECT id, id % {KEYS} AS k, id % 97 AS amount "
            f"FROM range({ROWS})"
        )
        hr.create_stream_table(str(BLUE), QUERY, schedule="ON CHANGE", refresh_mode="DIFFERENTIAL")
        stopping = threading.Event()
        scheduler = threading.Thread(target=lambda: hr.run(stopping=stopping, max_concurrent=SLOTS))
        scheduler.start()
        alone, beside, numbers = Turns(), Turns(), itertools.count(2)
        try:
            _follow(hr, Turns(), 2 * CHANGES, lambda: True)  # warms up
            _beside_greens(hr, Turns(), CHANGES, numbers)
            for turn in range(options.rounds):
                _follow(hr, alone, CHANGES, lambda: True)
                _beside_greens(hr, beside, CHANGES, numbers)
                print(f"  turn {turn + 1}: alone {alone}; beside {beside}", flush=True)
        finally:
            stopping.set()
            scheduler.join()
    case = f"lag of a stream table while greens of it are loaded, {SLOTS} slots, against alone"
    detail = f"beside {beside.loads} loads {beside}; alone {alone}"
    return [show(Figure("deployments", case, median(beside.lags) / median(alone.lags), "x", GOAL, detail=detail))]


def _beside_greens(hr: Headrace, into: Turns, wanted: int, numbers: itertools.count[int]) -> None:
    """Follow changes while greens are loaded, one after the other."""
    until = len(into.lags) + wanted
    while len(into.lags) < until:
        into.loads += 1
        hr.create_green(str(BLUE), GREEN.format(next(numbers)), initialize=False)
        _wait(lambda: hr.green_status()[0].progress is not None or not _loading(hr))
        _follow(hr, into, until - len(into.lags), lambda: _loading(hr))
        _wait(lambda: not _loading(hr))
        _cancel(hr)


def _loading(hr: Headrace) -> bool:
    return hr.green_status()[0].state == "loading"


def _follow(hr: Headrace, into: Turns, wanted: int, goes_on: Callable[[], bool]) -> None:
    """Change one row after the other; note what was published while it went on."""
    for number in range(wanted):
        if not goes_on():
            return
        begun, version, pace = time.monotonic(), _version(hr), random.uniform(*PACE)
        hr.spark.sql(f"INSERT INTO lake.lag.facts VALUES ({number}, {number % KEYS}, 1)")
        committed = time.monotonic()
        _wait(lambda seen=version: _version(hr) > seen)  # type: ignore[misc]
        lag = time.monotonic() - committed
        if goes_on():
            into.lags.append(lag)
            into.refreshes.append(hr.history(str(BLUE), limit=1)[0].seconds)
        time.sleep(max(0.0, pace - (time.monotonic() - begun)))


def _version(hr: Headrace) -> int:
    with hr._catalog.reading() as reader:
        return reader.newest_versions()[BLUE].version


def _wait(until: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > give_up:
            raise TimeoutError("nothing was published")
        time.sleep(LOOK_SECONDS)


def _cancel(hr: Headrace) -> None:
    """Drop the green, once nobody refreshes it any more."""
    while True:
        try:
            hr.cancel_green(deployment="green")
        except HeadraceError as error:
            if not error.retryable:
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return
