"""What capture costs those who write: the same statements on a captured table and on another one, in turns.

Without fsync, so that no waiting for a disk hides what a trigger takes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator

import psycopg

from bench.measure import Figure, listed, median, show
from bench.servers import COLUMNS, FILL, WAYS, server
from headrace.names import LAKE, TableName
from headrace.sources.postgres.capture import Captured, PostgresCapture
from headrace.sources.postgres.spool import Spool
from headrace.sources.postgres.trigger_capture import TriggerCapture

SINGLE = 2_000
BULK = 10_000
TIMES = 8
INSERTED, AT_ONCE = "single rows inserted", f"{BULK:,} rows inserted at once"
UPDATED, DELETED = f"{BULK:,} rows updated at once", f"{BULK:,} rows deleted at once"
GOALS: dict[str, dict[str, float]] = {
    "wal": {INSERTED: 1.1, AT_ONCE: 1.1, UPDATED: 1.1, DELETED: 1.1},
    "trigger": {INSERTED: 1.6, AT_ONCE: 1.5},
}
"""How many times as long statements may take; what is not named is only recorded."""


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure on three tables of one server: one that is not captured, and one for each way."""
    tables = ("plain", *WAYS)
    times: dict[str, dict[str, list[float]]] = {t: {} for t in tables}
    with server() as url, psycopg.connect(url, autocommit=True) as db:
        for table in tables:
            db.execute(f"CREATE TABLE {table} ({COLUMNS})")
            if table in WAYS:
                install(url, table)
        for turn in range(options.rounds + 1):
            for table in tables if turn % 2 else reversed(tables):
                for case, seconds in written(db, table, turn * (SINGLE + TIMES * BULK)):
                    if turn:  # the first turn plans statements and makes room in files
                        times[table].setdefault(case, []).append(seconds)
    return [compared(times, way, case) for way in WAYS for case in times["plain"]]


def install(url: str, table: str) -> None:
    """Capture a table in the way that it is called after."""
    names = {TableName(LAKE, ("load",), table): ("public", table)}
    kind = TriggerCapture if table == "trigger" else PostgresCapture
    with tempfile.TemporaryDirectory(prefix="hr-bench-spool-") as folder:
        kind(Captured(url, f"headrace_{table}", names), Spool(folder)).begin()


def compared(times: dict[str, dict[str, list[float]]], way: str, case: str) -> Figure:
    """How many times as long a case takes where it is captured."""
    plain, captured = times["plain"][case], times[way][case]
    detail = f"{listed(captured)} s against {listed(plain)} s"
    ratio = median(captured) / median(plain)
    return show(Figure("postgres-writes", f"{way}: {case}", ratio, "x", GOALS[way].get(case), detail=detail))


def written(db: psycopg.Connection, table: str, start: int) -> Iterator[tuple[str, float]]:
    """Seconds of writing single rows, and many at once."""
    single = [f"INSERT INTO {table} {FILL.format(at, at)}" for at in range(start, start + SINGLE)]
    yield INSERTED, executed(db, single)
    parts = [(at, at + BULK - 1) for at in range(start + SINGLE, start + SINGLE + TIMES * BULK, BULK)]
    yield AT_ONCE, executed(db, [f"INSERT INTO {table} {FILL.format(*p)}" for p in parts])
    update, delete = f"UPDATE {table} SET a = a + 1 WHERE id", f"DELETE FROM {table} WHERE id"
    for name, statement in ((UPDATED, update), (DELETED, delete)):
        yield name, executed(db, [f"{statement} BETWEEN {first} AND {last}" for first, last in parts])


def executed(db: psycopg.Connection, statements: list[str]) -> float:
    """Seconds that statements take, each in a transaction of its own."""
    begin = time.perf_counter()
    for statement in statements:
        db.execute(statement)
    return time.perf_counter() - begin
