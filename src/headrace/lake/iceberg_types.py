"""Iceberg types as Spark DDL text."""

from __future__ import annotations

from typing import Any

from headrace.names import quote_field

_PLAIN = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp_ntz",
    "timestamptz_ns": "timestamp",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "variant": "variant",
    "unknown": "void",
}


def ddl_type(iceberg: Any) -> str:
    """Return the Spark DDL type of an Iceberg type as metadata's JSON has it."""
    if isinstance(iceberg, str):
        if iceberg.startswith("decimal"):
            return iceberg.replace(" ", "")
        return "binary" if iceberg.startswith("fixed") else _PLAIN.get(iceberg, iceberg)
    kind = iceberg["type"]
    if kind == "list":
        return f"array<{ddl_type(iceberg['element'])}>"
    if kind == "map":
        return f"map<{ddl_type(iceberg['key'])},{ddl_type(iceberg['value'])}>"
    fields = ",".join(f"{quote_field(f['name'])}:{ddl_type(f['type'])}" for f in iceberg["fields"])
    return f"struct<{fields}>"
