"""The adapter: what dbt's macros may ask of Headrace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.headrace import seeds, stream_tables, views
from dbt.adapters.headrace.connections import HeadraceConnectionManager
from dbt.adapters.headrace.failures import as_dbt_error
from dbt.adapters.headrace.relation import HeadraceRelation, HeadraceRelationType
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig
from dbt_common.exceptions import DbtRuntimeError

from headrace.api.facade import Headrace


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
        self, relation: HeadraceRelation, query: str, config: Mapping[str, Any], full_refresh: bool, on_change: str
    ) -> dict[str, Any]:
        """Make a stream table what a model says; see `stream_tables.build`."""
        with self._project() as hr:
            done = stream_tables.build(
                hr, relation.render(), query, config, full_refresh=full_refresh, on_change=on_change
            )
        return _as_response(done)

    @available
    def load_seed(
        self, relation: HeadraceRelation, table: Any, types: Mapping[str, str], **how: bool
    ) -> dict[str, Any]:
        """Make a table hold the rows of a seed; see `seeds.load`."""
        columns = {
            name: types.get(name) or self.convert_type(table, index) for index, name in enumerate(table.column_names)
        }
        with self._project() as hr:
            return _as_response(seeds.load(hr, relation.render(), [tuple(row) for row in table.rows], columns, **how))

    @available
    def is_view_unchanged(self, relation: HeadraceRelation, query: str, digest: str) -> bool:
        """Return whether a view is what its model says; see `views.is_unchanged`."""
        with self._project() as hr:
            return views.is_unchanged(hr, relation.render(), query, digest)

    @available
    def check_query(self, query: str) -> None:
        """Refuse a query that is none, before anything is dropped for it."""
        with self._project() as hr:
            hr.validate(query)

    @available
    def headrace(self, verb: str, **arguments: Any) -> Any:
        """Call a method of the open project, for operations; results as plain values."""
        if verb not in ("refresh", "verify", "drop_stream_table", "status", "repair"):
            raise DbtRuntimeError(f"headrace() has no verb {verb!r}.")
        with self._project() as hr:
            found = getattr(hr, verb)(**arguments)
        several = found if isinstance(found, tuple) else (found,)
        return [one.as_dict() if hasattr(one, "as_dict") else one for one in several]

    def list_relations_without_caching(self, schema_relation: HeadraceRelation) -> list[HeadraceRelation]:
        """Return tables, views and stream tables of a namespace; none where there is none."""
        schema = schema_relation.schema or ""
        with self._project() as hr:
            prefix = f"{schema.lower()}."
            streams = {info.name.lower() for info in hr.status() if info.name.lower().startswith(prefix)}
            own = [name for name in hr.relations() if name.lower().startswith(prefix)]
            own = [name for name in own if "." not in name[len(prefix) :]]
            seen = self._views(hr, schema) if len(own) > len(streams) else frozenset()

        def kind(name: str) -> HeadraceRelationType:
            if name.lower() in streams:
                return HeadraceRelationType.StreamTable
            return HeadraceRelationType.View if name.lower() in seen else HeadraceRelationType.Table

        return [
            self.Relation.create(
                schema=schema, identifier=name[len(prefix) :], type=kind(name), is_iceberg=True, information=""
            )
            for name in own
        ]

    @staticmethod
    def _views(hr: Headrace, schema: str) -> frozenset[str]:
        found = hr.sql(f"SHOW VIEWS IN lake.{schema}").collect()
        return frozenset(f"{schema}.{row.viewName}".lower() for row in found if not row.isTemporary)

    @contextmanager
    def _project(self) -> Iterator[Headrace]:
        """Return the open project; its errors become dbt's."""
        connection = self.connections.get_thread_connection()
        with as_dbt_error():
            yield connection.handle.hr

    @classmethod
    def type(cls) -> str:
        """Return what profiles call this adapter."""
        return "headrace"

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {"adapter_type": "headrace", "table_format": "iceberg"}


def _as_response(done: stream_tables.Outcome) -> dict[str, Any]:
    return {"message": done.message, "code": done.code, "rows": done.rows, "refused": done.refused}
