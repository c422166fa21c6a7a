"""Equalities that follow from others."""

from __future__ import annotations

from headrace.algebra.joins import implied
from headrace.algebra.relations import Scan
from headrace.algebra.scalar import Scalar
from headrace.names import LAKE, TableName

INPUTS = [Scan(TableName(LAKE, ("s",), t), ((f"{t}k", "k"), (f"{t}j", "j"))) for t in "abcd"]
INTS = {f"{table}{column}": "int" for table in "abcd" for column in "kj"}


def _follow(*equalities: str, **types: str) -> list[str]:
    found = []
    for each in equalities:
        a, word, b = each.split()
        found.append(Scalar(f"`{a}` {word} `{b}`", frozenset({a, b})))
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
    assert implied([Scalar("`ak` = `bk`", frozenset({"ak", "bk"}))] * 2, INPUTS, {}) == ()
    assert _follow("ak = bk", "bk <=> ck") == []
    assert _follow("ak = bk", "bk < ck") == []
