"""A stream table into PostgreSQL or Citus: its first load, and changes of rows with a key and without.

Files of the lake to rows that are committed, the time of refreshing left out; fsync is off, as it is not the disk that
is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.measure import Figure, listed, median, project, show
from bench.servers import database, server, with_spare_files
from headrace.api.facade import Headrace

ROWS = 1_000_000
CHANGED = 100_000
LOAD, CHANGE = 100_000, 30_000
"""Goals, in rows a second. An updated row counts once."""

QUERY = (
    "SELECT id, concat('name ', id) AS name, CAST(id % 1000 AS INT) AS a, CAST(amount AS DECIMAL(12,2)) AS amount, "
    "timestamp_seconds(1700000000 + id) AS at FROM s.source"
)


@dataclass(frozen=True)
class Target:
    """Where the rows go.

    Args:
        name: Of the sink and its table.
        url: The database; two sinks into one would be one transaction.
        words: What is measured, as figures name it.
        options: Further arguments of `hr.sinks.create`.
        goals: Rows a second of the first load and of changes; None where they are only recorded.
    """

    name: str
    url: str
    words: str
    options: dict[str, Any]
    goals: tuple[float | None, float | None] = (None, None)


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure both ways on one server."""
    with server() as url, project(options.master) as hr:
        with psycopg.connect(url, autocommit=True) as db:
            with_spare_files(db)
        targets = [
            Target("keyed", database(url, "keyed"), "with a key", {"key": ["id"]}, (LOAD, CHANGE)),
            Target("bag", database(url, "bag"), "a bag", {}, (LOAD, None)),
        ]
        return measured(hr, targets, "sinks", max(2, options.rounds // 2))


def measured(hr: Headrace, targets: Sequence[Target], suite: str, turns: int) -> list[Figure]:
    """Load a stream table into each target, then write changes there by turns."""
    figures = []
    hr.sql("CREATE NAMESPACE lake.s")
    hr.sql("CREATE TABLE s.source (id BIGINT, amount DOUBLE) USING iceberg")
    hr.sql(f"INSERT INTO s.source SELECT id, id * 0.25 FROM range({ROWS})")
    hr.create_stream_table("s.result", QUERY, refresh_mode="DIFFERENTIAL")
    for to in targets:
        loaded = hr.sinks.create(to.name, "s.result", to.url, f"public.{to.name}", schedule="MANUAL", **to.options)
        assert loaded is not None
        rate = loaded.rows / loaded.seconds
        detail = f"{loaded.rows:,} rows in {loaded.seconds:.1f} s"
        figures.append(show(Figure(suite, f"first load, {to.words}", rate, "rows/s", to.goals[0], True, detail)))
    rates: dict[str, list[float]] = {to.name: [] for to in targets}
    for turn in range(turns):
        at = turn * CHANGED
        hr.sql(f"UPDATE lake.s.source SET amount = amount + 1 WHERE id >= {at} AND id < {at + CHANGED}")
        hr.refresh("s.result")
        for name, found in rates.items():
            (result,) = hr.sinks.write(name)
            assert (result.inserted, result.deleted) == (CHANGED, CHANGED)
            found.append(CHANGED / result.seconds)
    for to in targets:
        label, found = f"{CHANGED:,} rows updated of {ROWS:,}, {to.words}", rates[to.name]
        figures.append(show(Figure(suite, label, median(found), "rows/s", to.goals[1], True, listed(found))))
        assert hr.sinks.verify(to.name).ok
    return figures
