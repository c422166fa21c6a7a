"""Spark's types as text that Spark reads as the same types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.names import quote_field

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def type_text(type_: DataType) -> str:
    """Write a type as `simpleString` does, with quotes around field names that need them."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case ArrayType():
            return f"array<{type_text(type_.elementType)}>"
        case MapType():
            return f"map<{type_text(type_.keyType)},{type_text(type_.valueType)}>"
        case StructType():
            fields = ",".join(f"{quote_field(each.name)}:{type_text(each.dataType)}" for each in type_.fields)
            return f"struct<{fields}>"
    return type_.simpleString()
