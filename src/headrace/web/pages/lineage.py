"""Column lineage in words, for the graph's lines and a stream table's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.algebra.lineage import Influence
from headrace.catalog import StreamTable
from headrace.definitions.details import Details, SourceUse, from_json
from headrace.names import CLOCK
from headrace.observability.table_lineage import lineage_in
from headrace.results.lineage_results import ColumnOrigin, TableLineage
from headrace.web.site import Site

COLUMNS_SHOWN = 12
"""Columns that the words of a line name."""

Ways = list[tuple[str, list[tuple[str, str]]]]
"""Ways in which columns take part, each with tables and columns."""


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """A column of a stream table, and where it comes from.

    Args:
        name: Its name; "which rows" for what decides about rows.
        type: Its type; "" for rows.
        direct: What it comes from, in the relations that the query reads.
        base: The same, through all stream tables.
    """

    name: str
    type: str
    direct: Ways
    base: Ways


def column_rows(site: Site, stored: StreamTable, details: Details) -> Iterator[ColumnRow]:
    """Yield a stream table's columns, and what decides about its rows."""
    tables = {table.name: table for table in site.project._catalog.stream_tables()}
    direct = lineage_in(site.lineages, stored, tables, base=False)
    base = lineage_in(site.lineages, stored, tables, base=True)
    found = {column.name: column.origins for column in direct.columns}
    ends = {column.name: column.origins for column in base.columns}
    for column in details.output:
        yield ColumnRow(column.name, column.type, _ways(found.get(column.name, ())), _ways(ends.get(column.name, ())))
    if direct.rows:
        yield ColumnRow("which rows", "", _ways(direct.rows), _ways(base.rows))


def columns_read(site: Site, inside: set[str]) -> dict[tuple[str, str], str]:
    """Return, by producer and consumer, which columns become which, in words.

    Args:
        site: The project.
        inside: The consumers that are asked for.
    """
    tables = {table.name: table for table in site.project._catalog.stream_tables()}
    found = {}
    for table in tables.values():
        if str(table.name) not in inside:
            continue
        lineage = lineage_in(site.lineages, table, tables, base=False)
        for use in from_json(table.details).sources:
            if use.name == CLOCK:
                continue
            words = _only_read(use) if lineage.unknown else _becomes(lineage, str(use.name))
            found[str(use.name), str(table.name)] = words
    return found


def _ways(origins: Sequence[ColumnOrigin]) -> Ways:
    ways = dict.fromkeys(origin.influence for origin in origins)
    return [(way.value, [(o.table, o.column) for o in origins if o.influence is way]) for way in ways]


def _only_read(use: SourceUse) -> str:
    return _shortened([column.name for column in use.columns]) or "only its rows are counted"


def _becomes(lineage: TableLineage, producer: str) -> str:
    parts = [
        _written(origin, column.name)
        for column in lineage.columns
        for origin in column.origins
        if origin.table == producer
    ]
    rows = [f"{origin.column} ({origin.influence.value})" for origin in lineage.rows if origin.table == producer]
    words = [_shortened(parts), f"which rows: {_shortened(rows)}" if rows else ""]
    return "; ".join(filter(None, words)) or "only its rows are counted"


def _written(origin: ColumnOrigin, name: str) -> str:
    """Return how a column becomes another one; one that stays what it is is only named."""
    if origin.influence is not Influence.IDENTITY:
        return f"{origin.column} → {name} ({origin.influence.value})"
    return name if origin.column == name else f"{origin.column} → {name}"


def _shortened(parts: list[str]) -> str:
    more = f" and {len(parts) - COLUMNS_SHOWN} more" if len(parts) > COLUMNS_SHOWN else ""
    return ", ".join(parts[:COLUMNS_SHOWN]) + more
