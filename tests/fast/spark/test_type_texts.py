"""Types as text, which Spark reads as the same types: names of fields are quoted where they must be."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, DecimalType, IntegerType, MapType, StringType, StructField, StructType

from headrace.lake.iceberg_types import ddl_type
from headrace.spark.type_texts import type_text

NAMES = [
    ("a", "a"),
    ("userId", "userId"),
    ("_x1", "_x1"),
    ("1st", "1st"),
    ("join", "join"),
    ("1", "`1`"),
    ("1s", "`1s`"),
    ("12BD", "`12BD`"),
    ("1e5", "`1e5`"),
    ("content-type", "`content-type`"),
    ("a b", "`a b`"),
    ("größe", "`größe`"),
    ("x`y", "`x``y`"),
    ("a:b,c<d>", "`a:b,c<d>`"),
]


@pytest.mark.parametrize(("name", "written"), NAMES)
def test_names_of_fields(name: str, written: str) -> None:
    inner = StructType([StructField(name, DecimalType(12, 2)), StructField("b", StringType())])
    type_ = StructType([StructField("l", ArrayType(inner)), StructField("m", MapType(IntegerType(), inner))])
    text = f"struct<{written}:decimal(12,2),b:string>"
    assert type_text(type_) == f"struct<l:array<{text}>,m:map<int,{text}>>"
    fields = [{"name": name, "type": "decimal(12, 2)"}, {"name": "b", "type": "string"}]
    struct = {"type": "struct", "fields": fields}
    assert ddl_type({"type": "list", "element": struct}) == f"array<{text}>"
    assert ddl_type({"type": "map", "key": "int", "value": struct}) == f"map<int,{text}>"


def test_types_without_fields_are_written_as_spark_does() -> None:
    for type_ in (StringType(), DecimalType(5, 1), ArrayType(IntegerType()), MapType(StringType(), IntegerType())):
        assert type_text(type_) == type_.simpleString()
