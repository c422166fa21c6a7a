"""Ranges of keys: every key is within, wide gaps are not."""

from __future__ import annotations

import random

import pytest

from headrace.physical.key_ranges import MOST_RANGES, gaps_sql, ranges_of
from headrace.spark.runner import SparkRunner

LEAST, MOST = -(2**63), 2**63 - 1
CLOSE = [*range(100, 200), *range(5_000, 5_100)]


def within(runner: SparkRunner, keys: list[int | None], asked: list[int | None]) -> list[int | None]:
    """Which of some values the ranges of keys let through."""
    query = " UNION ALL ".join(f"SELECT {_literal(key)} AS k" for key in keys) or "SELECT 1L AS k WHERE false"
    (found,) = runner.run(gaps_sql(query))
    rows = ", ".join(f"({_literal(value)})" for value in asked)
    return [
        row[0] for row in runner.run(f"SELECT k FROM VALUES {rows} AS t(k) WHERE {ranges_of('k', found).condition}")
    ]


def _literal(value: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else f"CAST('{value}' AS BIGINT)"


@pytest.mark.parametrize(
    ("keys", "outside"),
    [
        ([], [0, None]),
        ([None], [0]),
        ([7], [6, 8, None]),
        ([7, 7, None], [6, 8]),
        (CLOSE, [99, 200, 3_000, 4_999, 5_100, None]),
        ([LEAST, 0, MOST], [LEAST + 1, -1, 1, MOST - 1]),
        ([LEAST, LEAST + 1, None], [0, MOST]),
    ],
)
def test_what_is_far_from_all_keys_is_outside(
    runner: SparkRunner, keys: list[int | None], outside: list[int | None]
) -> None:
    found = within(runner, keys, [*set(keys), *outside])
    assert set(found) == set(keys)


@pytest.mark.parametrize("seed", range(4))
def test_every_key_is_within_and_the_condition_stays_short(runner: SparkRunner, seed: int) -> None:
    chosen = random.Random(seed)
    starts = [chosen.randrange(-(10**12), 10**12) for _ in range(chosen.choice([1, 3, 40]))]
    keys = [start + chosen.randrange(1_000) for start in starts for _ in range(5)]
    assert set(within(runner, list(keys), list(keys))) == set(keys)
    (found,) = runner.run(gaps_sql(f"SELECT explode(array({', '.join(f'{key}L' for key in keys)}))"))
    assert ranges_of("k", found).condition.count("`k`") <= MOST_RANGES
