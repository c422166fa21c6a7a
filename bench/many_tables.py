"""Ten thousand stream tables and ten schedulers (one with SQLite), without Spark.

Catalog, pointers and metadata files are real. A refresh publishes new pointers instead of computing, so that nothing
but coordination takes time. The tables are a random graph over a tenth as many base tables: three in ten read base
tables only, the others one or two of the four hundred stream tables before them. Their texts and details are as long as
those of queries with twelve columns.

Measured are the first load by all schedulers at once, a look of a scheduler while nothing moves, the refresh of what
reads one base table that changed, `status`, and the memory of a scheduler.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog_kit.ready import ready_project
from kit.pipelines import Lake, full

from bench.measure import Figure, show
from bench.servers import server
from headrace.algebra.schema import Column
from headrace.catalog import Catalog, Definition, Publication
from headrace.config import Settings, load
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.names import TableName
from headrace.semantics import Semantics

SOURCES_EACH = 10
"""Stream tables for each base table."""

NEAR = 400
"""How far back a stream table looks for those that it reads."""

COLUMNS = tuple(Column(f"column_{i}", "decimal(12,2)" if i % 3 else "string") for i in range(12))
MEMORY, STATUS = 500.0, 2.0
LOOK_EVERY, TELL_EVERY = 2.0, 60.0
"""Seconds from one look at how many tables are loaded to the next, and until it is told."""


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure with a catalog in SQLite, and with one in PostgreSQL."""
    figures = []
    for name, place, schedulers in (("SQLite", _sqlite, 1), ("PostgreSQL", _postgres, options.schedulers)):
        with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder, place(Path(folder)) as settings:
            figures += _measure(name, settings, options.tables, schedulers)
    return figures


@contextmanager
def _sqlite(folder: Path) -> Iterator[Settings]:
    yield ready_project(folder)


@contextmanager
def _postgres(folder: Path) -> Iterator[Settings]:
    with server() as url:
        file = ready_project(folder).root / "headrace.toml"
        file.write_text(file.read_text().replace("catalog_url = ", f'catalog_url = "{url}"\n# '))
        Catalog.open(url).close()
        yield load(folder)


def _measure(name: str, settings: Settings, count: int, schedulers: int) -> list[Figure]:
    where = f"{count:,} tables, catalog in {name}"
    seconds = define(settings, count)
    print(f"  {where}: defined in {seconds:.1f} s", flush=True)
    loads = _load(settings, schedulers, count)
    spent, sent = (sum(one[key] for one in loads) for key in ("processor", "statements"))
    look, change, status = (_ask(settings, kind) for kind in ("look", "change", "status"))
    detail = (
        f"{max(one['seconds'] for one in loads):.0f} s, {sent / count:.0f} statements a table with those of looks; "
        f"most memory of a scheduler {max(one['memory'] for one in loads):.0f} MB"
    )
    changed = f"{change['refreshed']} refreshes, {change['statements'] / change['refreshed']:.0f} statements each"
    return [
        show(figure)
        for figure in (
            Figure(
                "many-tables",
                f"first load by {schedulers} schedulers, {where}, processor time a table",
                spent / count * 1000,
                "ms",
                detail=detail,
            ),
            Figure(
                "many-tables",
                f"look while nothing moves, {where}",
                look["seconds"],
                "s",
                detail=f"{look['statements']} statements; the first one of the process {look['first']:.2f} s",
            ),
            Figure(
                "many-tables",
                f"one base table changed, {where}, processor time a refresh",
                change["processor"] / change["refreshed"] * 1000,
                "ms",
                detail=changed,
            ),
            Figure(
                "many-tables",
                f"memory of a scheduler, {where}",
                change["memory"],
                "MB",
                MEMORY,
                detail="without Spark's driver, and without PySpark",
            ),
            Figure(
                "many-tables",
                f"status, {where}",
                status["seconds"],
                "s",
                STATUS,
                detail=f"{status['statements']} statements, {status['memory']:.0f} MB",
            ),
        )
    ]


def define(settings: Settings, count: int) -> float:
    """Define stream tables over base tables that exist; return the seconds of the first."""
    chance = random.Random(3)
    bases = [f"base{i:05}" for i in range(max(1, count // SOURCES_EACH))]
    lake = Lake(settings.catalog_url, settings.root)
    lake.base(*(f"s.{base}" for base in bases))
    names = [f"t{i:05}" for i in range(count)]
    definitions = []
    for place, name in enumerate(names):
        below = names[max(0, place - NEAR) : place]
        if place < len(bases) or chance.random() < 0.3:
            reads = (full(chance.choice(bases)),)
        else:
            reads = tuple(full(x) for x in chance.sample(below, chance.choice((1, 1, 2))))
        definitions.append(_definition(full(name), reads))
    begun = time.perf_counter()
    with Catalog.open(settings.catalog_url) as catalog:
        catalog.publish(Publication(definitions=tuple(definitions)))
    return time.perf_counter() - begun


def _definition(name: TableName, reads: tuple[TableName, ...]) -> Definition:
    sums = ", ".join(f"sum(x.{column.name}) AS {column.name}" for column in COLUMNS)
    query = f"SELECT {sums} FROM {' JOIN '.join(map(str, reads))} GROUP BY column_0"
    names = tuple(column.name for column in COLUMNS)
    uses = tuple(SourceUse(r, COLUMNS[:6], names, tuple(range(6)), f"uuid-{r}") for r in reads)
    details = Details(query, ("lake", "s"), Semantics("UTC", True, False), COLUMNS, uses, {}, (), COLUMNS[:4])
    return Definition(name, query, reads, schedule="ON CHANGE", details=to_json(details))


def _load(settings: Settings, schedulers: int, count: int) -> list[dict[str, float]]:
    """Have schedulers run, as `headrace run` does, until all tables are loaded; return what each has measured."""
    started = [_start(settings, "load", schedulers) for _ in range(schedulers)]
    begun = told = time.perf_counter()
    loaded = 0
    with Catalog.open(settings.catalog_url) as catalog:
        while loaded < count and all(process.poll() is None for process in started):
            time.sleep(LOOK_EVERY)
            loaded = len(catalog.frontiers())
            if time.perf_counter() - told > TELL_EVERY:
                told = time.perf_counter()
                print(f"    {loaded:,} loaded after {told - begun:.0f} s", flush=True)
    for process in started:
        process.terminate()
    loads = [_said(process) for process in started]
    if loaded < count or any(one["failed"] for one in loads):
        raise SystemExit(f"{loaded} of {count} were loaded: {loads}")
    return loads


def _ask(settings: Settings, kind: str) -> dict[str, float]:
    """Run one process, and return what it has measured."""
    return _said(_start(settings, kind))


def _start(settings: Settings, kind: str, schedulers: int = 1) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "bench.many_tables_worker", str(settings.root), kind, str(schedulers)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _said(process: subprocess.Popen[str]) -> dict[str, float]:
    text = process.communicate()[0]
    if process.returncode:
        raise SystemExit("a process of the bench failed")
    found: dict[str, float] = json.loads(text.splitlines()[-1])
    return found
