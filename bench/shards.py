"""Two servers with shards against one: rows per second that a landing brings, and what reading alone does.

Each server has the same number of changed rows. What binds is seen from how many cores one server keeps busy already:
its backend decodes the log while this process reads it, and Spark has all cores.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import psutil

from bench.measure import Figure, listed, median, project, show
from bench.postgres import execute
from bench.servers import COLUMNS, FILL, server
from headrace.api.facade import Headrace
from headrace.sources.registry import kind_of

ROWS = 400_000
GOAL = 1.6
TURNS = 3


def run(options: argparse.Namespace) -> list[Figure]:
    """Land the same change of one server, and of two."""
    rows = int(ROWS * min(options.scale, 1))
    figures: list[Figure] = []
    with ExitStack() as stack, project(options.master) as hr:
        urls = [stack.enter_context(server()) for _ in range(2)]
        for place, url in enumerate(urls):
            fill = FILL.format(1 + place * 10 * rows, rows + place * 10 * rows)
            execute(url, f"CREATE TABLE big ({COLUMNS}); INSERT INTO big {fill}; ANALYZE big")
        hr.sources.create("one", urls[:1], ["big"])
        hr.sources.create("two", urls, ["big"])
        read: dict[str, list[float]] = {"one": [], "two": []}
        landed: dict[str, list[float]] = {"one": [], "two": []}
        busy: dict[str, list[float]] = {"one": [], "two": [], "reading one": [], "reading two": []}
        for turn in range(TURNS + 1):
            for url in urls:
                execute(url, "UPDATE big SET a = a + 1")
            for name, count in (("one", rows), ("two", 2 * rows)):
                begin, used = time.perf_counter(), processor()
                reading = reading_alone(hr, name)
                between = time.perf_counter(), processor()
                seconds = sum(result.seconds for result in hr.sources.land(name))
                if turn:  # the first one compiles
                    busy[f"reading {name}"].append((between[1] - used) / (between[0] - begin))
                    busy[name].append((processor() - between[1]) / (time.perf_counter() - between[0]))
                    read[name].append(count / reading)
                    landed[name].append(count / seconds)
        figures.append(compared("reading and spooling", read))
        figures.append(compared("whole landings", landed))
        for name, cores in busy.items():
            case = f"cores busy, of {psutil.cpu_count()}: {name}"
            figures.append(show(Figure("shards", case, median(cores), "cores", detail=listed(cores))))
    return figures


def reading_alone(hr: Headrace, name: str) -> float:
    """Seconds of reading what a source has, up to files; nothing is landed."""
    with hr._catalog.reading() as reader, TemporaryDirectory(prefix="hr-bench-spool-") as folder:
        source = reader.source(name)
        capture = kind_of(source.kind).open_capture(source, folder, lambda _: None, 9)
        begin = time.perf_counter()
        capture.land(source.position or {})
        seconds = time.perf_counter() - begin
        capture.clear()
    return seconds


def processor() -> float:
    """Seconds of processor time that this machine has spent."""
    spent = psutil.cpu_times()
    return float(spent.user + spent.system)


def compared(case: str, rates: dict[str, list[float]]) -> Figure:
    """How many times as many rows per second two servers give."""
    one, two = (list(rates[name]) for name in ("one", "two"))
    detail = f"{listed([r / 1e3 for r in two])} against {listed([r / 1e3 for r in one])} thousand rows/s"
    return show(
        Figure("shards", f"{case}, two servers against one", median(two) / median(one), "x", GOAL, True, detail)
    )
