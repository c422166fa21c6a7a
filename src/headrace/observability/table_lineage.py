"""Answers which columns a stream table comes from, from the catalog alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.catalog import Catalog, StreamTable
from headrace.definitions.column_lineage import Lineages
from headrace.errors import UserError
from headrace.names import CLOCK, TableName, qualify, split_identifier
from headrace.results.lineage_results import ColumnLineage, TableLineage, column_origins
from headrace.suggestions import did_you_mean


def table_lineage(
    catalog: Catalog, text: str, namespace: tuple[str, ...], catalogs: frozenset[str], *, base: bool = False
) -> TableLineage:
    """Return the lineage of a stream table, or of one of its columns.

    Args:
        catalog: Where definitions are.
        text: The name, which may end with that of a column.
        namespace: Current namespace of the session.
        catalogs: Catalogs that the session knows.
        base: Whether stream tables are followed to the tables that they come from.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`, `COLUMN_NOT_FOUND`.
    """
    tables = {table.name: table for table in catalog.stream_tables()}
    stored, column = _named(catalog, tables, split_identifier(text), namespace, catalogs)
    found = lineage_in(Lineages(catalogs), stored, tables, base=base)
    if column is None or found.unknown:
        return found
    names = [each.name for each in found.columns]
    name = next((each for each in names if each.lower() == column.lower()), None)
    if name is None:
        raise UserError(
            "COLUMN_NOT_FOUND",
            f"{stored.name} has no column {column}.",
            hint=f"{did_you_mean(column, names)}It has {', '.join(names)}.",
        )
    only = tuple(each for each in found.columns if each.name == name)
    return TableLineage(found.table, found.reads, only, found.rows, base=base)


def lineage_in(
    lineages: Lineages, table: StreamTable, tables: Mapping[TableName, StreamTable], *, base: bool
) -> TableLineage:
    """Return the lineage of a stream table.

    Args:
        lineages: Reads definitions, and remembers.
        table: The stream table.
        tables: All of them.
        base: Whether they are followed to the tables that they come from.
    """
    name, reads = str(table.name), tuple(str(source) for source in table.sources if source != CLOCK)
    own = lineages.of(table)
    if own.lineage is None:
        return TableLineage(name, reads, (), (), own.unknown, base)
    lineage = lineages.to_base(table.name, tables.values()) if base else own.lineage
    columns = tuple(ColumnLineage(each, column_origins(origins)) for each, origins in lineage.columns.items())
    return TableLineage(name, reads, columns, column_origins(lineage.rows), base=base)


def _named(
    catalog: Catalog,
    tables: Mapping[TableName, StreamTable],
    parts: Sequence[str],
    namespace: tuple[str, ...],
    catalogs: frozenset[str],
) -> tuple[StreamTable, str | None]:
    """Return the stream table that a name means, and the column that it ends with."""
    whole = qualify(tuple(parts), namespace, catalogs) if len(parts) > 1 or namespace else None
    if whole is not None and whole in tables:
        return tables[whole], None
    if len(parts) > 2 or (len(parts) == 2 and namespace):
        table = qualify(tuple(parts[:-1]), namespace, catalogs)
        if table in tables:
            return tables[table], parts[-1]
    name = whole or qualify(tuple(parts), namespace, catalogs)
    return catalog.stream_table(name), None
