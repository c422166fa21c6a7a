"""Spark's types as types of PostgreSQL: the way back of what capture maps.

A table that exists may have other types, as long as nothing is lost: whatever capture keeps as text (`uuid`, `jsonb`,
`numeric` without precision, ranges, enums) takes text back, and `int2` an `int`, if it fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from headrace.algebra.schema import Column
from headrace.errors import Unsupported

PLAIN: Mapping[str, str] = {
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}

WIDER: Mapping[str, frozenset[str]] = {
    "int": frozenset({"smallint", "bigint", "oid"}),
    "bigint": frozenset({"oid"}),
    "float": frozenset({"double precision"}),
}
"""Other types of an existing table that take values of a type, exactly or not at all."""

_WIDENED: Mapping[str, tuple[str, ...]] = {
    "smallint": ("integer", "bigint"),
    "integer": ("bigint",),
    "real": ("double precision",),
}
"""Types of PostgreSQL whose values can be cast to others, none to that of another one."""

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_ARRAY = re.compile(r"array<(.+)>")
_NOT_FROM_TEXT = frozenset(PLAIN.values()) - {"text"}
"""Types that have an equal in Spark: a string for one of them is a mistake, not a value kept as text."""


def postgres_type(column: Column) -> str:
    """Return the type that a column gets in a table that is made for it.

    Raises:
        Unsupported: `SINK_TYPE_UNSUPPORTED`, naming the column.
    """
    found = _type(column.type.lower())
    if found is None:
        raise Unsupported(
            "SINK_TYPE_UNSUPPORTED",
            f"Column {column.name} has type {column.type}, which no type of PostgreSQL is equal to.",
            detail="Maps, structs, variants, and arrays of arrays have no counterpart there.",
            hint=f"Give the stream table a text instead, such as to_json({column.name}); type jsonb takes that.",
        )
    return found


def _type(spark: str) -> str | None:
    if (match := _DECIMAL.fullmatch(spark)) is not None:
        return f"numeric({match[1]},{match[2]})"
    if (match := _ARRAY.fullmatch(spark)) is not None:
        element = _type(match[1])
        return None if element is None or element.endswith("[]") else f"{element}[]"
    return PLAIN.get(spark)


def takes(target: str, column: Column) -> bool:
    """Return whether a column of an existing table holds all that a column may have.

    Args:
        target: Its type as `format_type` writes it, of the base type where it is a domain.
        column: The stream table's column.
    """
    made, spark = postgres_type(column), column.type.lower()
    if target == made or target in WIDER.get(spark, frozenset()):
        return True
    if spark == "string":
        return target not in _NOT_FROM_TEXT
    if (numeric := _NUMERIC.fullmatch(made)) is not None:
        if target == "numeric":
            return True
        there = _NUMERIC.fullmatch(target)
        return there is not None and _holds((int(there[1]), int(there[2])), (int(numeric[1]), int(numeric[2])))
    return False


def _holds(there: tuple[int, int], here: tuple[int, int]) -> bool:
    return there[1] >= here[1] and there[0] - there[1] >= here[0] - here[1]


def widens(before: str, after: str) -> bool:
    """Return whether a type of PostgreSQL has every value of another one, which stay different.

    Args:
        before: A type as `format_type` writes it.
        after: The other one.
    """
    if after in _WIDENED.get(before, ()):
        return True
    narrow, wide = _NUMERIC.fullmatch(before), _NUMERIC.fullmatch(after)
    if narrow is None or wide is None:
        return False
    return _holds((int(wide[1]), int(wide[2])), (int(narrow[1]), int(narrow[2])))


def recorded(columns: Sequence[Column]) -> list[list[str]]:
    """Return names and types, as a position keeps them."""
    return [[column.name, column.type] for column in columns]
