"""Tables in Iceberg catalogs that Headrace does not keep: where their newest metadata is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headrace.errors import HeadraceError
from headrace.names import TableName


class Runner(Protocol):
    """Operations of Spark that reading foreign catalogs needs."""

    def run(self, sql: str) -> Sequence[Any]:
        """Run one statement."""
        ...


def metadata_location(runner: Runner, name: TableName) -> str | None:
    """Return a table's newest metadata file; None when Spark has no such Iceberg table.

    Raises:
        HeadraceError: What Spark said, when it is something else than the table missing.
    """
    try:
        rows = runner.run(f"SELECT file FROM {name.sql}.metadata_log_entries")
    except HeadraceError as error:
        if error.code in ("TABLE_NOT_FOUND", "NAMESPACE_NOT_FOUND"):
            return None
        raise
    return str(rows[-1][0]) if rows else None  # by place: times go back where the clocks of writers differ
