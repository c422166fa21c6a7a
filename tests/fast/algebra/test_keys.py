"""Keys of relations: no two rows agree in all columns of one."""

from __future__ import annotations

import pytest
from kit.scalars import scalar

from headrace.algebra.properties.keys import MOST_NUMBERED, Uniqueness
from headrace.algebra.relations import Aggregate, Filter, Join, OuterJoin, Project, Relation, Scan, Window, WindowCall
from headrace.algebra.scalar import call_of, column
from headrace.names import LAKE, TableName

A, B = (Scan(TableName(LAKE, ("s",), t), tuple((f"{t}{c}", c) for c in "kjd")) for t in "ab")
KNOWN = {A.source: (("k", "j"),), B.source: (("k",), ("j", "d"))}
TYPES = {"ak": "int", "aj": "string", "ad": "date", "bk": "int", "bj": "string", "bd": "date"}


def keys(relation: Relation, *, numbered: bool = False) -> list[str]:
    return [" ".join(sorted(key)) for key in Uniqueness(KNOWN, TYPES, numbered=numbered).keys(relation)]


def test_keys_of_sources_go_by_the_names_that_a_query_gives() -> None:
    assert keys(A) == ["aj ak"]
    assert keys(B) == ["bk", "bd bj"]
    assert keys(Project(B, (("x", column("bk")), ("y", column("bd"))))) == ["x"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ak = 7", "aj"),
        ("7 <=> ak AND ad > '2024-01-01'", "aj"),
        ("aj = 'x'", "ak"),
        ("(aj = 'x') AND ak == 1", ""),
        # not of the column's own type, or more than a constant: several values may equal it
        ("ak = '7'", "aj ak"),
        ("aj = 7", "aj ak"),
        ("ak = 1.0", "aj ak"),
        ("ak = 9999999999", "aj ak"),
        (r"aj = 'it\'s'", "aj ak"),
        ("ak = 7 OR aj = 'x'", "aj ak"),
        ("NOT ak = 7", "aj ak"),
        ("unknown = 1.0", "aj ak"),
    ],
)
def test_a_key_needs_no_column_that_a_condition_fixes(condition: str, expected: str) -> None:
    assert keys(Filter(A, scalar(condition))) == [expected]


def test_a_join_has_the_keys_of_a_side_whose_rows_have_one_partner() -> None:
    assert keys(Join(A, B, scalar("ak = bk"))) == ["aj ak"]
    assert keys(OuterJoin(A, B, scalar("bk = ak"))) == ["aj ak"]
    assert keys(Join(A, B, scalar("ak = bj"))) == ["aj ak bk", "aj ak bd bj"]


def test_groups_and_numbers_are_keys() -> None:
    assert keys(Aggregate(A, ("ad",))) == ["ad"]
    assert keys(Aggregate(B, ("bk", "bd"))) == ["bk"]
    number = WindowCall("n", "row_number", call_of("row_number"))
    numbered = Window(Project(A, (("d", column("ad")),)), ("d",), (number,))
    assert keys(numbered, numbered=True) == ["d n"]
    assert keys(numbered) == []


def test_a_join_of_many_tables_without_keys_has_not_a_thousand_of_its_own() -> None:
    tables = [Scan(TableName(LAKE, ("s",), f"t{i}"), tuple((f"t{i}{c}", c) for c in "kjd")) for i in range(12)]
    joined: Relation = tables[0]
    for i, each in enumerate(tables[1:], 1):
        joined = Join(joined, each, scalar(f"t0d = t{i}d"))
    known = {each.source: (("k",), ("j",)) for each in tables}
    assert len(Uniqueness(known, {}, numbered=True).keys(joined)) == MOST_NUMBERED
