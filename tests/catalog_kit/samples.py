"""Small things that tests are made of."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import TypeVar

from catalog_kit.clock import START
from catalog_kit.iceberg import Iceberg
from catalog_kit.stream_tables import create_stream_table
from headrace.catalog import (
    Catalog,
    Definition,
    FrontierMove,
    HistoryEntry,
    Lease,
    NewVersion,
    Observation,
    Publication,
    RanAs,
    StreamTable,
    Swap,
)
from headrace.errors import HeadraceError
from headrace.frontier import Frontier
from headrace.names import LAKE, TableName

TTL = dt.timedelta(seconds=60)


Result = TypeVar("Result")


def attempt(work: Callable[[], Result]) -> Result | HeadraceError:
    """What work returns, or the error it ends with."""
    try:
        return work()
    except HeadraceError as error:
        return error


def lake(text: str) -> TableName:
    """`a.b` in the lake."""
    *namespace, table = text.split(".")
    return TableName(LAKE, tuple(namespace), table)


ORDERS, ITEMS = lake("shop.orders"), lake("shop.items")
REVENUE, TOP = lake("shop.revenue"), lake("shop.top")


def define(name: TableName = REVENUE, *sources: TableName, **more: object) -> Definition:
    return Definition(name, f"SELECT * FROM {', '.join(map(str, sources))}", sources or (ORDERS,), **more)


def create(catalog: Catalog, name: TableName = REVENUE, *sources: TableName, **more: object) -> StreamTable:
    return create_stream_table(catalog, define(name, *sources, **more))


def see(catalog: Catalog, source: TableName = ORDERS, snapshot: int | None = 1) -> int:
    """Observe a source's head; returns its version."""
    return catalog.observe([Observation(source, snapshot, "uuid")])[0].version


def entry(name: TableName, **more: object) -> HistoryEntry:
    return HistoryEntry(name, START, START + dt.timedelta(seconds=1), RanAs.FULL, **more)


def refresh(
    catalog: Catalog,
    iceberg: Iceberg,
    number: int,
    *streams: TableName,
    leases: Sequence[Lease] = (),
    sources: Sequence[TableName] = (ORDERS,),
) -> Publication:
    """Stage metadata `<table>-<number>` for stream tables and build the publication that shows it."""
    swaps = []
    for name in streams:
        expected = iceberg.pointer(name)
        staged = f"{name.table}-{number}"
        iceberg.commit(name, staged)
        swaps.append(Swap(name, expected, staged))
    heads = {n: v.version for n, v in catalog.newest_versions().items()}
    frontier = Frontier({s: heads[s] for s in sources})
    return Publication(
        swaps=tuple(swaps),
        versions=tuple(NewVersion(n, heads.get(n, -1) + 1, 1000 + number, number) for n in streams),
        frontiers=tuple(FrontierMove(n, frontier) for n in streams),
        history=tuple(entry(n, frontier=frontier) for n in streams),
        leases=tuple(leases),
    )
