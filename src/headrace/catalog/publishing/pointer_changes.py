"""Collects changes to rows of `iceberg_tables`; writes them in three statements at most.

Each update and delete names the pointer it replaces, so that an Iceberg commit that came in between is never lost,
whatever the database's isolation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.publishing.pointers import Key, PointerRow, name_of
from headrace.errors import EnvironmentFault
from headrace.names import TableName

_C = t.iceberg_tables.c


@dataclass(slots=True)
class PointerChanges:
    """A mutable list of changes; `apply` writes them."""

    _deletes: list[dict[str, object]] = field(default_factory=list)
    _updates: list[dict[str, object]] = field(default_factory=list)
    _inserts: list[dict[str, object]] = field(default_factory=list)

    def delete(self, catalog: str, key: Key) -> None:
        """Take a row away, if it is there."""
        self._deletes.append({"c": catalog, "n": key[0], "t": key[1]})

    def put(self, catalog: str, key: Key, row: PointerRow, *, replacing: PointerRow | None) -> None:
        """Let a row be `row`; `replacing` is what it is now, None when there is none."""
        if replacing is None:
            self._inserts.append(_inserted(catalog, key, row))
            return
        self._updates.append(
            {
                "c": catalog,
                "n": key[0],
                "t": key[1],
                "expected": replacing.metadata_location,
                "location": row.metadata_location,
                "previous": row.previous_metadata_location,
                "kind": row.iceberg_type,
            }
        )

    def apply(self, connection: Connection) -> None:
        """Write the changes: deletes, updates, inserts.

        Raises:
            EnvironmentFault: `FOREIGN_WRITER` when a row is no longer what it was said to be.
        """
        own = (
            _C.catalog_name == sa.bindparam("c"),
            _C.table_namespace == sa.bindparam("n"),
            _C.table_name == sa.bindparam("t"),
        )
        if self._deletes:
            connection.execute(sa.delete(t.iceberg_tables).where(*own), self._deletes)
        if self._updates:
            change = sa.update(t.iceberg_tables).where(*own, _C.metadata_location == sa.bindparam("expected"))
            change = change.values(
                metadata_location=sa.bindparam("location"),
                previous_metadata_location=sa.bindparam("previous"),
                iceberg_type=sa.bindparam("kind"),
            )
            if connection.execute(change, self._updates).rowcount != len(self._updates):
                raise foreign_writer(_names(self._updates))
        if self._inserts:
            try:
                connection.execute(sa.insert(t.iceberg_tables), self._inserts)
            except exc.IntegrityError as error:
                raise foreign_writer(_inserted_names(self._inserts)) from error


def foreign_writer(names: list[TableName], detail: str | None = None) -> EnvironmentFault:
    """Return the error for stored tables that somebody else changed."""
    listed = ", ".join(str(n) for n in names)
    return EnvironmentFault(
        "FOREIGN_WRITER",
        f"Another program than Headrace wrote to {listed}.",
        detail=detail or "Its pointer in the lake is not the one that the refresh started from.",
        hint="Stream tables are written by Headrace alone. Find and stop the writer, then refresh the table with FULL.",
    )


def _inserted(catalog: str, key: Key, row: PointerRow) -> dict[str, object]:
    return {
        "catalog_name": catalog,
        "table_namespace": key[0],
        "table_name": key[1],
        "metadata_location": row.metadata_location,
        "previous_metadata_location": row.previous_metadata_location,
        "iceberg_type": row.iceberg_type,
    }


def _names(rows: list[dict[str, object]]) -> list[TableName]:
    return [name_of((str(r["n"]), str(r["t"]))) for r in rows]


def _inserted_names(rows: list[dict[str, object]]) -> list[TableName]:
    return [name_of((str(r["table_namespace"]), str(r["table_name"]))) for r in rows]
