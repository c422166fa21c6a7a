"""Catalog views: their texts, read from the view's metadata file."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.lake.metadata import read_json
from headrace.names import LAKE


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view's definition.

    Args:
        sql: Its query in Spark's dialect.
        catalog: Catalog unqualified names resolve in; None for the view's own.
        namespace: Namespace unqualified names resolve in.
        columns: The view's column names.
    """

    sql: str
    catalog: str | None
    namespace: tuple[str, ...]
    columns: tuple[str, ...]

    def catalog_among(self, known: frozenset[str]) -> str:
        """Return the catalog of unqualified names; `lake` where it is one of another session."""
        return self.catalog if self.catalog is not None and self.catalog in known else LAKE


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
    columns = tuple(field["name"] for field in schema["fields"])
    return ViewText(sql, current.get("default-catalog"), tuple(current.get("default-namespace", ())), columns)
