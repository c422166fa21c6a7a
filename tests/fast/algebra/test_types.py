"""What is read out of the names of Spark's types."""

from __future__ import annotations

import pytest

from headrace.algebra.types import field_names


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
