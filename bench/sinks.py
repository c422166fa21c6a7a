"""A stream table into PostgreSQL: its first load, and changes of rows with a key and without.

Files of the lake to rows that are committed, the time of refreshing left out; fsync is off, as it is not the disk that
is measured.
"""

from __future__ import annotations

import argparse

import psycopg

from bench.measure import Figure, listed, median, project, show
from bench.servers import database, server, with_spare_files

ROWS = 1_000_000
CHANGED = 100_000
LOAD, CHANGE = 100_000, 30_000
"""Goals, in rows a second. An updated row counts once."""

QUERY = (
    "SELECT id, concat('name ', id) AS name, CAST(id % 1000 AS INT) AS a, CAST(amount AS DECIMAL(12,2)) AS amount, "
    "timestamp_seconds(1700000000 + id) AS at FROM s.source"
)


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure both ways on one server."""
    figures = []
    with server() as url, project(options.master) as hr:
        with psycopg.connect(url, autocommit=True) as db:
            with_spare_files(db)
        targets = {name: database(url, name) for name in ("keyed", "bag")}  # in one they would be one transaction
        hr.sql("CREATE NAMESPACE lake.s")
        hr.sql("CREATE TABLE s.source (id BIGINT, amount DOUBLE) USING iceberg")
        hr.sql(f"INSERT INTO s.source SELECT id, id * 0.25 FROM range({ROWS})")
        hr.create_stream_table("s.result", QUERY, refresh_mode="DIFFERENTIAL")
        for way, key in (("with a key", ["id"]), ("a bag", [])):
            name = "keyed" if key else "bag"
            loaded = hr.sinks.create(name, "s.result", targets[name], f"public.{name}", key=key, schedule="MANUAL")
            assert loaded is not None
            rate = loaded.rows / loaded.seconds
            detail = f"{loaded.rows:,} rows in {loaded.seconds:.1f} s"
            figures.append(show(Figure("sinks", f"first load, {way}", rate, "rows/s", LOAD, True, detail)))
        rates: dict[str, list[float]] = {"keyed": [], "bag": []}
        for turn in range(max(2, options.rounds // 2)):
            at = turn * CHANGED
            hr.sql(f"UPDATE lake.s.source SET amount = amount + 1 WHERE id >= {at} AND id < {at + CHANGED}")
            hr.refresh("s.result")
            for name, found in rates.items():
                (result,) = hr.sinks.write(name)
                assert (result.inserted, result.deleted) == (CHANGED, CHANGED)
                found.append(CHANGED / result.seconds)
        for name, goal in (("keyed", CHANGE), ("bag", None)):
            label = f"{CHANGED:,} rows updated of {ROWS:,}, {'with a key' if name == 'keyed' else 'a bag'}"
            found = rates[name]
            figures.append(show(Figure("sinks", label, median(found), "rows/s", goal, True, listed(found))))
        assert hr.sinks.verify("keyed").ok
        assert hr.sinks.verify("bag").ok
    return figures
