"""Stream tables that are defined, redefined and dropped without the publication that does so in the product."""

from __future__ import annotations

from headrace.catalog import Catalog, Definition, StreamTable
from headrace.catalog.coordination.notify import wake
from headrace.catalog.definitions import definition_writer
from headrace.catalog.publishing import staging_namespaces
from headrace.catalog.state.reader import Reader
from headrace.names import TableName


def create_stream_table(catalog: Catalog, definition: Definition) -> StreamTable:
    """Define a stream table, status NEW; fails where it exists."""
    with catalog._database.write() as connection:
        definition_writer.create_stream_table(connection, definition, catalog.now())
        wake(connection)
    return catalog.stream_table(definition.name)


def replace_stream_table(catalog: Catalog, definition: Definition) -> StreamTable:
    """Redefine a stream table: next generation, status NEW, no frontier."""
    with catalog._database.write() as connection:
        definition_writer.define(connection, (definition,), catalog.now())
    return catalog.stream_table(definition.name)


def drop_stream_table(catalog: Catalog, name: TableName) -> None:
    """Forget a stream table; its history and its stored tables stay."""
    with catalog._database.write() as connection:
        definition_writer.drop_stream_tables(connection, (name,))


def readers(catalog: Catalog, name: TableName) -> tuple[TableName, ...]:
    """Return the stream tables that read a relation directly, by name."""
    return tuple(table.name for table in catalog.stream_tables() if name in table.sources)


def empty_namespaces(reader: Reader) -> set[str]:
    """Return namespaces of `staging` that have no table."""
    return staging_namespaces.empty(reader._connection)
