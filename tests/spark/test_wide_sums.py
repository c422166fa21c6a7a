"""Sums whose type has no digits to spare, by Spark's own arithmetic: TPC-H's sums of prices after discount are such."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.case import Case
from kit.fixture import parse, shown
from kit.maintained import Maintained, replay
from kit.sparks import SparkExecutor

from headrace.ivm.query_root import root_of
from headrace.spark.runner import SparkRunner

ACID = Path(__file__).parents[1] / "fast" / "differential" / "acid"


@pytest.mark.parametrize("ansi", [True, False])
def test_a_sum_that_fills_its_type(runner: SparkRunner, ansi: bool) -> None:
    fixture = parse((ACID / "sum_that_fills_its_type.txt").read_text())
    view = Maintained(SparkExecutor(runner.session), fixture.case, ansi=ansi)
    assert view.view.tree is not None
    root = root_of(view.view.tree)
    assert root is not None
    assert not root.plan.recomputed
    for window, expected in zip(fixture.case.windows, fixture.expected, strict=True):
        assert shown(view.step(window)) == expected


@pytest.mark.parametrize(
    "charge", ["p * (1 - d)", "p * (1 - d) * (1 + d)", "CASE WHEN d > 0 THEN p * (1 - d) ELSE 0 END"]
)
def test_products_of_decimals(runner: SparkRunner, charge: str) -> None:
    text = """
table    t k INT, p DECIMAL(15,2), d DECIMAL(15,2)
view     SELECT 1
t        +1 | 1 | 100.01 | 0.05  +1 | 1 | 33.33 | 0.07  +1 | 2 | NULL | 0.01
change   t  +1 | 1 | 77.77 | 0.03  -1 | 1 | 100.01 | 0.05  +1 | 2 | 5.55 | 0.00
expect   nothing
change   t  +3 | 2 | 9999999999999.99 | 0.09  -1 | 1 | 33.33 | 0.07
expect   nothing
"""
    case = parse(text).case
    query = f"SELECT k, sum({charge}) AS s FROM t GROUP BY k"
    view = Maintained(SparkExecutor(runner.session), Case(query, case.tables))
    assert view.view.tree is not None
    root = root_of(view.view.tree)
    assert root is not None
    assert not root.plan.recomputed, view.view.output
    replay(SparkExecutor(runner.session), Case(query, case.tables, case.windows))
