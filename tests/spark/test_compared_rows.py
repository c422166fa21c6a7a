"""Comparing a table with a query, where floating-point sums differ in their last digits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from headrace.algebra.schema import Column
from headrace.names import TableName
from headrace.refresh.verify.compared_rows import Compared, compare
from headrace.spark.runner import SparkRunner

KX = (Column("k", "bigint"), Column("x", "double"))
XY = (Column("x", "double"), Column("y", "float"))
MORE = "(1 + 4e-16D)"


@pytest.fixture
def compared(runner: SparkRunner, fresh: Callable[..., TableName]) -> Callable[..., Compared]:
    def of(columns: tuple[Column, ...], table: str, query: str) -> Compared:
        stored = fresh()
        runner.run(f"CREATE TABLE {stored.sql} USING iceberg AS {table}")
        return compare(runner, columns, stored.sql, query)

    return of


def rows(values: str, names: str) -> str:
    return f"SELECT * FROM VALUES {values} AS v({names})"


def test_all_pairs_are_found_however_many_rows_differ(compared: Callable[..., Compared]) -> None:
    found = compared(
        KX,
        "SELECT id AS k, CAST(id AS DOUBLE) + 0.1D AS x FROM range(30000)",
        f"SELECT id AS k, (CAST(id AS DOUBLE) + 0.1D) * {MORE} AS x FROM range(1, 30000) UNION ALL SELECT -1, 1.5D",
    )
    assert (found.rows, found.missing, found.unexpected) == (30_000, 1, 1)
    assert found.rounded > 10_000
    assert {(s["k"], s["weight"]) for s in found.samples} == {(-1, 1), (0, -1)}


def test_copies_are_paired_one_by_one(compared: Callable[..., Compared]) -> None:
    found = compared(
        KX,
        rows("(1, 0.3D), (1, 0.3D), (1, 0.3D), (2, 0.5D), (2, 0.5D)", "k, x"),
        rows("(1, 0.30000000000000004D), (1, 0.1D + 0.2D), (2, 0.5D), (2, 0.5D), (2, 0.5000000000000001D)", "k, x"),
    )
    assert (found.missing, found.unexpected, found.rounded) == (1, 1, 2)
    assert sorted((s["k"], s["weight"]) for s in found.samples) == [(1, -1), (2, 1)]


@pytest.mark.parametrize(
    ("table", "query", "rounded"),
    [
        ("1.0D", "1.0000000001D", 1),
        ("1.0D", "1.00000001D", 0),
        ("1.0D", "-1.0D", 0),
        ("0.0D", "1e-300D", 0),
        ("1.0D", "double('infinity')", 0),
        ("-double('infinity')", "double('infinity')", 0),
        ("double('NaN')", "1.0D", 0),
        ("NULL", "0.0D", 0),
    ],
)
def test_only_what_is_close_is_a_pair(compared: Callable[..., Compared], table: str, query: str, rounded: int) -> None:
    found = compared(KX, f"SELECT 1L AS k, CAST({table} AS DOUBLE) AS x", f"SELECT 1L, CAST({query} AS DOUBLE)")
    assert (found.missing, found.unexpected, found.rounded) == (1 - rounded, 1 - rounded, rounded)
    assert len(found.samples) == 2 * (1 - rounded)


def test_rows_of_floats_alone_are_paired_beside_rows_without_counterpart(compared: Callable[..., Compared]) -> None:
    """One that is missing shifts no others, and a column that is NULL, NaN or equal decides nothing."""
    table = rows(
        "(1.0D, 5.0F), (2.0D, 5.0F), (3.0D, NULL), (4.0D, float('NaN')), (9.0D, 1.0F), (7.0D, 7.0F), (7.0D, 3.0F)",
        "x, y",
    )
    query = rows(
        "(0.5D, 1.0F), (1.0000000000000002D, 5.0F), (2.0000000000000004D, 5.0F), (3.0000000000000004D, NULL), "
        "(4.000000000000001D, float('NaN')), (9.000000000000002D, 2.0F), (7.000000000000001D, 3.0F), "
        "(6.999999999999999D, 7.0F)",
        "x, y",
    )
    found = compared(XY, table, query)
    assert (found.missing, found.unexpected, found.rounded) == (2, 1, 6)
    assert sorted((s["x"], s["weight"]) for s in found.samples) == [(0.5, 1), (9.0, -1), (9.000000000000002, 1)]


def test_as_many_pairs_are_found_as_there_are(compared: Callable[..., Compared]) -> None:
    """Random bags whose values are far apart or all but equal, against counting."""
    draw = random.Random(11)
    for _ in range(3):
        sides: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]] = ([], [])
        for side in sides:
            for _ in range(60):
                side.append((draw.randrange(3), draw.randrange(4), draw.randrange(3)))
        texts = [
            rows(
                ", ".join(f"({k}L, {a + 1}.5D * (1 + {draw.randrange(5)} * 3e-16D), {b}.0D)" for k, a, b in side),
                "k, x, y",
            )
            for side in sides
        ]
        found = compared((*KX, Column("y", "double")), *texts)
        old, new = (Counter(side) for side in sides)
        assert (found.missing, found.unexpected) == ((new - old).total(), (old - new).total())
