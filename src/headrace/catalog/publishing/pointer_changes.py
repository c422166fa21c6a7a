"""Collects changes to rows of `iceberg_tables`; writes them in three statements at most.

Each update and delete names the pointer it replaces, so that an Iceberg commit that came in between is never lost,
whatever the database's isolation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import exc
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.many_rows import delete_rows, insert_rows, update_rows
from headrace.catalog.publishing.pointers import PointerRow, name_of
from headrace.errors import EnvironmentFault
from headrace.lakes.lake_server import Key
from headrace.names import TableName

_REPLACING = {c: c for c in ("catalog_name", "table_namespace", "table_name")} | {"expected": "metadata_location"}


@dataclass(slots=True)
class PointerChanges:
    """A mutable list of changes; `apply` writes them."""

    _deletes: list[dict[str, object]] = field(default_factory=list)
    _updates: list[dict[str, object]] = field(default_factory=list)
    _inserts: list[dict[str, object]] = field(default_factory=list)

    def delete(self, catalog: str, key: Key) -> None:
        """Take a row away, if it is there."""
        self._deletes.append(_place(catalog, key))

    def put(self, catalog: str, key: Key, row: PointerRow, *, replacing: PointerRow | None) -> None:
        """Let a row be `row`; `replacing` is what it is now, None when there is none."""
        if replacing is None:
            self._inserts.append({**_place(catalog, key), **row._asdict()})
            return
        self._updates.append({**_place(catalog, key), "expected": replacing.metadata_location, **row._asdict()})

    def apply(self, connection: Connection) -> None:
        """Write the changes: deletes, updates, inserts.

        Raises:
            EnvironmentFault: `FOREIGN_WRITER` when a row is no longer what it was said to be.
        """
        delete_rows(connection, t.iceberg_tables, self._deletes)
        if update_rows(connection, t.iceberg_tables, _REPLACING, self._updates) != len(self._updates):
            raise foreign_writer(_names(self._updates))
        try:
            insert_rows(connection, t.iceberg_tables, self._inserts)
        except exc.IntegrityError as error:
            raise foreign_writer(_names(self._inserts)) from error


def foreign_writer(names: list[TableName], detail: str | None = None) -> EnvironmentFault:
    """Return the error for stored tables that somebody else changed."""
    listed = ", ".join(str(n) for n in names)
    return EnvironmentFault(
        "FOREIGN_WRITER",
        f"Another program than Headrace wrote to {listed}.",
        detail=detail or "Its pointer in the lake is not the one that the refresh started from.",
        hint="Stream tables are written by Headrace alone. Find and stop the writer, then refresh the table with FULL.",
    )


def made_by_another(name: TableName) -> EnvironmentFault:
    """Return the error for a table that somebody else made where Headrace was going to."""
    return EnvironmentFault(
        "FOREIGN_WRITER",
        f"Another program than Headrace made {name}, under whose name nothing was published yet.",
        hint="Drop or rename that table, then try again.",
    )


def _place(catalog: str, key: Key) -> dict[str, object]:
    return {"catalog_name": catalog, "table_namespace": key[0], "table_name": key[1]}


def _names(rows: list[dict[str, object]]) -> list[TableName]:
    return [name_of((str(r["table_namespace"]), str(r["table_name"]))) for r in rows]
