"""Checks a definition by its text and the catalog alone, before Spark is started for it."""

from __future__ import annotations

from headrace.catalog import Catalog
from headrace.definitions.user_text import refuse_unclear_names, relations_read, resolver
from headrace.errors import UserError, place_at
from headrace.names import LAKE, TableName
from headrace.ports import Session
from headrace.refresh.definition.catalog_views import CatalogViews
from headrace.refresh.definition.define import refuse_time_travel, refuse_variables, relations_named
from headrace.sql.references import references
from headrace.suggestions import did_you_mean


def check_namespace(catalog: Catalog, name: TableName) -> None:
    """Refuse a namespace that does not exist: a typo must not make one.

    Raises:
        UserError: `NAMESPACE_NOT_FOUND`.
    """
    known = catalog.namespaces()
    if name.namespace_text in known:
        return
    namespace = ".".join(name.namespace)
    raise UserError(
        "NAMESPACE_NOT_FOUND",
        f"There is no namespace {namespace}; nothing was created.",
        hint=f"{did_you_mean(namespace, known)}CREATE NAMESPACE {namespace} makes it.",
    )


def check_query(query: str, catalog: Catalog, session: Session) -> None:
    """Refuse a text that is no query, and one that reads tables of `lake` which do not exist.

    Whether they exist is asked only while Spark is not started: afterwards it knows more, such as temporary views.

    Raises:
        UserError: `SYNTAX_ERROR`, `TABLE_NOT_FOUND`, `COLUMN_AMBIGUOUS`, with the place.
    """
    refuse_time_travel(query)
    refuse_variables(query)
    refuse_unclear_names(query, session.namespace(), session.catalogs())
    if session.started:
        return
    namespace, catalogs = session.namespace(), session.catalogs()
    found = CatalogViews(catalog, catalogs)
    read, views = relations_read(query, namespace=namespace, catalogs=catalogs, view_text=found.text)
    of_lake = [name for name in read if name.catalog == LAKE]
    there = catalog.pointers(LAKE, of_lake)
    missing = next((name for name in of_lake if name not in there), None)
    if missing is None or any(map(found.is_of_other_catalog, views)):
        return  # Spark may have a catalog that the project's settings do not name
    resolve = resolver(namespace, catalogs)
    at = next((r.start for r in references(query) if resolve(r.parts) == missing), None)
    raise UserError(
        "TABLE_NOT_FOUND",
        f"There is no table or view {missing}.",
        place=None if at is None else place_at(query, at),
        detail=f"It is read through the view {next(iter(views))}." if at is None and views else None,
        hint=did_you_mean(str(missing), relations_named(catalog)).strip()
        or "SHOW TABLES IN namespace lists those that exist.",
    )
