"""Values of a former type of a column, as values of its present type.

Spark's cast pairs the fields of structs by position. Iceberg follows them by field id, through renames, additions and
other orders, and so do these expressions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.algebra.types import cast_sql
from headrace.lake.iceberg_types import ddl_type
from headrace.lake.tables import string_literal
from headrace.names import quote


def converted(value: str, old: Any, new: Any, depth: int = 0) -> str:
    """Return an expression of a former type as one of the present type.

    The expression itself where both are read alike.

    Args:
        value: The expression; it is read several times.
        old: Its Iceberg type as metadata's JSON has it.
        new: The present one of the same column.
        depth: How many functions enclose it, whose variables have other names.
    """
    kinds = {type_["type"] if isinstance(type_, Mapping) else "plain" for type_ in (old, new)}
    if kinds == {"struct"}:
        return _struct(value, old["fields"], new["fields"], depth)
    if kinds == {"list"}:
        item = f"__hr_i{depth}"
        made = converted(item, old["element"], new["element"], depth + 1)
        return value if made == item else f"transform({value}, {item} -> {made})"
    if kinds == {"map"}:
        key, item = f"__hr_k{depth}", f"__hr_v{depth}"
        for name, function, variable in (("key", "transform_keys", key), ("value", "transform_values", item)):
            made = converted(variable, old[name], new[name], depth + 1)
            value = value if made == variable else f"{function}({value}, ({key}, {item}) -> {made})"
        return value
    type_ = ddl_type(new)
    return value if ddl_type(old) == type_ else cast_sql(value, type_)


def _struct(value: str, old: Any, new: Any, depth: int) -> str:
    before = {field["id"]: field for field in old}
    same = [(f["id"], f["name"]) for f in old] == [(f["id"], f["name"]) for f in new]
    parts = []
    for field in new:
        former = before.get(field["id"])
        if former is None:
            made = absent(field)
        else:
            read = f"{value}.{quote(former['name'])}"
            made = converted(read, former["type"], field["type"], depth)
            same = same and made == read
        parts.append(f"{string_literal(field['name'])}, {made}")
    return value if same else f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"


def absent(field: Mapping[str, Any]) -> str:
    """Return the value of a field, or column, in rows written before it was added."""
    value = _default(field["type"], field.get("initial-default"))
    return cast_sql(value, ddl_type(field["type"]))


def _default(type_: Any, value: Any) -> str:
    """Return an initial default, given in metadata's JSON, as an expression yet to be cast."""
    if value is None:
        return "NULL"
    if isinstance(type_, Mapping):
        return _nested_default(type_, value)
    if ddl_type(type_) == "binary":
        return f"X'{value}'"
    return string_literal(value if isinstance(value, str) else json.dumps(value))


def _nested_default(type_: Mapping[str, Any], value: Any) -> str:
    if type_["type"] == "struct":  # a field that is not in it has its own default
        fields = [{**f, "initial-default": value.get(str(f["id"]), f.get("initial-default"))} for f in type_["fields"]]
        parts = (f"{string_literal(f['name'])}, {absent(f)}" for f in fields)
        return f"named_struct({', '.join(parts)})"
    if type_["type"] == "list":
        return f"array({', '.join(_cast(type_['element'], item) for item in value)})"
    keys, values = (", ".join(_cast(type_[n], v) for v in value[f"{n}s"]) for n in ("key", "value"))
    return f"map_from_arrays(array({keys}), array({values}))"


def _cast(type_: Any, value: Any) -> str:
    return absent({"type": type_, "initial-default": value})
