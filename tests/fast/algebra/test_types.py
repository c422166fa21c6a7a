"""What is read out of the names of Spark's types."""

from __future__ import annotations

import pytest

from headrace.algebra.types import field_names, followed


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
