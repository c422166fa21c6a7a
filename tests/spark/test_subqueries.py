"""Hard histories of outer joins and subqueries on Spark: its word on NULLs is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.fixture import parse, shown
from kit.maintained import Maintained
from kit.sparks import SparkExecutor

from headrace.spark.runner import SparkRunner

ACID = Path(__file__).parents[1] / "fast" / "differential" / "acid"
NAMES = (
    "exists_correlated_and_not",
    "exists_uncorrelated",
    "full_join_using",
    "having_above_a_subquery",
    "in_over_several_columns",
    "not_in_of_matching_rows",
    "not_in_with_nulls",
    "outer_join_chain_without_equality",
    "scalar_subquery_correlated",
    "scalar_subquery_uncorrelated",
    "semi_and_anti_join",
    "subqueries_under_or_and_not",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_hard_history(runner: SparkRunner, name: str) -> None:
    fixture = parse((ACID / f"{name}.txt").read_text())
    view = Maintained(SparkExecutor(runner.session), fixture.case)
    for window, expected in zip(fixture.case.windows, fixture.expected, strict=True):
        assert shown(view.step(window)) == expected
