"""Pointers of `lake` and `staging`, as rows of Iceberg's `iceberg_tables`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.records import ForeignWrite, Pointer
from headrace.catalog.relations import MANY
from headrace.lakes.lake_server import Key
from headrace.names import LAKE, STAGING, TableName

_C = t.iceberg_tables.c


class PointerRow(NamedTuple):
    """A row's changing part."""

    metadata_location: str
    previous_metadata_location: str | None
    iceberg_type: str | None


def key_of(name: TableName) -> Key:
    """Return the key of a stored table."""
    return (name.namespace_text, name.table)


def name_of(key: Key, catalog: str = LAKE) -> TableName:
    """Return the table a key stands for.

    Iceberg's SQL catalog joins namespace levels by dots, so a level holds none.
    """
    return TableName(catalog, tuple(key[0].split(".")) if key[0] else (), key[1])


def one_of(
    keys: Iterable[Key], namespace: sa.ColumnElement[str], table: sa.ColumnElement[str]
) -> sa.ColumnElement[bool]:
    """Return the condition that a row is one of few keys; always true for many."""
    listed = sorted(set(keys))
    return sa.true() if len(listed) > MANY else sa.tuple_(namespace, table).in_(listed)


_EVERY = sa.select(_C.table_namespace, _C.table_name, _C.metadata_location, _C.iceberg_type).where(
    _C.catalog_name == sa.bindparam("catalog")
)
_SOME = _EVERY.where(sa.tuple_(_C.table_namespace, _C.table_name).in_(sa.bindparam("keys", expanding=True)))


def outside(connection: Connection, folder: str) -> dict[str, bool]:
    """Return metadata files in other local folders, and whether Headrace published them."""
    local = _C.metadata_location.startswith("/"), _C.metadata_location.startswith("file:/")
    inside = [
        _C.metadata_location.startswith(f"{p}{folder.rstrip('/')}/", autoescape=True) for p in ("", "file:", "file://")
    ]
    ours = t.published
    query = (
        sa.select(_C.metadata_location, ours.c.table_name.is_not(None))
        .select_from(t.iceberg_tables.outerjoin(ours, _points_at(t.iceberg_tables, LAKE, ours)))
        .where(_C.catalog_name == LAKE, sa.or_(*local), sa.not_(sa.or_(*inside)))
        .order_by(_C.metadata_location)
    )
    return {
        "/" + str(location).removeprefix("file:").lstrip("/"): bool(published)
        for location, published in connection.execute(query)
    }


def read(connection: Connection, catalog: str, names: Iterable[TableName] | None) -> dict[TableName, Pointer]:
    """Return pointers of one Iceberg catalog, of all its tables and views or of some."""
    wanted = None if names is None else {key_of(n) for n in names}
    few = wanted is not None and len(wanted) <= MANY
    given = {"catalog": catalog, **({"keys": sorted(wanted or ())} if few else {})}
    found = {}
    for namespace, table, location, kind in connection.execute(_SOME if few else _EVERY, given):
        if wanted is None or (namespace, table) in wanted:
            name = name_of((namespace, table), catalog)
            found[name] = Pointer(name, location, kind == "VIEW")
    return found


def rows(connection: Connection, catalog: str, keys: Iterable[Key] | None) -> dict[Key, PointerRow]:
    """Return rows of one Iceberg catalog, all or some; nothing is locked."""
    wanted = None if keys is None else set(keys)
    query = sa.select(_C.table_namespace, _C.table_name).add_columns(
        _C.metadata_location, _C.previous_metadata_location, _C.iceberg_type
    )
    query = query.where(_C.catalog_name == catalog)
    if wanted is not None:
        query = query.where(one_of(wanted, _C.table_namespace, _C.table_name))
    return {
        (namespace, table): PointerRow(*rest)
        for namespace, table, *rest in connection.execute(query)
        if wanted is None or (namespace, table) in wanted
    }


def lock(connection: Connection, catalogs: Iterable[str], keys: Iterable[Key]) -> dict[tuple[str, Key], PointerRow]:
    """Lock the rows of stored tables in an order that avoids deadlocks, and return them."""
    wanted = set(keys)
    query = (
        sa.select(_C.catalog_name, _C.table_namespace, _C.table_name)
        .add_columns(_C.metadata_location, _C.previous_metadata_location, _C.iceberg_type)
        .where(_C.catalog_name.in_(sorted(catalogs)), one_of(wanted, _C.table_namespace, _C.table_name))
        .order_by(_C.catalog_name, _C.table_namespace, _C.table_name)
        .with_for_update()
    )
    return {
        (catalog, (namespace, table)): PointerRow(*rest)
        for catalog, namespace, table, *rest in connection.execute(query)
        if (namespace, table) in wanted
    }


def dirty(connection: Connection, names: Iterable[TableName] | None = None) -> tuple[TableName, ...]:
    """Return tables whose `staging` pointer differs from `lake`, or has no counterpart.

    One without a `staging` pointer, where it was published, is what is left of a replacement that ended too early.
    """
    ours, staging, lake = t.published, t.iceberg_tables.alias("staging"), t.iceberg_tables.alias("lake")
    differing = (
        sa.select(staging.c.table_namespace, staging.c.table_name)
        .select_from(staging.outerjoin(lake, _points_at(lake, LAKE, staging)))
        .where(staging.c.catalog_name == STAGING)
        .where(lake.c.metadata_location.is_distinct_from(staging.c.metadata_location))
    )
    shown = ours.join(lake, _points_at(lake, LAKE, ours))
    missing = (
        sa.select(ours.c.table_namespace, ours.c.table_name)
        .select_from(shown.outerjoin(staging, _points_at(staging, STAGING, ours)))
        .where(staging.c.table_name.is_(None))
    )
    wanted = None if names is None else {key_of(n) for n in names}
    if wanted is not None:
        differing = differing.where(one_of(wanted, staging.c.table_namespace, staging.c.table_name))
        missing = missing.where(one_of(wanted, ours.c.table_namespace, ours.c.table_name))
    found = sorted(tuple(row) for row in connection.execute(sa.union_all(differing, missing)))
    return tuple(name_of(key) for key in found if wanted is None or key in wanted)


def _points_at(pointer: sa.FromClause, catalog: str, named: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return whether a pointer is that of a table in a catalog."""
    return sa.and_(
        pointer.c.catalog_name == catalog,
        pointer.c.table_namespace == named.c.table_namespace,
        pointer.c.table_name == named.c.table_name,
    )


def foreign(connection: Connection, names: Iterable[TableName] | None) -> tuple[ForeignWrite, ...]:
    """Return stored tables whose `lake` pointer is not what was published last."""
    ours, lake = t.published, t.iceberg_tables.alias("lake")
    query = (
        sa.select(ours.c.table_namespace, ours.c.table_name, ours.c.metadata_location, lake.c.metadata_location)
        .select_from(ours.outerjoin(lake, _points_at(lake, LAKE, ours)))
        .where(lake.c.metadata_location.is_distinct_from(ours.c.metadata_location))
        .order_by(ours.c.table_namespace, ours.c.table_name)
    )
    wanted = None if names is None else {key_of(n) for n in names}
    return tuple(
        ForeignWrite(name_of((namespace, table)), published, found)
        for namespace, table, published, found in connection.execute(query)
        if wanted is None or (namespace, table) in wanted
    )


def namespaces(connection: Connection, catalog: str = LAKE) -> set[str]:
    """Return texts of an Iceberg catalog's namespaces: created ones, and those of its tables."""
    created = t.iceberg_namespaces.c
    query = sa.union(
        sa.select(created.namespace).where(created.catalog_name == catalog),
        sa.select(_C.table_namespace).where(_C.catalog_name == catalog),
    )
    return set(connection.execute(query).scalars())


def namespace_properties(connection: Connection) -> dict[str, dict[str, str]]:
    """Return the namespaces of `lake`, with the properties that users gave them."""
    created = t.iceberg_namespaces.c
    found: dict[str, dict[str, str]] = {name: {} for name in sorted(namespaces(connection))}
    query = sa.select(created.namespace, created.property_key, created.property_value)
    for name, key, value in connection.execute(query.where(created.catalog_name == LAKE)):
        if key != _EXISTS and value is not None:
            found[name][key] = value
    return found


_EXISTS = "exists"
"""Iceberg's own mark of a namespace that has no properties."""
