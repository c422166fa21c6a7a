"""Averages finished from sum and count equal Spark's own to the last digit, halves included."""

from __future__ import annotations

import pytest

from headrace.ivm.aggregates.decimal_average import quotient
from headrace.spark.runner import SparkRunner

SHAPES = [(5, 0), (8, 2), (12, 2), (12, 10), (10, 10), (13, 2), (15, 2), (17, 4), (18, 2), (19, 2), (21, 0)]
"""Precisions and scales: the first five divide directly, the others take the remainder off first."""


@pytest.mark.parametrize(("precision", "scale"), SHAPES)
def test_averages_of_decimals(runner: SparkRunner, precision: int, scale: int) -> None:
    average = quotient((precision, scale), "s", "n")
    assert average is not None
    limit = 10 ** min(precision, 18)
    # groups of one to some forty rows; every second one has small values, so that halves are met
    value = f"concat(xxhash64(id) % if(id % 2 = 0, {limit}, 1000), 'E-{scale}')"
    rows = runner.run(
        f"""
        SELECT g, a, {average} AS ours, typeof(a) = typeof({average}) AS alike FROM (
          SELECT g, avg(v) AS a, sum(v) AS s, count(v) AS n FROM (
            SELECT cast(sqrt(id) * 2 AS int) * 2 + id % 2 AS g,
                   if(id % 13 = 0, NULL, cast({value} AS decimal({precision},{scale}))) AS v
            FROM range(4000)
          ) GROUP BY g
        )"""
    )
    assert len(rows) > 200
    assert all(row["alike"] for row in rows)
    assert [row["g"] for row in rows if row["ours"] != row["a"]] == []


def test_there_is_no_average_where_it_could_round_twice() -> None:
    assert quotient((22, 2), "s", "n") is None
    assert quotient((30, 10), "s", "n") is None
