"""Values as stream tables store them: zeros without a sign, maps sorted by key.

0.0 and -0.0 are equal, and so are maps with their entries in another order, so that which of them is stored is open
wherever rows are grouped, compared, or deleted by their values. What reads a stream table can tell them apart, by their
texts. So that its rows and its change log agree, both have the zero without a sign, and entries sorted by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.algebra.properties.order import is_float
from headrace.algebra.scalar import Scalar, column, compose
from headrace.algebra.schema import Column
from headrace.algebra.types import divided, field_names, followed, mentions
from headrace.names import quote


def plain_values(columns: Sequence[Column]) -> Mapping[str, Scalar]:
    """Return what is stored of columns that may have equal values that are not the same.

    Of none where some column cannot be compared: all rows leave and come then at each change.

    Args:
        columns: All columns of a stream table.
    """
    if not all(followed(each.type) for each in columns):
        return {}
    found = ((each.name, _plain("{x}", each.type)) for each in columns)
    return {name: compose(text, x=column(name)) for name, text in found if text != "{x}"}


def in_plain_values(query: str, columns: Sequence[Column]) -> str:
    """Return a query whose values are those to store.

    Args:
        query: The query, in SQL.
        columns: Its columns.
    """
    plain = plain_values(columns)
    if not plain:
        return query
    listed = (f"{plain[c.name].sql} AS {quote(c.name)}" if c.name in plain else quote(c.name) for c in columns)
    return f"SELECT {', '.join(listed)} FROM (\n{query}\n)"


def _plain(value: str, type_: str, depth: int = 0) -> str:
    """Write what is stored of a value; structs with fields of several words stay as they are."""
    if is_float(type_):
        return f"CASE WHEN {value} = 0 THEN CAST(0 AS {type_}) ELSE {value} END"
    if not mentions(type_, "float", "double", "map"):
        return value
    kind, inner = divided(type_)
    if kind == "map":
        return f"map_from_entries(array_sort(map_entries({value})))"
    if kind == "array":
        name = f"x{depth}"
        return f"transform({value}, {name} -> {_plain(name, inner[0], depth + 1)})"
    if (names := field_names(type_)) is None:
        return value
    fields = zip(names, (each.partition(":")[2].strip() for each in inner), strict=True)
    parts = (f"{_plain(f'{value}.{quote(name)}', of, depth)} AS {quote(name)}" for name, of in fields)
    return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(parts)}) END"
