"""The adapter: what dbt's macros may ask of Headrace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.headrace import seeds, stream_tables, views
from dbt.adapters.headrace.answers import records
from dbt.adapters.headrace.connections import HeadraceConnectionManager
from dbt.adapters.headrace.failures import as_dbt_error
from dbt.adapters.headrace.projects import Project
from dbt.adapters.headrace.relation import HeadraceRelation, HeadraceRelationType
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig

from headrace.errors import HeadraceError


@dataclass
class HeadraceConfig(SparkConfig):
    """Configs of models that other adapters do not have.

    Args:
        schedule: When a stream table is refreshed, as `SCHEDULE` says it.
        target_lag: The same by its other name.
        refresh_mode: `AUTO`, `FULL` or `DIFFERENTIAL`.
        properties: Properties of the stream table, as `WITH` says them.
        initialize: Whether it is loaded when it is created.
        refresh: Whether a run brings it up to date.
    """

    schedule: str | None = None
    target_lag: str | None = None
    refresh_mode: str | None = None
    properties: dict[str, Any] | None = None
    initialize: bool = True
    refresh: bool = True


class HeadraceAdapter(SparkAdapter):
    """dbt-spark over an open Headrace project."""

    ConnectionManager = HeadraceConnectionManager
    Relation = HeadraceRelation
    AdapterSpecificConfigs = HeadraceConfig

    @available
    def build_stream_table(
        self,
        relation: HeadraceRelation,
        query: str,
        config: Mapping[str, Any],
        full_refresh: bool,
        on_change: str,
        existing: HeadraceRelation | None = None,
    ) -> dict[str, Any]:
        """Make a stream table what a model says; see `stream_tables.build`.

        A table or view of that name stays until the stream table is loaded, and comes back where that fails.
        """
        name = relation.render()
        with self._project() as project:
            make = partial(
                stream_tables.build, project, name, query, config, full_refresh=full_refresh, on_change=on_change
            )
            if existing is None or existing.is_stream_table:
                return _as_response(make())
            kind = "VIEW" if existing.is_view else "TABLE"
            return _as_response(stream_tables.replace_relation(project, name, kind, make))

    @available
    def load_seed(
        self, relation: HeadraceRelation, table: Any, types: Mapping[str, str], **how: bool
    ) -> dict[str, Any]:
        """Make a table hold the rows of a seed; see `seeds.load`."""
        columns = {
            name: types.get(name) or self.convert_type(table, index) for index, name in enumerate(table.column_names)
        }
        rows = [tuple(row) for row in table.rows]
        with self._project() as project:
            return _as_response(seeds.load(project, relation.render(), rows, columns, **how))

    @available
    def is_view_unchanged(self, relation: HeadraceRelation, query: str, digest: str) -> bool:
        """Return whether a view is what its model says; see `views.is_unchanged`."""
        with self._project() as project:
            return views.is_unchanged(project, relation.render(), query, digest)

    @available
    def check_query(self, query: str) -> None:
        """Refuse a query that is none, before anything is dropped for it."""
        with self._project() as project:
            project.run(f"EXPLAIN STREAM TABLE AS\n{query}")

    @available
    def headrace_refresh(self, names: Sequence[str] | None, full: bool) -> list[Mapping[str, Any]]:
        """Refresh stream tables, or all that are behind."""
        which = f"STREAM TABLE {', '.join(names)}" if names else "ALL STREAM TABLES"
        with self._project() as project:
            return records(stream_tables.patiently(project, f"REFRESH {which}{' FULL' * full}"))

    @available
    def headrace_verify(self, names: Sequence[str] | None) -> list[dict[str, Any]]:
        """Compare stream tables, or all, with their queries."""
        with self._project() as project:
            return project.verify(names)

    @available
    def headrace_drop(self, name: str, cascade: bool) -> list[str]:
        """Drop a stream table; return what is gone."""
        with self._project() as project:
            found = stream_tables.patiently(project, f"DROP STREAM TABLE {name}{' CASCADE' * cascade}")
            return [str(row[0]) for row in found.rows()]

    def list_relations_without_caching(self, schema_relation: HeadraceRelation) -> list[HeadraceRelation]:
        """Return tables, views and stream tables of a namespace; none where there is none."""
        schema = schema_relation.schema or ""
        kinds: dict[str, HeadraceRelationType] = {}
        with self._project() as project:
            try:
                tables, seen = (project.run(f"SHOW {what} IN lake.{schema}").rows() for what in ("TABLES", "VIEWS"))
            except HeadraceError as error:
                if error.code != "NAMESPACE_NOT_FOUND":
                    raise
                return []
            streams = records(project.run(f"SHOW STREAM TABLES IN {schema}"))
        kinds |= {row[1]: HeadraceRelationType.Table for row in tables if not row[2]}
        kinds |= {row[1]: HeadraceRelationType.View for row in seen if not row[2]}
        kinds |= {str(one["name"]).rpartition(".")[2]: HeadraceRelationType.StreamTable for one in streams}
        return [
            self.Relation.create(schema=schema, identifier=name, type=kind, is_iceberg=True, information="")
            for name, kind in kinds.items()
        ]

    @contextmanager
    def _project(self) -> Iterator[Project]:
        """Return the open project; its errors become dbt's."""
        connection = self.connections.get_thread_connection()
        with as_dbt_error():
            yield connection.handle.project

    @classmethod
    def type(cls) -> str:
        """Return what profiles call this adapter."""
        return "headrace"

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {"adapter_type": "headrace", "table_format": "iceberg"}


def _as_response(done: stream_tables.Outcome) -> dict[str, Any]:
    return {"message": done.message, "code": done.code, "rows": done.rows, "refused": done.refused}
