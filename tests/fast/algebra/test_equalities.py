"""Equalities of columns: those that conditions state, and those that follow from others."""

from __future__ import annotations

import pytest
from kit.scalars import scalar

from headrace.algebra.properties.equalities import equal_alike, equalities, hashable, implied
from headrace.algebra.relations import Scan
from headrace.algebra.scalar import column, compose, equals
from headrace.names import LAKE, TableName

INPUTS = [Scan(TableName(LAKE, ("s",), t), ((f"{t}k", "k"), (f"{t}j", "j"))) for t in "abcd"]
INTS = {f"{table}{column}": "int" for table in "abcd" for column in "kj"}


def _follow(*equalities: str, **types: str) -> list[str]:
    found = []
    for each in equalities:
        a, word, b = each.split()
        found.append(compose(f"{{a}} {word} {{b}}", a=column(a), b=column(b)))
    return [condition.sql.replace("`", "") for condition in implied(found, INPUTS, INTS | types)]


def test_equality_is_transitive() -> None:
    assert _follow("ak = bk", "bk == ck") == ["ak = ck"]
    assert _follow("ak = bk", "ck = dk", "bk = ck") == ["ak = ck", "ak = dk", "bk = dk"]
    assert _follow("ak = bk", "bj = ck") == []


def test_what_stands_there_is_not_said_again() -> None:
    assert _follow("ak = bk", "bk = ck", "ck = ak") == []


def test_columns_of_one_input_are_left_alone() -> None:
    assert _follow("ak = bk", "bk = aj") == []


def test_it_is_not_transitive_where_values_are_cast_or_null_equals_null() -> None:
    assert _follow("ak = bk", "bk = ck", bk="string") == []
    assert _follow("ak = bk", "bk = ck", ck="string") == []
    assert implied([equals(column("ak"), column("bk"))] * 2, INPUTS, {}) == ()
    assert _follow("ak = bk", "bk <=> ck") == []
    assert _follow("ak = bk", "bk < ck") == []


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("ak = bk AND bj <=> aj", [("ak", "bk", False), ("aj", "bj", True)]),
        ("(ak = bk) AND (aj > bj)", [("ak", "bk", False)]),
        ("ak = aj AND bk = 1", []),
        ("ak = bk OR aj = bj", []),
        ("NOT ak = bk", []),
    ],
)
def test_equalities_of_two_sides(condition: str, found: list[tuple[str, str, bool]]) -> None:
    assert list(equalities(scalar(condition), ("ak", "aj"), ("bk", "bj"))) == found


def test_equalities_count_within_one_type_where_casts_would_matter() -> None:
    condition = scalar("ak = bk AND aj = bj")
    types = {"ak": "int", "bk": "int", "aj": "int", "bj": "string"}
    assert equal_alike(condition, ("ak", "aj"), ("bk", "bj"), types) == (("ak", "bk", False),)
    assert equal_alike(None, ("ak",), ("bk",), types) == ()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ak = bk", True),
        ("ak + 1 <=> f(bk)", True),
        ("ak < bk", False),
        ("ak = bk OR aj = bj", False),
        ("NOT ak = bk", False),
        ("!(ak = bk)", False),
        # what all branches have is taken out of them
        ("(ak = bk AND aj > 1) OR (ak = bk AND aj < bj)", True),
        ("ak = bk OR (aj < bj AND ak = bk)", True),
        ("(ak = bk AND aj > 1) OR (ak = bk AND aj < bj) OR aj = bj", False),
        ("(ak = bk AND 'ak = bk' > aj) OR aj = bj", False),
    ],
)
def test_partners_are_found_by_hashing(condition: str, expected: bool) -> None:
    assert hashable(scalar(condition)) == expected
