"""Iceberg as the catalog sees it: something that moves pointers by compare-and-set. The statements are Iceberg's."""

from __future__ import annotations

import sqlalchemy as sa

from catalog_kit.databases import sql
from headrace.names import LAKE, STAGING, TableName

_INSERT = sa.text(
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location,"
    " previous_metadata_location, iceberg_type) VALUES (:catalog, :namespace, :table, :location, null, 'TABLE')"
)
_COMMIT = sa.text(
    "UPDATE iceberg_tables SET metadata_location = :location, previous_metadata_location = :expected"
    " WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
    " AND metadata_location = :expected AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
)
_READ = sa.text(
    "SELECT metadata_location FROM iceberg_tables"
    " WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
)
_DROP = sa.text(
    "DELETE FROM iceberg_tables WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
)
_CREATE_NAMESPACE = sa.text(
    "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)"
    " VALUES (:catalog, :namespace, 'exists', 'true')"
)
_NAMESPACES = sa.text(
    "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = :catalog ORDER BY namespace"
)


class CommitFailed(Exception):
    """Somebody else was faster."""


class Iceberg:
    """Commits to tables in either catalog."""

    def __init__(self, url: str) -> None:
        self._url = url

    def commit(self, name: TableName, location: str, *, catalog: str = STAGING, expected: str | None = None) -> None:
        """Let a table point at new metadata, from `expected` or from what it is; creates it when it is not there."""
        with sql(self._url) as connection:
            where = _where(name, catalog)
            now = expected or connection.execute(_READ, where).scalar_one_or_none()
            if now is None:
                connection.execute(_INSERT, where | {"location": location})
            elif connection.execute(_COMMIT, where | {"location": location, "expected": now}).rowcount != 1:
                raise CommitFailed

    def drop(self, name: TableName, *, catalog: str = LAKE) -> None:
        with sql(self._url) as connection:
            connection.execute(_DROP, _where(name, catalog))

    def create_namespace(self, namespace: str, catalog: str = STAGING) -> None:
        with sql(self._url) as connection:
            connection.execute(_CREATE_NAMESPACE, {"catalog": catalog, "namespace": namespace})

    def namespaces(self, catalog: str = STAGING) -> list[str]:
        with sql(self._url) as connection:
            return list(connection.execute(_NAMESPACES, {"catalog": catalog}).scalars())

    def pointer(self, name: TableName, catalog: str = LAKE) -> str | None:
        with sql(self._url) as connection:
            return connection.execute(_READ, _where(name, catalog)).scalar_one_or_none()

    def row(self, name: TableName, catalog: str = LAKE) -> tuple[str, str | None, str] | None:
        """Location, previous location and type."""
        columns = "metadata_location, previous_metadata_location, iceberg_type"
        with sql(self._url) as connection:
            query = sa.text(str(_READ).replace("metadata_location", columns, 1))
            found = connection.execute(query, _where(name, catalog)).one_or_none()
            return None if found is None else tuple(found)


def _where(name: TableName, catalog: str) -> dict[str, str]:
    return {"catalog": catalog, "namespace": name.namespace_text, "table": name.table}
