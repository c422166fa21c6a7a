"""What capture costs those who write: the same statements on a captured table and on another one, one after the other.

Without fsync, so that no waiting for a disk hides what a trigger takes. Tables take turns statement by statement: what
the server does in between (checkpoints, vacuum) meets all of them alike; its log goes into files that it has already.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence

import psycopg

from bench.measure import Figure, listed, median, show
from bench.servers import COLUMNS, FILL, WAYS, server, with_spare_files
from headrace.names import LAKE, TableName
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import Captured, PostgresCapture

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
        with_spare_files(db)
        for table in tables:
            db.execute(f"CREATE TABLE {table} ({COLUMNS})")
            if table in WAYS:
                install(url, table)
        for turn in range(options.rounds + 1):
            for case, statements in cases(turn * (SINGLE + TIMES * BULK)):
                spent = executed(db, statements, tables)
                for table in tables if turn else ():  # the first turn plans statements and makes room in files
                    times[table].setdefault(case, []).append(spent[table])
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


def cases(start: int) -> Iterator[tuple[str, list[str]]]:
    """Statements that write single rows, and many at once; `TABLE` stands for the table."""
    yield INSERTED, [f"INSERT INTO TABLE {FILL.format(at, at)}" for at in range(start, start + SINGLE)]
    parts = [(at, at + BULK - 1) for at in range(start + SINGLE, start + SINGLE + TIMES * BULK, BULK)]
    yield AT_ONCE, [f"INSERT INTO TABLE {FILL.format(*p)}" for p in parts]
    update, delete = "UPDATE TABLE SET a = a + 1 WHERE id", "DELETE FROM TABLE WHERE id"
    for name, statement in ((UPDATED, update), (DELETED, delete)):
        yield name, [f"{statement} BETWEEN {first} AND {last}" for first, last in parts]


def executed(db: psycopg.Connection, statements: Sequence[str], tables: Sequence[str]) -> dict[str, float]:
    """Seconds that statements take on each table, each in a transaction of its own."""
    spent = dict.fromkeys(tables, 0.0)
    for number, statement in enumerate(statements):
        for table in tables if number % 2 else reversed(tables):
            text = statement.replace("TABLE", table)
            begin = time.perf_counter()
            db.execute(text)
            spent[table] += time.perf_counter() - begin
    return spent
