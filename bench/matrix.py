"""Five queries over two sizes at three shares of change: FULL against DIFFERENTIAL, side by side in one run.

Queries (scan, filter, aggregate, join, join with aggregate), shares and the mixture of changes (of the rows that
change, 70 % are updated, 15 % deleted, 15 % inserted) are those of pg_trickle's published matrix, over larger tables,
so that the two can be set beside each other.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from itertools import count

from bench.measure import Figure, listed, median, project, show
from headrace.api import Headrace

MODES = ("FULL", "DIFFERENTIAL")
SHARES = (0.01, 0.1, 0.5)
REGIONS, CATEGORIES = 5, 20
QUERIES: Mapping[str, str] = {
    "scan": "SELECT id, region, category, amount, score FROM bench.src",
    "filter": "SELECT id, region, amount FROM bench.src WHERE amount > 5000",
    "aggregate": "SELECT region, sum(amount) AS total, count(*) AS n FROM bench.src GROUP BY region",
    "join": "SELECT s.id, s.region, s.amount, d.label FROM bench.src s JOIN bench.dim d ON d.region = s.region",
    "join + aggregate": "SELECT d.label, sum(s.amount) AS total, count(*) AS n "
    "FROM bench.src s JOIN bench.dim d ON d.region = s.region GROUP BY d.label",
}


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure every query at every size and share."""
    figures: list[Figure] = []
    for rows in options.rows:
        with project(options.master) as hr:
            load(hr, rows)
            figures += _size(hr, rows, options)
    return figures


def _size(hr: Headrace, rows: int, options: argparse.Namespace) -> list[Figure]:
    """Measure all queries over a table of so many rows; each alone, so that none finds what another has read."""
    turns = count(1)
    figures = [f for query in list(QUERIES)[: options.cases] for f in _query(hr, query, rows, options.rounds, turns)]
    label = f"geometric mean of {len(figures)} cases over {rows:,} rows: FULL / DIFFERENTIAL"
    mean = math.exp(sum(math.log(each.value) for each in figures) / len(figures))
    return [*figures, show(Figure("matrix", label, mean, "x"))]


def _query(hr: Headrace, query: str, rows: int, rounds: int, turns: Iterator[int]) -> list[Figure]:
    """Measure one query at all shares; the mode goes first that was last the turn before."""
    figures: list[Figure] = []
    names = {mode: f"bench.{mode.lower()}" for mode in MODES}
    for mode, name in names.items():
        hr.create_stream_table(name, QUERIES[query], refresh_mode=mode)
    for share in SHARES:
        seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
        warm_up = 2 if share == SHARES[0] else 1
        for number in range(warm_up + rounds):
            turn = next(turns)
            change(hr, rows, share, turn)
            for mode in MODES if turn % 2 else MODES[::-1]:
                result = hr.refresh(names[mode])
                if number >= warm_up:
                    seconds[mode].append(result.seconds)
        figures.append(_figure(query, rows, share, seconds))
    if not hr.verify(names["DIFFERENTIAL"]).ok:
        raise SystemExit(f"the measured table is wrong: {query}")
    for name in names.values():
        hr.drop_stream_table(name)
    return figures


def load(hr: Headrace, rows: int) -> None:
    """Make the two tables; values follow from the id, so that every run has the same."""
    hr.sql("CREATE NAMESPACE lake.bench")
    hr.sql(
        "CREATE TABLE lake.bench.dim USING iceberg AS "
        f"SELECT CAST(id AS INT) AS region, concat('region ', id) AS label FROM range({REGIONS})"
    )
    hr.sql(
        "CREATE TABLE lake.bench.src USING iceberg TBLPROPERTIES ('format-version'='3', "
        f"'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read') AS {_rows(0, rows)}"
    )


def change(hr: Headrace, rows: int, share: float, turn: int) -> None:
    """Change a share of the rows, other ones in every turn; the table keeps about its size."""
    updated, moved = int(rows * share * 0.70), int(rows * share * 0.15)
    place = f"pmod(xxhash64(id, {turn}), {rows})"
    hr.sql(f"UPDATE lake.bench.src SET amount = pmod(amount + 17, 10000) WHERE {place} < {updated}")
    hr.sql(f"DELETE FROM lake.bench.src WHERE {place} BETWEEN {updated} AND {updated + moved - 1}")
    start = rows * (turn + 1)
    hr.sql(f"INSERT INTO lake.bench.src {_rows(start, start + moved)}")


def _rows(start: int, end: int) -> str:
    return (
        f"SELECT id, CAST(pmod(xxhash64(id), {REGIONS}) AS INT) AS region, "
        f"concat('category ', pmod(xxhash64(id, 1), {CATEGORIES})) AS category, "
        "CAST(pmod(xxhash64(id, 2), 10000) AS INT) AS amount, CAST(pmod(xxhash64(id, 3), 100) AS INT) AS score "
        f"FROM range({start}, {end})"
    )


def _figure(query: str, rows: int, share: float, seconds: Mapping[str, list[float]]) -> Figure:
    middle = {mode: median(values) for mode, values in seconds.items()}
    detail = ", ".join(f"{mode} {listed(values)} s" for mode, values in seconds.items())
    label = f"{query}, {rows:,} rows, {share:.0%} changed: FULL / DIFFERENTIAL"
    return show(Figure("matrix", label, middle["FULL"] / middle["DIFFERENTIAL"], "x", detail=detail))
