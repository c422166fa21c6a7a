"""Keys of semi-joins are looked up as whole numbers only where they are such on both sides."""

from __future__ import annotations

import pytest

from headrace.algebra.relations import Moment, Scan, SemiJoin
from headrace.names import LAKE, TableName
from headrace.optimizer.integer_keys import mark_integer_keys


def scan(table: str, column: str) -> Scan:
    return Scan(TableName(LAKE, ("shop",), table), ((column, column),), Moment.AFTER)


@pytest.mark.parametrize(
    ("types", "marked"),
    [
        ({"a": "int", "b": "bigint"}, True),
        ({"a": "int"}, True),  # keys of a change, whose types are those of what they are looked up in
        ({"a": "int", "b": "boolean"}, False),
        ({"a": "int", "b": "string"}, False),
        ({"a": "string", "b": "int"}, False),
    ],
)
def test_both_sides_are_whole_numbers(types: dict[str, str], marked: bool) -> None:
    found = mark_integer_keys(SemiJoin(scan("t", "a"), scan("u", "b"), (("a", "b"),)), types)
    assert isinstance(found, SemiJoin)
    assert found.numbers == ({"a"} if marked else frozenset())
