"""Keys of semi-joins are looked up as whole numbers only where they are such on both sides."""

from __future__ import annotations

import pytest

from headrace.algebra.relations import Moment, Scan, SemiJoin
from headrace.names import LAKE, TableName
from headrace.optimizer.integer_keys import mark_integer_keys


def scan(table: str, column: str) -> Scan:
    return Scan(TableName(LAKE, ("shop",), table), ((column, column),), Moment.AFTER)


@pytest.mark.parametrize(
    ("key", "types", "marked"),
    [
        ("b", {"a": "int", "b": "bigint"}, True),
        ("__hr_key0", {"a": "int"}, True),  # of a change, with types of what they are looked up in
        ("b", {"a": "int"}, False),  # computed
        ("b", {"a": "int", "b": "boolean"}, False),
        ("b", {"a": "int", "b": "string"}, False),
        ("b", {"a": "string", "b": "int"}, False),
    ],
)
def test_both_sides_are_whole_numbers(key: str, types: dict[str, str], marked: bool) -> None:
    found = mark_integer_keys(SemiJoin(scan("t", "a"), scan("u", key), (("a", key),)), types)
    assert isinstance(found, SemiJoin)
    assert found.numbers == ({"a"} if marked else frozenset())
