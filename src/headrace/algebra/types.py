"""Properties of Spark's types that rules and passes need."""

from __future__ import annotations

import re

INTEGERS = {"tinyint": 3, "byte": 3, "smallint": 5, "short": 5, "int": 10, "integer": 10, "bigint": 20, "long": 20}
"""Integer types and the decimal digits that hold their values."""

MAX_PRECISION = 38
"""Digits of a decimal at most, in Spark, Iceberg and Parquet alike."""


def decimal_of(type_: str | None) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type; None for any other type."""
    found = re.fullmatch(r"\s*(?:decimal|dec|numeric)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", type_ or "", re.I)
    if found is None:
        return None
    return int(found.group(1) or 10), int(found.group(2) or 0)


def decimal(precision: int, scale: int) -> str:
    """Return the DDL text of a decimal type, both numbers capped as Spark caps them."""
    return f"decimal({min(precision, MAX_PRECISION)},{min(scale, MAX_PRECISION)})"


_TIMESTAMP = re.compile(r"(?P<name>`(?:[^`]|``)*`)|(?<!\w)timestamp(?!\w)(?!\s*:)", re.I)
"""The type, and quoted names of fields, in which the word means nothing."""


def in_sql(type_: str) -> str:
    """Return a type as SQL has it: by `spark.sql.timestampType`, `timestamp` means another.

    Args:
        type_: Spark's text of the type, which has `timestamp_ntz` for the other one.
    """
    return _TIMESTAMP.sub(lambda found: found["name"] or "timestamp_ltz", type_)


def cast_sql(value: str, type_: str) -> str:
    """Return an expression cast to a type, as `in_sql` has that."""
    return f"CAST({value} AS {in_sql(type_)})"


def is_integer(type_: str | None) -> bool:
    """Return whether a type is one of the integer types."""
    return (type_ or "").strip().lower() in INTEGERS


def mentions(type_: str, *kinds: str) -> bool:
    """Return whether a type contains one of some kinds at any depth, field names apart.

    Args:
        type_: Spark DDL type.
        kinds: First words of types, such as `map` or `interval`.
    """
    without_names = re.sub(r"(?:`(?:[^`]|``)*`|\w+)\s*:", "", type_)
    return re.search(rf"(?:^|[<,\s])(?:{'|'.join(kinds)})\b", without_names, re.I) is not None


def is_collated(type_: str) -> bool:
    """Return whether a type contains texts with a collation, `string collate UTF8_LCASE`."""
    return mentions(type_, "collate")


def groupable(type_: str) -> bool:
    """Return whether a type has equality, so that its rows can be grouped and compared."""
    return not mentions(type_, "map", "variant", "geometry", "geography")


_DECIMAL = r"decimal\(\d+,\d+\)"
_MAP = re.compile(
    rf"map<(?:string|binary|boolean|tinyint|smallint|int|bigint|date|{_DECIMAL}),(?:string|binary|{_DECIMAL})>"
)


def followed(type_: str) -> bool:
    """Return whether grouping separates rows by such a column: groupable types, some maps.

    Where Spark 4.1 groups by a map, it takes a NULL among numbers for 0, or fails.
    """
    return groupable(type_) or _MAP.fullmatch(type_) is not None


def divided(type_: str) -> tuple[str, tuple[str, ...]]:
    """Return a DDL type as its kind and its top-level arguments."""
    if "<" not in type_:
        return type_, ()
    kind, body = type_.split("<", 1)
    parts, depth, current = [], 0, ""
    for char in body[:-1]:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return kind, (*parts, current)


def field_names(type_: str) -> tuple[str, ...] | None:
    """Return the fields of a struct.

    None for any other type, and for names that are more than a word.
    """
    if not type_.lower().startswith("struct<") or not type_.endswith(">"):
        return None
    parts = (each.partition(":") for each in divided(type_)[1])
    names = [name.strip() if colon else "" for name, colon, _ in parts]
    return tuple(names) if all(re.fullmatch(r"\w+", name) for name in names) else None
