"""How long it takes to find what stream tables belong together, of graphs that are hard for it; no Spark, no catalog.

Every command that looks at schedules or groups does so once, in a process that remembers nothing. Times are of the
processor: they say the same on a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
import statistics
import time
from collections.abc import Callable

from bench.measure import Figure, show
from headrace.catalog import RefreshMode, Status, StreamTable
from headrace.names import LAKE, TableName
from headrace.refresh.groups.grouping import Defaults, Grouping, forget, grouping
from headrace.schedule.options import Consistency

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

Reads = Callable[[random.Random, int], int]
"""How many of the tables before it one reads, by its place."""


def _sparse(chance: random.Random, place: int) -> int:
    return min(place, chance.randint(1, 3))


def _dense(_: random.Random, place: int) -> int:
    return place // 10


CASES: tuple[tuple[int, str, Reads, float], ...] = (
    (1_000, "each reads 1 to 3 before it", _sparse, 0.2),
    (1_000, "each reads a tenth of those before it", _dense, 0.2),
    (10_000, "each reads 1 to 3 before it", _sparse, 2.0),
)


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure all shapes, with diamonds kept together, aligned, and with nothing kept."""
    figures = []
    for tables, shape, reads, goal in CASES:
        made = _tables(tables, reads)
        for consistency in Consistency:
            seconds, found = _seconds(made, consistency, options.rounds)
            units = len(found.units.members)
            detail = f"{len(found.meetings.bottoms):,} tables where ways meet, {units:,} units"
            case = f"groups of {tables:,} tables, {shape}, {consistency}"
            figures.append(show(Figure("diamonds", case, seconds, "s", goal, detail=detail)))
    return figures


def _tables(tables: int, reads: Reads) -> dict[TableName, StreamTable]:
    chance = random.Random(5)
    names = [TableName(LAKE, ("shop",), f"t{place:05}") for place in range(tables)]
    return {
        name: StreamTable(
            id=place,
            name=name,
            query="",
            sources=tuple(chance.sample(names[:place], reads(chance, place))),
            refresh_mode=RefreshMode.AUTO,
            schedule=None,
            details={},
            companion=None,
            log=None,
            generation=1,
            status=Status.ACTIVE,
            stopped_code=None,
            stopped_reason=None,
            created_at=NOW,
            updated_at=NOW,
        )
        for place, name in enumerate(names)
    }


def _seconds(made: dict[TableName, StreamTable], consistency: Consistency, rounds: int) -> tuple[float, Grouping]:
    found, took = None, []
    for _ in range(rounds):
        forget()
        begun = time.process_time()
        found = grouping(made, Defaults(consistency))
        took.append(time.process_time() - begun)
    assert found is not None
    return statistics.median(took), found
