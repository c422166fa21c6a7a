"""What is stored of zeros and maps: no sign, and entries sorted."""

from __future__ import annotations

import pytest

from headrace.algebra.plain_values import in_plain_values, plain_values
from headrace.algebra.schema import Column

K = Column("k", "int")


@pytest.mark.parametrize(
    ("type_", "stored"),
    [
        ("double", "CASE WHEN `f` = 0 THEN CAST(0 AS double) ELSE `f` END"),
        ("float", "CASE WHEN `f` = 0 THEN CAST(0 AS float) ELSE `f` END"),
        ("map<string,string>", "map_from_entries(array_sort(map_entries(`f`)))"),
        ("array<float>", "transform(`f`, x0 -> CASE WHEN x0 = 0 THEN CAST(0 AS float) ELSE x0 END)"),
        (
            "struct<a:int,x:array<array<double>>>",
            "CASE WHEN `f` IS NOT NULL THEN struct(`f`.`a` AS `a`, transform(`f`.`x`, x0 -> transform(x0, "
            "x1 -> CASE WHEN x1 = 0 THEN CAST(0 AS double) ELSE x1 END)) AS `x`) END",
        ),
    ],
)
def test_floats_at_any_depth_and_maps(type_: str, stored: str) -> None:
    columns = (K, Column("f", type_))
    assert {name: scalar.sql for name, scalar in plain_values(columns).items()} == {"f": stored}
    assert in_plain_values("SELECT 1 -- all", columns) == f"SELECT `k`, {stored} AS `f` FROM (\nSELECT 1 -- all\n)"


@pytest.mark.parametrize("type_", ["decimal(9,2)", "struct<double:int>", "struct<a b:double>", "string"])
def test_others_stay(type_: str) -> None:
    assert plain_values((K, Column("f", type_))) == {}
    assert in_plain_values("SELECT 1", (K, Column("f", type_))) == "SELECT 1"


def test_of_rows_that_cannot_be_compared_all_leave_and_come() -> None:
    assert plain_values((Column("f", "double"), Column("v", "variant"))) == {}
