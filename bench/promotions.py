"""How long the catalog's transaction of a promotion takes, on both databases; no Spark.

What a promotion writes before is as much as the generations differ. The transaction alone is what others wait for.
Times are of the processor, of this process: they say the same on a machine that has other things to do. Wall times
stand beside them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
import time
from pathlib import Path

import sqlalchemy as sa

from bench.measure import Figure, listed, median, show
from bench.servers import server
from headrace.catalog import (
    Catalog,
    Definition,
    FrontierMove,
    Green,
    HistoryEntry,
    NewVersion,
    Observation,
    Publication,
    RanAs,
    Rename,
    Swap,
    resource_of,
)
from headrace.frontier import Frontier
from headrace.names import LAKE, STAGING, TableName

TABLES = 50
WARM_UP = 2
GOAL = 50.0
SOURCE = TableName(LAKE, ("shop",), "orders")
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAMESPACES = ("shop__green", "shop__green_previous")


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure exchanges of 50 stream tables, each with a change log, to and fro."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        figures.append(_measured("SQLite", f"sqlite:///{Path(folder) / 'headrace.db'}", options.rounds))
    with server() as url:
        figures.append(_measured("PostgreSQL", url.replace("postgresql://", "postgresql+psycopg://"), options.rounds))
    return figures


def _measured(database: str, url: str, rounds: int) -> Figure:
    with Catalog.open(url) as catalog:
        engine = sa.create_engine(url)
        _begin(catalog, engine)
        times, walls = [], []
        for turn in range(WARM_UP + 2 * rounds):
            publication = _exchange(catalog, engine, turn)
            wall, start = time.perf_counter(), time.process_time()
            catalog.publish(publication)
            times.append((time.process_time() - start) * 1000)
            walls.append((time.perf_counter() - wall) * 1000)
        engine.dispose()
    case = f"promoting {TABLES} tables, {database}, the transaction"
    detail = f"wall {listed(walls[WARM_UP:])}"
    return show(Figure("promotions", case, median(times[WARM_UP:]), "ms", GOAL, detail=detail))


def _name(number: int, namespace: str = "shop") -> TableName:
    return TableName(LAKE, (namespace,), f"t{number}")


def _log(number: int) -> TableName:
    return TableName(LAKE, ("_headrace",), f"t{number}_log")


def _definition(name: TableName, number: int | None, made: int) -> Definition:
    details = {"query": f"SELECT {made}", "output": [["a", "bigint", True]] * 10, "namespace": ["shop"]}
    return Definition(
        name, f"SELECT {made}", (SOURCE,), details=details, log=None if number is None else _log(number), options={}
    )


def _point(engine: sa.Engine, names: list[TableName], location: str) -> None:
    """Let tables point at new metadata in `staging`, as Iceberg's commits do."""
    own = "catalog_name = :c AND table_namespace = :n AND table_name = :t"
    rows = [{"c": STAGING, "n": n.namespace_text, "t": n.table, "m": f"{n.table}/metadata/{location}"} for n in names]
    with engine.begin() as connection:
        changed = connection.execute(
            sa.text(f"UPDATE iceberg_tables SET metadata_location = :m WHERE {own}"), rows[:1]
        ).rowcount
        update = f"UPDATE iceberg_tables SET metadata_location = :m WHERE {own}"
        insert = (
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) "
            "VALUES (:c, :n, :t, :m, 'TABLE')"
        )
        connection.execute(sa.text(update if changed else insert), rows[1:] if changed else rows)


def _begin(catalog: Catalog, engine: sa.Engine) -> None:
    catalog.observe([Observation(SOURCE, 1, "uuid")])
    everyone = range(TABLES)
    names = [name for n in everyone for name in (_name(n), _log(n), _name(n, NAMESPACES[0]))]
    _point(engine, names, "0")
    public = [_name(n) for n in everyone]
    greens = [_name(n, NAMESPACES[0]) for n in everyone]
    catalog.publish(
        Publication(
            swaps=tuple(Swap(name, None) for name in names),
            definitions=tuple(
                [_definition(name, n, 0) for n, name in enumerate(public)]
                + [_definition(name, None, 1) for name in greens]
            ),
            versions=tuple(NewVersion(name, 0, 1, 10) for name in (*public, *greens)),
            frontiers=tuple(FrontierMove(name, Frontier({SOURCE: 0})) for name in (*public, *greens)),
            greens=tuple(Green(g, "green", p, {}, NOW) for p, g in zip(public, greens, strict=True)),
        )
    )


def _exchange(catalog: Catalog, engine: sa.Engine, turn: int) -> Publication:
    """Return the publication that `headrace.deploy.exchanging.exchange` builds for tables that all differ."""
    everyone = range(TABLES)
    public = [_name(n) for n in everyone]
    old = [_name(n, NAMESPACES[turn % 2]) for n in everyone]
    new = [_name(n, NAMESPACES[(turn + 1) % 2]) for n in everyone]
    logs = [_log(n) for n in everyone]
    before = {n: p.metadata_location for n, p in catalog.pointers(LAKE, [*public, *old, *logs]).items()}
    _point(engine, [*public, *old, *logs], str(turn + 1))
    renames = tuple(map(Rename, old, new))
    leases = catalog.acquire([resource_of(n) for n in (*public, *old)], f"bench {turn}", dt.timedelta(seconds=60))
    catalog.release(leases)
    frontier = Frontier({SOURCE: 0})
    return Publication(
        swaps=tuple(
            [Swap(n, before[n]) for n in (*public, *logs)]
            + [Swap(later, before[n]) for n, later in zip(old, new, strict=True)]
        ),
        versions=tuple(NewVersion(n, turn + 1, turn + 1, 10) for n in (*public, *new)),
        frontiers=tuple(FrontierMove(n, frontier) for n in (*public, *new)),
        history=tuple(HistoryEntry(n, NOW, NOW, RanAs.FULL, frontier=frontier) for n in (*public, *new)),
        definitions=tuple(
            [_definition(n, i, turn) for i, n in enumerate(public)] + [_definition(n, None, turn) for n in new]
        ),
        renames=renames,
        relation_renames=renames,
        greens=tuple(Green(n, "green", p, {}, NOW) for p, n in zip(public, new, strict=True)),
    )
