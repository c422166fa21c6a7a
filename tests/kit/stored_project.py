"""A project with stream tables whose stored tables are real Iceberg tables, made and damaged without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from catalog_kit.stream_tables import create_stream_table
from pyiceberg.catalog.sql import SqlCatalog

from headrace import config
from headrace.algebra.schema import Column
from headrace.api.facade import Headrace
from headrace.catalog import Definition, FrontierMove, LogChange, NewVersion, Observation, Publication, Swap
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.frontier import Frontier
from headrace.names import LAKE, SYSTEM_NAMESPACE, TableName
from headrace.project.new_project import init_project
from headrace.semantics import Semantics

ORDERS = TableName(LAKE, ("shop",), "orders")
COLUMNS = (Column("k", "bigint", True),)


@contextmanager
def with_revenue(folder: Path) -> Iterator[StoredProject]:
    """A project with stream table `shop.revenue`, closed at the end."""
    project = StoredProject(folder)
    project.source()
    project.stream_table("revenue")
    try:
        yield project
    finally:
        project.close()


class StoredProject:
    """A project in a folder, and another engine beside it.

    Args:
        folder: Where it is made.
        warehouse: Where its tables are; in the folder when None.
        storage: Properties by which they are reached where that is elsewhere.
        settings: What headrace.toml says besides.

    Attributes:
        hr: The project, open.
        lake: What another engine sees.
        staging: Where only Headrace writes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        warehouse: str | None = None,
        storage: Mapping[str, str] | None = None,
        settings: str = "",
    ) -> None:
        self.root = init_project(folder, warehouse=warehouse).root
        with (self.root / config.FILE_NAME).open("a") as file:
            file.write(settings)
        self.hr = Headrace(config.load(self.root))
        given = {"uri": f"sqlite:///{self.root / 'headrace.db'}", **(storage or {})}
        given["warehouse"] = warehouse or str(self.root / "warehouse")
        self.lake, self.staging = SqlCatalog("lake", **given), SqlCatalog("staging", **given)

    def close(self) -> None:
        self.hr.close()
        self.lake.engine.dispose()
        self.staging.engine.dispose()

    def source(self, rows: int = 3) -> None:
        """Create `shop.orders`, the way anybody does."""
        self.lake.create_namespace_if_not_exists("shop")
        table = self.lake.create_table("shop.orders", schema=_rows(0).schema)
        table.append(_rows(rows))
        snapshot = table.current_snapshot()
        assert snapshot is not None
        self.hr._catalog.observe([Observation(ORDERS, snapshot.snapshot_id, str(table.metadata.table_uuid))])

    def stream_table(self, name: str, rows: int = 3) -> TableName:
        """Publish a stream table over `shop.orders`, with a companion and a change log."""
        table = TableName(LAKE, ("shop",), name)
        companion, log = (TableName(LAKE, (SYSTEM_NAMESPACE,), f"shop_{name}_{p}") for p in ("companion", "log"))
        details = Details(
            "SELECT k FROM shop.orders",
            (),
            Semantics("UTC", ansi=True, case_sensitive=False),
            COLUMNS,
            (SourceUse(ORDERS, COLUMNS),),
            {},
            (),
            COLUMNS,
        )
        catalog = self.hr._catalog
        create_stream_table(
            catalog, Definition(table, details.query, (ORDERS,), details=to_json(details), companion=companion)
        )
        snapshot = None
        for stored in (companion, log, table):
            self.staging.create_namespace_if_not_exists(stored.namespace)
            made = self.staging.create_table((*stored.namespace, stored.table), schema=_rows(0).schema)
            made.append(_rows(rows))
            snapshot = made.current_snapshot()
        assert snapshot is not None
        head = catalog.newest_versions()[ORDERS].version
        catalog.publish(
            Publication(
                swaps=tuple(Swap(stored, None) for stored in (companion, log, table)),
                versions=(NewVersion(table, 0, snapshot.snapshot_id, rows, str(made.metadata.table_uuid)),),
                frontiers=(FrontierMove(table, Frontier({ORDERS: head})),),
                logs=(LogChange(table, log),),
            )
        )
        return table

    def rows(self, name: str) -> int:
        """Return how many rows a reader of the lake sees."""
        return int(self.lake.load_table(name).scan().to_arrow().num_rows)

    def append(self, name: str, rows: int = 1) -> None:
        """Write to a table as another engine does."""
        self.lake.load_table(name).append(_rows(rows))

    def roll_back(self, name: str) -> None:
        """Point a table at a snapshot before its last one, as `rollback_to_snapshot` does."""
        table = self.lake.load_table(name)
        before = table.snapshots()[-2].snapshot_id
        table.manage_snapshots().set_current_snapshot(before).commit()


def _rows(count: int) -> pa.Table:
    return pa.table({"k": pa.array(range(count), pa.int64())})
