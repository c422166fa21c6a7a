"""Table names: parsing, qualifying, quoting."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import UserError

LAKE = "lake"
"""The Iceberg catalog everybody reads."""

STAGING = "staging"
"""The Iceberg catalog only Headrace writes."""

SYSTEM_NAMESPACE = "_headrace"
"""Namespace (in both catalogs) of change logs and companions."""

RESERVED_PREFIX = "__hr_"
"""Column names of this prefix are Headrace's own."""

WEIGHT = "__hr_w"
"""The column that carries a row's weight in a Z-set."""


def quote(identifier: str) -> str:
    """Quote one identifier for Spark SQL."""
    return "`" + identifier.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A fully qualified table name.

    Args:
        catalog: Spark catalog, `lake` unless the user named another.
        namespace: One or more namespace levels, outermost first.
        table: The table's own name.
    """

    catalog: str
    namespace: tuple[str, ...]
    table: str

    def __str__(self) -> str:
        """Return the name as users write it: without the catalog when that is `lake`."""
        parts = self.parts[1:] if self.catalog == LAKE else self.parts
        return ".".join(p if p.replace("_", "a").isalnum() else quote(p) for p in parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """Catalog, namespace levels and table, in order."""
        return (self.catalog, *self.namespace, self.table)

    @property
    def sql(self) -> str:
        """Return the name quoted for Spark SQL, catalog included."""
        return ".".join(quote(p) for p in self.parts)

    @property
    def namespace_text(self) -> str:
        """Return the namespace as Iceberg's SQL catalog stores it: levels joined by dots."""
        return ".".join(self.namespace)

    def within(self, catalog: str) -> TableName:
        """Return the same namespace and table in another catalog."""
        return TableName(catalog, self.namespace, self.table)


def split_identifier(text: str) -> tuple[str, ...]:
    """Split a dotted, possibly back-quoted name into its parts.

    Raises:
        UserError: `INVALID_NAME` when the text is no dotted identifier.
    """
    parts: list[str] = []
    i, n = 0, len(text)
    while True:
        if i < n and text[i] == "`":
            part, i = _quoted_part(text, i)
        else:
            end = text.find(".", i)
            end = n if end < 0 else end
            part, i = text[i:end].strip(), end
            if not part or not all(c.isalnum() or c in "_-" for c in part):
                raise invalid_name(text)
        parts.append(part)
        if i == n:
            return tuple(parts)
        if text[i] != ".":
            raise invalid_name(text)
        i += 1


def _quoted_part(text: str, start: int) -> tuple[str, int]:
    out: list[str] = []
    i = start + 1
    while i < len(text):
        if text[i] == "`":
            if text[i + 1 : i + 2] != "`":
                if not out:
                    break
                return "".join(out), i + 1
            i += 1
        out.append(text[i])
        i += 1
    raise invalid_name(text)


def invalid_name(text: str) -> UserError:
    """Return the error for a text that is no table name."""
    return UserError(
        "INVALID_NAME",
        f"'{text}' is not a table name.",
        hint="Write namespace.table, or catalog.namespace.table; quote unusual parts with back-quotes.",
    )


def qualify(
    parts: tuple[str, ...], namespace: tuple[str, ...] = (), catalogs: frozenset[str] = frozenset({LAKE})
) -> TableName:
    """Give a written name its full form.

    Args:
        parts: The name as written, split.
        namespace: Current namespace for a one-part name; may be empty.
        catalogs: Catalogs the session knows; a first part among them is a catalog.

    Raises:
        UserError: `INVALID_NAME` for a one-part name without a current namespace.
    """
    if len(parts) >= 3 or (len(parts) == 2 and parts[0] in catalogs and parts[0] != LAKE):
        if parts[0] in catalogs:
            return TableName(parts[0], parts[1:-1], parts[-1])
        return TableName(LAKE, parts[:-1], parts[-1])
    if len(parts) == 2:
        return TableName(LAKE, (parts[0],), parts[1])
    if not namespace:
        raise UserError(
            "INVALID_NAME",
            f"'{parts[0]}' has no namespace, and no current namespace is set.",
            hint=f"Write namespace.{parts[0]}, or run USE lake.<namespace> first.",
        )
    return TableName(LAKE, namespace, parts[0])
