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


def metadata_location(runner: Runner, name: TableName, *, cached: bool = False) -> str | None:
    """Return a table's newest metadata file; None when Spark has no such Iceberg table.

    Args:
        runner: Asks Spark.
        name: The table.
        cached: Whether the catalog keeps tables that it has loaded. Iceberg forgets one half a minute after the last
            look, so that whoever looks more often would never see a commit of others.

    Raises:
        HeadraceError: What Spark said, when it is something else than the table missing.
    """
    try:
        if cached:
            runner.run(f"REFRESH TABLE {name.sql}")
        rows = runner.run(f"SELECT file FROM {name.sql}.metadata_log_entries")
    except HeadraceError as error:
        if error.code in ("TABLE_NOT_FOUND", "NAMESPACE_NOT_FOUND"):
            return None
        raise
    return str(rows[-1][0]) if rows else None  # by place: times go back where the clocks of writers differ
