"""PostgreSQL as a source, captured in both ways: the first snapshot, and landings of a million changed rows.

Whole landings, from the first question to the server until it is told to forget: reading, decoding, Spark, publishing.
"""

from __future__ import annotations

import argparse

import psycopg

from bench.measure import Figure, project, show
from bench.servers import COLUMNS, FILL, WAYS, database, server
from headrace.api.facade import Headrace

ROWS = 1_000_000
SNAPSHOT = 200_000
LANDING = {"wal": 50_000, "trigger": 100_000}
"""Rows per second that must be reached."""

CASES = (
    ("inserted", f"INSERT INTO big {FILL}"),
    ("updated", "UPDATE big SET a = a + 1 WHERE id BETWEEN {} AND {}"),
    ("deleted", "DELETE FROM big WHERE id BETWEEN {} AND {}"),
)


def run(options: argparse.Namespace) -> list[Figure]:
    """Both ways land the same statements, each in a database of its own: a slot decodes what triggers write, too."""
    rows = int(ROWS * min(options.scale, 1))
    with server() as url, project(options.master) as hr:
        urls = {way: database(url, way) for way in WAYS}
        for of in urls.values():
            execute(of, f"CREATE TABLE big ({COLUMNS}); INSERT INTO big {FILL.format(1, rows)}; ANALYZE big")
        figures = [snapshot(hr, urls[way], rows, way, session) for session in ("cold", "warm") for way in WAYS]
        batches = ((2 * rows + 1, rows // 10), (rows + 1, rows))  # the first one compiles what the other runs
        for case, statement in CASES[: options.cases]:
            for first, count in batches:
                goals = LANDING if count == rows else {}
                for way in WAYS:
                    execute(urls[way], statement.format(first, first + count - 1))
                    figures.append(landing(hr, count, way, case, goals.get(way)))
        return figures


def execute(url: str, statement: str) -> None:
    """Run a statement, and commit it."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(statement)


def snapshot(hr: Headrace, url: str, rows: int, way: str, session: str) -> Figure:
    """Rows per second of a first snapshot, from CREATE SOURCE to the published mirror."""
    if session == "warm":
        hr.sources.drop(way)
    result = hr.sources.create(way, url, ["big"], capture=way)
    assert result is not None, "the source is new"
    label, detail = f"{way}: snapshot of {rows:,} rows, {session} session", f"{result.seconds:.1f} s"
    return show(Figure("postgres", label, rows / result.seconds, "rows/s", SNAPSHOT, True, detail))


def landing(hr: Headrace, rows: int, way: str, case: str, goal: float | None) -> Figure:
    """Rows per second of all landings that a statement takes, from reading to acknowledging."""
    seconds = sum(r.seconds for r in hr.sources.land(way))
    label, detail = f"{way}: landing, {rows:,} rows {case}", f"{seconds:.1f} s"
    return show(Figure("postgres", label, rows / seconds, "rows/s", goal, True, detail))
