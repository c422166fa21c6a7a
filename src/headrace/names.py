"""Table names: parsing, qualifying, quoting."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.errors import UserError

LAKE = "lake"
"""The Iceberg catalog everybody reads."""

STAGING = "staging"
"""The Iceberg catalog only Headrace writes."""

SYSTEM_NAMESPACE = "_headrace"
"""Namespace (in both catalogs) of change logs and companions."""

RESERVED_PREFIX = "__hr_"
"""Column names of this prefix are Headrace's own."""

METADATA_COLUMNS = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Columns that Iceberg tells of the rows of each table; one with a column of such a name cannot be read."""

WEIGHT = "__hr_w"
"""The column that carries a row's weight in a Z-set."""


def quote(identifier: str) -> str:
    """Quote one identifier for Spark SQL."""
    return "`" + identifier.replace("`", "``") + "`"


_PLAIN_FIELD = re.compile(r"(?!\d+(?:e\d+)?(?:bd|[lsyfd])?\Z)\w+", re.ASCII | re.IGNORECASE)
"""Names that need no quotes within a type; some that begin with digits are numbers without."""


def quote_field(name: str) -> str:
    """Write the name of a struct's field as it stands in a type: quoted where it needs to be."""
    return name if _PLAIN_FIELD.fullmatch(name) else quote(name)


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
    _hash: int = field(init=False, repr=False, compare=False)
    _text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash once: of 10,000 tables a look asks for a million."""
        object.__setattr__(self, "_hash", hash((self.catalog, self.namespace, self.table)))

    def __hash__(self) -> int:
        """Return the hash of the three parts."""
        return self._hash

    def __reduce__(self) -> tuple[type[TableName], tuple[str, tuple[str, ...], str]]:
        """Leave the hash out of a pickle: it is another one in another process."""
        return TableName, (self.catalog, self.namespace, self.table)

    def __str__(self) -> str:
        """Return the name as users write it: without the catalog when that is `lake`."""
        try:
            return self._text
        except AttributeError:  # asked for the first time; graphs sort names by it, time and again
            parts = self.parts[1:] if self.catalog == LAKE else self.parts
            text = ".".join(p if p.replace("_", "a").isalnum() else quote(p) for p in parts)
            object.__setattr__(self, "_text", text)
            return text

    @property
    def parts(self) -> tuple[str, ...]:
        """Return catalog, namespace levels and table, in order."""
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


CLOCK = TableName(LAKE, (SYSTEM_NAMESPACE,), "clock")
"""The time as a relation of one row, so that it has versions as any source has; it is stored nowhere."""

CLOCK_COLUMN = "at"
"""Its column, a TIMESTAMP."""

NOW = "__hr_now"
"""The name of that column in queries as algebra."""


def split_identifier(text: str) -> tuple[str, ...]:
    """Split a dotted, possibly back-quoted name into its parts.

    Raises:
        UserError: `INVALID_NAME` when the text is no dotted identifier.
    """
    return tuple(part for part, _ in split_dotted(text, "`", "_-", invalid_name))


def split_dotted(
    text: str, mark: str, beside: str, invalid: Callable[[str], UserError]
) -> tuple[tuple[str, bool], ...]:
    """Split a dotted name into its parts, each with whether it was quoted.

    Args:
        text: The name.
        mark: What stands around a quoted part, and twice for itself inside one.
        beside: What a part may have without quotes, besides letters and digits.
        invalid: Makes the error for a text that is no dotted name.
    """
    parts: list[tuple[str, bool]] = []
    at = 0
    while at <= len(text):
        quoted = text[at : at + 1] == mark
        if quoted:
            part, at = _quoted_part(text, at + 1, mark)
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            part, at = text[at:end].strip(), end
        valid = quoted or all(c.isalnum() or c in beside for c in part)
        if not part or not valid or text[at : at + 1] not in ("", "."):
            raise invalid(text)
        parts.append((part, quoted))
        at += 1
    return tuple(parts)


def _quoted_part(text: str, at: int, mark: str) -> tuple[str, int]:
    """Return a part and where it ends; an empty one where the closing mark is missing."""
    out: list[str] = []
    while at < len(text):
        if text[at] == mark:
            if text[at + 1 : at + 2] != mark:
                return "".join(out), at + 1
            at += 1
        out.append(text[at])
        at += 1
    return "", at


def invalid_name(text: str) -> UserError:
    """Return the error for a text that is no table name."""
    return UserError(
        "INVALID_NAME",
        f"'{text}' is not a table name.",
        hint="Write namespace.table, or catalog.namespace.table; quote unusual parts with back-quotes.",
    )


def qualify(
    parts: tuple[str, ...],
    namespace: tuple[str, ...] = (),
    catalogs: frozenset[str] = frozenset({LAKE}),
    default: str = LAKE,
) -> TableName:
    """Give a written name its full form.

    Args:
        parts: The name as written, split.
        namespace: Current namespace for a one-part name; may be empty.
        catalogs: Catalogs the session knows; a first part among them is a catalog.
        default: The catalog of names that have none.

    Raises:
        UserError: `INVALID_NAME` for a one-part name without a current namespace.
    """
    if len(parts) >= 3 or (len(parts) == 2 and parts[0] in catalogs and parts[0] != LAKE):
        if parts[0] in catalogs:
            return TableName(parts[0], parts[1:-1], parts[-1])
        return TableName(default, parts[:-1], parts[-1])
    if len(parts) == 2:
        return TableName(default, (parts[0],), parts[1])
    if not namespace:
        raise UserError(
            "INVALID_NAME",
            f"'{parts[0]}' has no namespace, and no current namespace is set.",
            hint=f"Write namespace.{parts[0]}, or run USE lake.<namespace> first.",
        )
    return TableName(default, namespace, parts[0])
