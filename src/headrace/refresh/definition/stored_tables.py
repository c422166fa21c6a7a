"""Makes the tables in which stream tables are stored; everything is made in `staging`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from headrace.algebra.schema import Column
from headrace.catalog import Catalog, LogChange, Publication, Swap, resource_of
from headrace.definitions.details import from_json
from headrace.errors import HeadraceError
from headrace.lake.tables import create_log, create_namespace, create_table, new_suffix, stored_names, table_location
from headrace.names import LAKE, STAGING, SYSTEM_NAMESPACE, TableName
from headrace.ports import Session
from headrace.refresh.held_leases import holding_leases


class StoredTables:
    """Makes stored tables of one project.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        warehouse: Where tables are stored.
        format_version: Iceberg format of new tables.
    """

    def __init__(self, catalog: Catalog, session: Session, warehouse: str, format_version: int) -> None:
        self.catalog = catalog
        self.session = session
        self.warehouse = warehouse
        self.format_version = format_version

    def make(self, table: TableName, columns: Sequence[Column], suffix: str) -> None:
        """Create a state or a companion, empty."""
        location = table_location(self.warehouse, table, suffix)
        self._run(
            create_namespace(STAGING, table.namespace),
            create_table(table, tuple(columns), location=location, format_version=self.format_version),
        )

    def make_again(self, table: TableName, columns: Sequence[Column], suffix: str) -> None:
        """Create a state, empty, in place of the one in `staging`; the one in `lake` stays."""
        self._run(f"DROP TABLE IF EXISTS {table.sql}")
        self.make(table, columns, suffix)

    def make_log(self, name: TableName, columns: Sequence[Column], suffix: str) -> TableName:
        """Create a stream table's change log, empty: it begins after the version the table has.

        Args:
            name: The stream table.
            columns: Its columns.
            suffix: What the name of the log ends with.
        """
        log = stored_names(name, suffix).log
        newest = self.catalog.newest_versions([name]).get(name)
        self._run(
            create_namespace(STAGING, (SYSTEM_NAMESPACE,)),
            create_log(
                log,
                tuple(columns),
                location=table_location(self.warehouse, log, suffix),
                format_version=self.format_version,
                after=0 if newest is None else newest.version,
            ),
        )
        return log.within(LAKE)

    def logless(self, sources: Iterable[TableName]) -> tuple[TableName, ...]:
        """Return stream tables among sources that keep no change log yet."""
        streams = {t.name: t for t in self.catalog.stream_tables()}
        return tuple(n for n in dict.fromkeys(sources) if n in streams and streams[n].log is None)

    def start_logs(self, names: Iterable[TableName]) -> None:
        """Start change logs from the versions the tables are at; the callers hold their leases."""
        for name in names:
            log = self.make_log(name, from_json(self.catalog.stream_table(name).details).output, new_suffix())
            self.catalog.publish_or_settle(Publication(swaps=(Swap(log, None),), logs=(LogChange(name, log),)))

    def end_unread_logs(self, *, patience: float = 0.0) -> None:
        """End change logs that nobody reads any more; a new reader starts a new one.

        Those of tables that are busy for longer are left to maintenance.

        Args:
            patience: Seconds to wait for whoever refreshes one of the tables.
        """
        with self.catalog.reading() as reader:
            read = {source for sources in reader.dependencies().values() for source in sources}
            read |= {sink.stream for sink in reader.sinks()}
            unread = [t.name for t in reader.stream_tables() if t.log is not None and t.name not in read]
        for name in unread:
            with (
                suppress(HeadraceError),
                holding_leases(self.catalog, [resource_of(name)], patience=patience) as leases,
            ):
                # only now: whoever held the lease may have given it another one
                table = self.catalog.stream_table(name)
                deletes = () if table.log is None else (table.log,)
                self.catalog.publish_or_settle(
                    Publication(deletes=deletes, leases=leases(), logs=(LogChange(name, None),))
                )

    def _run(self, *statements: str) -> None:
        runner = self.session.runner()
        for statement in statements:
            runner.run(statement)
