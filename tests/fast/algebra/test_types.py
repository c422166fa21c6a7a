"""What is read out of the names of Spark's types."""

from __future__ import annotations

import pytest

from headrace.algebra.types import field_names, followed, in_sql, is_collated


@pytest.mark.parametrize(
    ("type_", "names"),
    [
        ("struct<x:int,y:string>", ("x", "y")),
        ("struct<a:array<struct<b:int,c:decimal(3,1)>>,m:map<string,int>>", ("a", "m")),
        ("struct<größe:struct<y:int>>", ("größe",)),
        ("struct<>", None),
        ("int", None),
        ("array<struct<x:int>>", None),
        ("struct<a b:int>", None),
        ("struct<a,b:int>", None),
    ],
)
def test_the_fields_of_a_struct(type_: str, names: tuple[str, ...] | None) -> None:
    assert field_names(type_) == names


@pytest.mark.parametrize(
    ("type_", "collated"),
    [
        ("string collate UTF8_LCASE", True),
        ("map<int,struct<a:string collate UNICODE>>", True),
        ("struct<collateral:string,`to collate `:int>", False),
        ("struct<collate:int>", False),
    ],
)
def test_collated_texts(type_: str, collated: bool) -> None:
    assert is_collated(type_) == collated


@pytest.mark.parametrize(
    ("type_", "told_apart"),
    [
        ("map<string,string>", True),
        ("map<int,decimal(8,2)>", True),
        ("struct<a:int,b:double>", True),
        ("map<string,int>", False),
        ("map<string,double>", False),
        ("map<string,map<string,string>>", False),
        ("map<string,variant>", False),
        ("map<string collate UTF8_LCASE,string>", False),
        ("array<map<string,string>>", False),
        ("variant", False),
    ],
)
def test_maps_of_texts_and_decimals_are_told_apart_by_grouping(type_: str, told_apart: bool) -> None:
    assert followed(type_) == told_apart


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("timestamp", "timestamp_ltz"),
        ("map<string,array<timestamp>>", "map<string,array<timestamp_ltz>>"),
        ("struct<timestamp:timestamp_ntz,at:timestamp>", "struct<timestamp:timestamp_ntz,at:timestamp_ltz>"),
        ("struct<`event-timestamp-utc`:timestamp>", "struct<`event-timestamp-utc`:timestamp_ltz>"),
        (
            "struct<`last timestamp (ms)`:bigint,`a``timestamp `:int>",
            "struct<`last timestamp (ms)`:bigint,`a``timestamp `:int>",
        ),
    ],
)
def test_the_type_is_written_out_and_names_of_fields_stay(type_: str, text: str) -> None:
    assert in_sql(type_) == text
