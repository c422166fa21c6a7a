"""Explains, validates and shows; changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.api.pinned import Pinned
from headrace.api.project_handle import Names, ProjectHandle
from headrace.errors import HeadraceError
from headrace.graph.dag import Dag
from headrace.names import CLOCK, RESERVED_PREFIX, TableName
from headrace.observability import status as _status
from headrace.results.refresh_results import (
    FunctionInfo,
    HistoryRow,
    StreamTableInfo,
    Validation,
)

if TYPE_CHECKING:
    from headrace.results.lineage_results import TableLineage


class InspectVerbs(ProjectHandle):
    """Verbs that only look."""

    def validate(self, query: str) -> Validation:
        """Report for each construct of a query how it would be maintained; create nothing.

        Args:
            query: A SELECT. A syntax error is found without starting Spark.

        Raises:
            UserError: the text is no valid query.
        """
        from headrace.refresh.definition.validate import validate

        plans, _, _ = self._engine()
        return validate(query, catalog=self._catalog, session=self._lazy, plans=plans)

    def functions(self) -> tuple[FunctionInfo, ...]:
        """Return the project's Python functions, and the stream tables that call them.

        Loads `functions.py`, starts no Spark.

        Raises:
            UserError: `FUNCTION_INVALID`.
        """
        from headrace.definitions.function_versions import function_infos

        return function_infos(self._catalog, self._lazy.functions())

    def status(self, names: Iterable[str] | None = None) -> tuple[StreamTableInfo, ...]:
        """Return where the stream tables stand; reads the catalog only and starts no Spark."""
        from headrace.api.schedules.schedule_status import read_status

        return read_status(self._catalog, self.settings, None if names is None else self._names(names))

    def history(self, name: str | None = None, limit: int | None = 20) -> tuple[HistoryRow, ...]:
        """Return past refreshes, newest first, also of tables that were dropped.

        Reads the catalog only.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND` for a name that never was a stream table.
        """
        wanted = self._name(name) if name is not None else None
        found = _status.history(self._catalog, wanted, limit)
        if wanted is not None and not found:
            self._catalog.stream_table(wanted)  # who has none must at least exist
        return found

    def copied(self) -> HeadraceError | None:
        """Return the error `CATALOG_COPIED` of a catalog in another database than the project's.

        None where it is in its own, or that is not known. Reads the catalog only.
        """
        return self._catalog.copied()

    def show_create(self, names: str | Names | None = None) -> str:
        """Return statements that make stream tables again, exactly; reads the catalog only.

        Each makes one: query and comments as they were written, schedule, refresh mode and all properties. Where names
        in the query have no namespace, `USE` comes first; where the session was set otherwise than sessions of this
        project are, `SET`, and `RESET` after it. A table that was never loaded is not loaded by it either. For a member
        of a cycle come those of the whole cycle: some are made without rows first, and replaced at the end.

        Args:
            names: One, several, or (None) all but those of deployments; what is read comes first.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        from headrace.api.session import usual_semantics
        from headrace.definitions.creation_statement import creation_statements
        from headrace.definitions.details import deployment_of

        wanted = None if names is None else self._several(names)
        with self._catalog.reading() as reader:
            public = (table for table in reader.stream_tables() if not deployment_of(table.details))
            tables = list(public) if wanted is None else [reader.stream_table(name) for name in wanted]
            graph = Dag(reader.dependencies())
            wholes = {name for table in tables for name in graph.component(table.name) or (table.name,)}
            ordered = [reader.stream_table(name) for name in graph.order(wholes)]
        catalogs, usual = self._lazy.catalogs(), usual_semantics(self.settings)
        return "\n\n".join(creation_statements(ordered, graph, catalogs, usual))

    def relations(self) -> tuple[str, ...]:
        """Return the names of tables and views of the lake that users may read; starts no Spark.

        Stream tables, mirrors and users' own tables; not what Headrace keeps beside them.
        """
        from headrace.api.own_tables import owners_of

        owners = owners_of(self._catalog)
        hidden = {name for name, owner in owners.items() if owner.part}
        return tuple(sorted(str(name) for name in self._catalog.pointers() if name not in hidden))

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the names of a table's or view's columns.

        Those of the lake are read from its metadata, without Spark; others by Spark, if it has been started.

        Raises:
            UserError: `INVALID_NAME`.
            EnvironmentFault: `METADATA_UNREADABLE`.
        """
        from headrace.lake.metadata import read_metadata
        from headrace.lake.views import read_view

        wanted = self._name(name) if "." in name or self._lazy.namespace() else None
        pointer = self._catalog.pointers(names=[wanted]).get(wanted) if wanted is not None else None
        if pointer is not None and pointer.is_view:
            return tuple(column.name for column in read_view(pointer.metadata_location).columns)
        if pointer is not None:
            found = read_metadata(pointer.metadata_location).columns
            return tuple(column.name for column in found if not column.name.startswith(RESERVED_PREFIX))
        return self._columns_by_spark(name)

    def _columns_by_spark(self, name: str) -> tuple[str, ...]:
        if not self._lazy.started:
            return ()
        from headrace.spark.errors import translated

        with translated():
            return tuple(self.spark.table(name).columns)

    def graph(self) -> Dag[TableName]:
        """Return the DAG of sources and stream tables; reads the catalog only."""
        reads = self._catalog.dependencies()
        return Dag({name: tuple(s for s in sources if s != CLOCK) for name, sources in reads.items()})

    def lineage(self, name: str, *, base: bool = False) -> TableLineage:
        """Return which columns each column of a stream table comes from, and how; starts no Spark.

        Args:
            name: A stream table, or one of its columns: `shop.revenue`, `shop.revenue.total`.
            base: Whether stream tables that it reads are followed to the tables that these come from.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `COLUMN_NOT_FOUND`.
        """
        from headrace.observability.table_lineage import table_lineage

        return table_lineage(self._catalog, name, self._lazy.namespace(), self._lazy.catalogs(), base=base)

    def at(self, when: dt.datetime | int | None = None) -> Pinned:
        """Pin one published state for reading several tables consistently.

        Args:
            when: A time, or the number of a publication (see `history`); the newest state when None.

        Raises:
            UserError: `PUBLICATION_NOT_FOUND`.
        """
        return Pinned(self._catalog, self._lazy, when)
