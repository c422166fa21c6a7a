"""Catalog views: their texts, read from the view's metadata file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from headrace.algebra.schema import Column, as_typed
from headrace.errors import HeadraceError
from headrace.lake.iceberg_types import ddl_type
from headrace.lake.metadata import read_json
from headrace.names import LAKE, RESERVED_PREFIX, quote

Describe = Callable[[str], Sequence[Column]]
"""Returns the columns of a query."""


def as_declared(_: str) -> Sequence[Column]:
    """Describe no query: a view's text is taken to return what the view declares."""
    return ()


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view's definition.

    Args:
        sql: Its query in Spark's dialect.
        catalog: Catalog unqualified names resolve in; None for the view's own.
        namespace: Namespace unqualified names resolve in.
        columns: The view's columns, with the types that readers of it see.
    """

    sql: str
    catalog: str | None
    namespace: tuple[str, ...]
    columns: tuple[Column, ...]

    def catalog_among(self, known: frozenset[str]) -> str:
        """Return the catalog of unqualified names; `lake` where it is one of another session."""
        return self.catalog if self.catalog is not None and self.catalog in known else LAKE

    def shown(self, text: str, name: str, describe: Describe) -> str:
        """Return the query of the view's columns, as Spark reads it.

        By position the first columns that its text returns, of which there may be more by now; each in the type of the
        view's schema, where Iceberg has no SMALLINT.

        Args:
            text: Its text, whose names may have been replaced.
            name: Alias of the text.
            describe: To find what the text returns now.
        """
        found: Sequence[Column] = ()
        with suppress(HeadraceError):  # told by the analysis of what reads the view, with the place there
            found = describe(text)
        beyond = [RESERVED_PREFIX + str(i) for i in range(len(self.columns), len(found))]
        aliases = ", ".join(quote(each) for each in (*(c.name for c in self.columns), *beyond))
        other = {c.name for c, now in zip(self.columns, found, strict=False) if c.type != now.type}
        items = "*"
        if beyond or other:
            items = ", ".join(as_typed(c) if c.name in other else quote(c.name) for c in self.columns)
        return f"SELECT {items} FROM (\n{text}\n) AS {quote(name)}({aliases})"


def read_view(location: str) -> ViewText:
    """Return the view whose metadata is at a location.

    Raises:
        EnvironmentFault: `METADATA_UNREADABLE`.
    """
    data = read_json(location)
    current = next(v for v in data["versions"] if v["version-id"] == data["current-version-id"])
    texts = {r.get("dialect", "").lower(): r["sql"] for r in current["representations"] if r.get("type") == "sql"}
    sql = texts.get("spark") or next(iter(texts.values()))
    schema = next(s for s in data["schemas"] if s["schema-id"] == current["schema-id"])
    columns = tuple(Column(field["name"], ddl_type(field["type"]), not field["required"]) for field in schema["fields"])
    return ViewText(sql, current.get("default-catalog"), tuple(current.get("default-namespace", ())), columns)
