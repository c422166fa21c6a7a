"""Column lineage, as users are given it."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.algebra.lineage import Influence, Origins
from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class ColumnOrigin(Record):
    """A column that a result comes from.

    Args:
        table: Its table.
        column: Its name.
        influence: How it takes part, in OpenLineage's words. Its values go into the result as they are (`IDENTITY`),
            computed (`TRANSFORMATION`) or aggregated (`AGGREGATION`); or it decides: `CONDITIONAL`, `FILTER`,
            `GROUP_BY`, `JOIN`, `SORT`, `WINDOW`.
    """

    table: str
    column: str
    influence: Influence

    @property
    def direct(self) -> bool:
        """Return whether its values go into the result."""
        return self.influence.direct


@dataclass(frozen=True, slots=True)
class ColumnLineage(Record):
    """The origins of a column of a stream table.

    Args:
        name: The column.
        origins: The columns that its values come from, or that decide about them; empty for constants and `count(*)`.
    """

    name: str
    origins: tuple[ColumnOrigin, ...]


@dataclass(frozen=True, slots=True)
class TableLineage(Record):
    """The origins of the columns of a stream table.

    Args:
        table: The stream table.
        reads: The relations that its query reads.
        columns: Its columns, in order, or the one that was asked for; none where their origins are not known.
        rows: The columns that decide which rows there are: those of joins, filters, grouping and order.
        unknown: Why origins are not known; None where they are.
        base: Whether stream tables were followed to the tables that they come from.
    """

    table: str
    reads: tuple[str, ...]
    columns: tuple[ColumnLineage, ...]
    rows: tuple[ColumnOrigin, ...]
    unknown: str | None = None
    base: bool = False


def column_origins(origins: Origins) -> tuple[ColumnOrigin, ...]:
    """Return origins in an order that does not change: direct ones first."""
    ordered = sorted(origins, key=lambda o: (not o.influence.direct, str(o.table), o.column, o.influence))
    return tuple(ColumnOrigin(str(each.table), each.column, each.influence) for each in ordered)
