"""Five queries over two sizes at three shares of change: FULL, DIFFERENTIAL and AUTO, side by side in one run.

Queries (scan, filter, aggregate, join, join with aggregate), shares and the mixture of changes (of the rows that
change, 70 % are updated, 15 % deleted, 15 % inserted) are those of pg_trickle's published matrix, over larger tables,
so that the two can be set beside each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import count

from bench.measure import Figure, geometric_mean, listed, median, project, show
from headrace.api.facade import Headrace
from headrace.results.refresh_results import RefreshResult

OTHERS = ("DIFFERENTIAL", "AUTO")
MODES = ("FULL", *OTHERS)
SHARES = (0.01, 0.1, 0.5)
REGIONS, CATEGORIES = 5, 20
SOURCES = ("src", "own")
"""Two alike: what two stream tables read of one source is read once for both, so AUTO has one of its own."""
QUERIES: Mapping[str, str] = {
    "scan": "SELECT id, region, category, amount, score FROM {src}",
    "filter": "SELECT id, region, amount FROM {src} WHERE amount > 5000",
    "aggregate": "SELECT region, sum(amount) AS total, count(*) AS n FROM {src} GROUP BY region",
    "join": "SELECT s.id, s.region, s.amount, d.label FROM {src} s JOIN bench.dim d ON d.region = s.region",
    "join + aggregate": "SELECT d.label, sum(s.amount) AS total, count(*) AS n "
    "FROM {src} s JOIN bench.dim d ON d.region = s.region GROUP BY d.label",
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
    return [*figures, *(_mean(rows, mode, figures[at :: len(OTHERS)]) for at, mode in enumerate(OTHERS))]


def _mean(rows: int, mode: str, figures: list[Figure]) -> Figure:
    label = f"geometric mean of {len(figures)} cases over {rows:,} rows: FULL / {mode}"
    return show(Figure("matrix", label, geometric_mean([each.value for each in figures]), "x"))


def _query(hr: Headrace, query: str, rows: int, rounds: int, turns: Iterator[int]) -> list[Figure]:
    """Measure one query at all shares; in every turn another mode goes first.

    Dead rows of the query before it are taken away, so that all begin alike.
    """
    figures: list[Figure] = []
    names = {mode: f"bench.{mode.lower()}" for mode in MODES}
    every = "options => map('rewrite-all', 'true')"
    for source in SOURCES:
        hr.sql(f"CALL lake.system.rewrite_data_files(table => 'bench.{source}', {every})")
    for mode, name in names.items():
        text = QUERIES[query].format(src=f"bench.{SOURCES[mode == 'AUTO']}")
        hr.create_stream_table(name, text, refresh_mode=mode)
    for share in SHARES:
        results: dict[str, list[RefreshResult]] = {mode: [] for mode in MODES}
        warm_up = 2 if share == SHARES[0] else 1
        for number in range(warm_up + rounds):
            turn = next(turns)
            change(hr, rows, share, turn)
            for at in range(turn, turn + len(MODES)):
                mode = MODES[at % len(MODES)]
                result = hr.refresh(names[mode])
                if number >= warm_up:
                    results[mode].append(result)
        figures += [_figure(query, rows, share, results, mode) for mode in OTHERS]
    if not all(each.ok for each in hr.verify(list(names.values()))):
        raise SystemExit(f"a measured table is wrong: {query}")
    for name in names.values():
        hr.drop_stream_table(name)
    return figures


def load(hr: Headrace, rows: int) -> None:
    """Make the tables; values follow from the id, so that every run has the same."""
    hr.sql("CREATE NAMESPACE lake.bench")
    hr.sql(
        "CREATE TABLE lake.bench.dim USING iceberg AS "
        f"SELECT CAST(id AS INT) AS region, concat('region ', id) AS label FROM range({REGIONS})"
    )
    for source in SOURCES:
        hr.sql(
            f"CREATE TABLE lake.bench.{source} USING iceberg TBLPROPERTIES ('format-version'='3', "
            f"'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read') AS {_rows(0, rows)}"
        )


def change(hr: Headrace, rows: int, share: float, turn: int) -> None:
    """Change a share of the rows, other ones in every turn; the table keeps about its size."""
    updated, moved = int(rows * share * 0.70), int(rows * share * 0.15)
    place = f"pmod(xxhash64(id, {turn}), {rows})"
    start = rows * (turn + 1)
    for source in SOURCES:
        hr.sql(f"UPDATE lake.bench.{source} SET amount = pmod(amount + 17, 10000) WHERE {place} < {updated}")
        hr.sql(f"DELETE FROM lake.bench.{source} WHERE {place} BETWEEN {updated} AND {updated + moved - 1}")
        hr.sql(f"INSERT INTO lake.bench.{source} {_rows(start, start + moved)}")


def _rows(start: int, end: int) -> str:
    return (
        f"SELECT id, CAST(pmod(xxhash64(id), {REGIONS}) AS INT) AS region, "
        f"concat('category ', pmod(xxhash64(id, 1), {CATEGORIES})) AS category, "
        "CAST(pmod(xxhash64(id, 2), 10000) AS INT) AS amount, CAST(pmod(xxhash64(id, 3), 100) AS INT) AS score "
        f"FROM range({start}, {end})"
    )


def _figure(query: str, rows: int, share: float, results: Mapping[str, list[RefreshResult]], mode: str) -> Figure:
    seconds = {each: [r.seconds for r in results[each]] for each in ("FULL", mode)}
    ratio = median(seconds["FULL"]) / median(seconds[mode])
    detail = ", ".join(f"{each} {listed(values)} s" for each, values in seconds.items())
    if mode == "AUTO":
        detail += " by " + ", ".join(r.mode for r in results[mode])
    return show(
        Figure("matrix", f"{query}, {rows:,} rows, {share:.0%} changed: FULL / {mode}", ratio, "x", detail=detail)
    )
