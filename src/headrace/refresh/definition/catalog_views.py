"""Reads the views of the catalog that a definition reads, each of them once."""

from __future__ import annotations

from headrace.catalog import Catalog
from headrace.definitions.user_text import bind_text
from headrace.lake.views import Describe, ViewText, as_declared, read_view
from headrace.names import LAKE, TableName


class CatalogViews:
    """The views of one definition, as they were when each was first asked for.

    Args:
        catalog: The catalog.
        catalogs: Spark's, by which names are resolved.
        case_sensitive: Whether names of common table expressions differ by case.
    """

    def __init__(self, catalog: Catalog, catalogs: frozenset[str], *, case_sensitive: bool = False) -> None:
        self._catalog = catalog
        self._case_sensitive = case_sensitive
        self._catalogs = catalogs
        self._found: dict[TableName, tuple[str, ViewText] | None] = {}

    @property
    def locations(self) -> dict[TableName, str]:
        """Return the metadata files of the views that were found."""
        return {name: found[0] for name, found in self._found.items() if found is not None}

    def text(self, name: TableName, describe: Describe = as_declared) -> str | None:
        """Return the text of a view, all names written in full; None when it is no view.

        Args:
            name: Its name.
            describe: To find what its text returns now.
        """
        if (found := self._view(name)) is None:
            return None
        view = found[1]
        text = bind_text(
            view.sql,
            namespace=view.namespace,
            catalogs=self._catalogs,
            views={},
            bind=lambda inner: inner.sql,
            default=view.catalog_among(self._catalogs),
            case_sensitive=self._case_sensitive,
        )
        return view.shown(text, name.table, describe)

    def is_of_other_catalog(self, name: TableName) -> bool:
        """Return whether unqualified names in a view are of a catalog that is not known."""
        found = self._view(name)
        return found is not None and found[1].catalog is not None and found[1].catalog not in self._catalogs

    def _view(self, name: TableName) -> tuple[str, ViewText] | None:
        if name not in self._found:
            pointer = self._catalog.pointers(LAKE, [name]).get(name) if name.catalog == LAKE else None
            location = pointer.metadata_location if pointer is not None and pointer.is_view else None
            self._found[name] = None if location is None else (location, read_view(location))
        return self._found[name]
