"""Real Iceberg tables in `staging`, written by PyIceberg, and publications that show them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from catalog_kit.stream_tables import create_stream_table
from pyiceberg.catalog.sql import SqlCatalog

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
    Swap,
)
from headrace.frontier import Frontier
from headrace.names import LAKE, STAGING, TableName

ORDERS = TableName(LAKE, ("shop",), "orders")


class StagedTables:
    """Tables of one catalog's `staging`.

    Args:
        url: The catalog's.
        warehouse: Where the tables are, as a URL.
        storage: Properties by which files are reached that are not local ones.
    """

    def __init__(self, url: str, warehouse: str, storage: Mapping[str, str] | None = None) -> None:
        given = {"uri": url, "warehouse": warehouse, "init_catalog_tables": "false", **(storage or {})}
        self._catalog = SqlCatalog(STAGING, **given)
        self._warehouse = warehouse

    def write(self, name: TableName, *numbers: int, anew: str = "") -> int:
        """Stage a table's whole contents; return the snapshot. `anew` makes another table, in a folder so called."""
        self._catalog.create_namespace_if_not_exists(name.namespace)
        identifier = (*name.namespace, name.table)
        rows = pa.table({"x": pa.array(numbers, pa.int64())})
        if anew and self._catalog.table_exists(identifier):
            self._catalog.drop_table(identifier)
        if not self._catalog.table_exists(identifier):
            location = f"{self._warehouse}/{name.namespace_text}/{name.table}{anew}"
            self._catalog.create_table(identifier, rows.schema, location=location)
        table = self._catalog.load_table(identifier)
        table.overwrite(rows)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def location(self, name: TableName) -> str:
        """Return the metadata file of a table in `staging`."""
        return self._catalog.load_table((*name.namespace, name.table)).metadata_location


def defined(catalog: Catalog, *names: TableName) -> None:
    """Define stream tables over `shop.orders`."""
    for name in names:
        create_stream_table(
            catalog, Definition(name, f"SELECT * FROM {ORDERS}", (ORDERS,), details={"refusals": [], "a": {"b": [1]}})
        )
    catalog.observe([Observation(ORDERS, 1, "uuid")])


def publication(
    catalog: Catalog,
    staged: StagedTables,
    written: dict[TableName, Sequence[int]],
    leases: Sequence[Lease] = (),
    **more: Any,
) -> Publication:
    """Stage tables, and build the publication that shows them."""
    shown = {name: pointer.metadata_location for name, pointer in catalog.pointers(LAKE, written).items()}
    snapshots = {name: staged.write(name, *numbers) for name, numbers in written.items()}
    newest = catalog.newest_versions()
    at = {name: newest[name].version + 1 if name in newest else 0 for name in written}
    frontier, now = Frontier({ORDERS: newest[ORDERS].version}), dt.datetime.now(dt.UTC)
    return Publication(
        swaps=tuple(Swap(name, shown.get(name), staged.location(name)) for name in written),
        versions=tuple(NewVersion(name, at[name], snapshots[name], len(written[name])) for name in written),
        frontiers=tuple(FrontierMove(name, frontier) for name in written),
        history=tuple(HistoryEntry(name, now, now, RanAs.FULL, frontier=frontier) for name in written),
        leases=tuple(leases),
        **more,
    )
