"""A mirror's part of a landing from PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.algebra.schema import Column
from headrace.names import TableName
from headrace.sources.postgres.remote_tables import RemoteTable, to_json
from headrace.sources.postgres.spool.landing_sql import FEW, Spooled, change_sql, new_rows_sql, replacing_sql


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """See `LandedTable`.

    Args:
        name: The mirror.
        table: The table, as the mirror is made of it from now on.
        spooled: Its rows or changes.
        replaced: A new snapshot.
        former: The table as the mirror was made of it before; None for a new mirror.
    """

    name: TableName
    table: RemoteTable
    spooled: Spooled
    replaced: bool = False
    former: RemoteTable | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the mirror's columns from now on."""
        return tuple(c for c, _ in self.table.typed)

    @property
    def renamed(self) -> Mapping[str, str]:
        """Return renamed columns, matched by their numbers within one table."""
        if self.former is None or self.former.oid != self.table.oid:
            return {}
        now = {c.number: c.name for c in self.table.columns}
        return {c.name: now[c.number] for c in self.former.columns if now.get(c.number, c.name) != c.name}

    @property
    def key(self) -> tuple[str, ...] | None:
        """Return the columns that identify rows; None for a bag."""
        return self.table.key or None

    @property
    def details(self) -> dict[str, Any]:
        """Return the details that the catalog keeps of the mirror."""
        return to_json(self.table)

    @property
    def reshaped(self) -> bool:
        """Return whether the table was altered, and its mirror is brought to its new columns."""
        return not self.replaced and self.former is not None and self.former != self.table

    @property
    def few(self) -> bool:
        """Return whether the change has few rows: of each key one that goes and one that comes."""
        return not self.replaced and not self.spooled.truncated and 2 * self.spooled.rows <= FEW

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the folders that its queries read."""
        return self.spooled.folders

    def rows_sql(self) -> str:
        """Query of a new snapshot's rows."""
        return new_rows_sql(self.table, self.spooled)

    def change_sql(self, before: str, *, small: bool = False) -> str:
        """Write the query of the change.

        Args:
            before: Table expression of the mirror as published.
            small: Whether the mirror is small enough to be read by one task.
        """
        if self.replaced:
            return replacing_sql(self.table, self.spooled, before)
        return change_sql(self.table, self.spooled, before, small=small, most_few=FEW)
