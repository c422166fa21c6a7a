"""A catalog with staged tables, and readers of a REST catalog alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog

from headrace.catalog import Catalog, Publication, Rename
from headrace.lake.files.file_access import reach_by
from headrace.lake.rest.open_lake import open_lake
from headrace.lakes.lake_server import LakeServer
from headrace.lakes.lake_settings import LakeSettings
from headrace.names import LAKE, TableName
from kit.staged_tables import StagedTables, publication


class Shop:
    """A catalog, its staged tables, and readers of the REST catalog.

    Args:
        uri: Where the server answers Headrace.
        folder: Where the catalog is made.
        warehouse: Where tables are written; below the folder when None.
        readers: Where it answers readers, if that is elsewhere.
        storage: Properties by which files are reached that are not local ones.
    """

    def __init__(
        self,
        uri: str,
        folder: Path,
        *,
        warehouse: str | None = None,
        readers: str | None = None,
        storage: Mapping[str, str] | None = None,
    ) -> None:
        self.uri, self.url, self.folder = uri, f"sqlite:///{folder / 'headrace.db'}", folder / "tables"
        warehouse = warehouse or f"file://{self.folder}"
        reach_by(warehouse, storage or {})
        self.lake: LakeServer = open_lake(LakeSettings(uri))
        self.catalog = Catalog.open(self.url, lake=self.lake)
        self.staged = StagedTables(self.url, warehouse, storage)
        given = {"type": "rest", "uri": readers or uri, **(storage or {})}
        self.reader: RestCatalog = load_catalog("reader", **given)  # type: ignore[assignment]

    def name(self, table: str) -> TableName:
        """Return a table of the shop in full."""
        return TableName(LAKE, ("shop",), table)

    def rows(self, table: str) -> list[int] | None:
        """Return what a reader that knows the REST catalog only finds; None where there is no table."""
        if not self.reader.table_exists(("shop", table)):
            return None
        return sorted(self.reader.load_table(("shop", table)).scan().to_arrow()["x"].to_pylist())

    def publish(self, **tables: tuple[int, ...]) -> Publication:
        """Stage tables of the shop, and publish them together."""
        made = publication(self.catalog, self.staged, {self.name(t): rows for t, rows in tables.items()})
        self.catalog.publish(made)
        return made

    def agree(self) -> None:
        """Check that Headrace knows what the server shows, staging is in step, and nobody wrote but Headrace."""
        assert self.catalog.foreign_writes() == ()
        self.catalog.reset_staging()
        assert self.catalog.dirty_staging() == ()

    def close(self) -> None:
        """Take the shop's tables out of the server."""
        self.catalog.close()
        for table in ("a", "b", "c"):
            if self.reader.table_exists(("shop", table)):
                self.reader.drop_table(("shop", table))


def promotion(shop: Shop) -> Publication:
    """Return a publication in which table a receives the rows of b, and b is called c from then on."""
    renames = (Rename(shop.name("b"), shop.name("c")),)
    written = {shop.name("a"): (2,)}
    return publication(shop.catalog, shop.staged, written, renames=renames, relation_renames=renames)
