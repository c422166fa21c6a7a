"""A project that is moved to a REST catalog, and processes that are killed while they move it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog

from headrace.catalog import Catalog
from headrace.config import FILE_NAME
from headrace.lake.rest.http_api import HttpApi
from headrace.lake.rest.registrar import Registrar
from headrace.lakes.lake_server import Key, LakeEntry
from headrace.lakes.lake_settings import LakeSettings
from headrace.names import TableName
from headrace.project.lake_move import move_catalog as door
from headrace.results.move_results import CatalogMove
from kit.stored_project import StoredProject


class Staged(NamedTuple):
    """What was staged."""

    snapshot: int
    location: str


class MovingProject(StoredProject):
    """A project with `shop.orders`, a stream table over it, and a server that it may move to.

    Args:
        folder: Where it is made.
        uri: The server.
        how: Where its tables are, as for a `StoredProject`.

    Attributes:
        server: What readers of the REST catalog see.
    """

    def __init__(self, folder: Path, uri: str, **how: Any) -> None:
        super().__init__(folder, **how)
        self.source()
        self.stream_table("revenue")
        self.uri = uri
        self.server: RestCatalog = load_catalog("reader", type="rest", uri=uri, **(how.get("storage") or {}))  # type: ignore[assignment]

    def name_server(self, *, named: bool = True) -> None:
        """Write the section `[lake]`, or take it out."""
        file = self.root / FILE_NAME
        text = file.read_text().partition("\n[lake]\n")[0]
        file.write_text(text + (f'\n[lake]\ntype = "rest"\nuri = "{self.uri}"\n' if named else ""))

    def move(self, **how: Any) -> CatalogMove:
        """Move it."""
        return door.move_catalog(self.root, **how)

    def registered(self) -> list[str]:
        """Return the tables that the server has of the project's namespaces."""
        found: list[str] = []
        for namespace in ("_headrace", "shop"):
            if self.server.namespace_exists(namespace):
                found += [".".join(each) for each in self.server.list_tables(namespace)]
        return sorted(found)

    def rows_there(self, name: str) -> int:
        """Return how many rows a reader of the server sees."""
        return int(self.server.load_table(name).scan().to_arrow().num_rows)

    def staged_rows(self, name: str) -> Staged:
        """Stage three more rows of a table."""
        table = self.staging.load_table(name)
        table.append(table.scan().to_arrow().slice(0, 3))
        snapshot = table.current_snapshot()
        assert snapshot is not None
        return Staged(snapshot.snapshot_id, table.metadata_location)

    def view(self, name: str, sql: str) -> None:
        """Create a view in the catalog's own database, as Spark does."""
        folder = self.root / "warehouse" / "shop" / name / "metadata"
        folder.mkdir(parents=True)
        version = {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {"engine-name": "spark"},
            "default-catalog": "lake",
            "default-namespace": ["shop"],
            "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        }
        fields = [{"id": 0, "name": "k", "required": False, "type": "long"}]
        document = {
            "view-uuid": "00000000-0000-0000-0000-000000000001",
            "format-version": 1,
            "location": str(folder.parent),
            "current-version-id": 1,
            "versions": [version],
            "version-log": [{"timestamp-ms": 1, "version-id": 1}],
            "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "properties": {"comment": "of a shop"},
        }
        file = folder / "00000.metadata.json"
        file.write_text(json.dumps(document))
        with sqlite3.connect(self.root / "headrace.db") as database:
            row = ("lake", "shop", name, str(file), None, "VIEW")
            database.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)

    def clear(self) -> None:
        """Take the project's tables out of the server."""
        for name in self.registered():
            self.server.drop_table(name)
        for namespace in ("_headrace", "shop"):
            for view in self.server.list_views(namespace) if self.server.namespace_exists(namespace) else ():
                self.server.drop_view(view)


class DisturbedRegistrar(Registrar):
    """Registers, and calls somebody in between.

    Args:
        api: The server.
        disturb: Called with how many tables are registered, and the name of the last.
    """

    def __init__(self, api: HttpApi, disturb: Callable[[int, str], None]) -> None:
        super().__init__(api)
        self._disturb = disturb
        self._done = 0

    def register(self, key: Key, entry: LakeEntry) -> str:
        """Register a table, and call."""
        shown = super().register(key, entry)
        self._done += 1
        self._disturb(self._done, ".".join(key))
        return shown


def disturbed_by(disturb: Callable[[int, str], None]) -> Callable[[LakeSettings], Registrar]:
    """Return what opens a registrar in whose work somebody comes."""
    return lambda settings: DisturbedRegistrar(HttpApi(settings), disturb)


def die(*_: object) -> None:
    """Kill this process, as the kernel does where memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


class DyingCatalog(Catalog):
    """A catalog whose process dies when everything is registered, or when the project has moved."""

    step = ""

    def relocate(self, seen: Mapping[TableName, str], shown: Mapping[TableName, str], **how: Any) -> set[TableName]:
        """Move the project, and die before or after."""
        if self.step == "all registered":
            die()
        found = super().relocate(seen, shown, **how)
        die()
        return found


def main(root: str, step: str) -> None:
    """Move a project and die: when a table was registered, when all were, or when the project has moved."""
    if step == "one registered":
        door.open_registrar = disturbed_by(die)
    else:
        DyingCatalog.step = step
        door.Catalog = DyingCatalog  # type: ignore[misc]
    door.move_catalog(root, back=step == "moved back")


if __name__ == "__main__":
    main(*sys.argv[1:])
