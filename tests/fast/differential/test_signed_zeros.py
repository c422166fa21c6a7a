"""Values that are equal and not the same are told apart by what stands above: 0.0 and -0.0 as texts."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.schema import Column

COLUMNS = (Column("k", "string"), Column("f", "double"), Column("n", "int"))
ROWS = (("a", 0.0, 1), ("a", -0.0, 1), ("b", 5.0, 1))
WINDOWS = (
    {"w": ((1, ("a", 1.0, 1)),)},
    {"w": ((1, ("a", 0.0, 2)), (1, ("a", -0.0, 2)), (-1, ("b", 5.0, 1)))},
    {"w": ((-1, ("a", 1.0, 1)), (1, ("b", -0.0, 2)))},  # a zero that goes is either one to Python
)
COUNTED = "SELECT k, f, n, CAST(count(*) OVER (PARTITION BY k) AS INT) AS c FROM w"
GREATEST = "SELECT k, max(f) AS f, CAST(count(*) AS INT) AS c FROM w GROUP BY k"
FIRST = "SELECT f, n, k FROM w ORDER BY n, k, CAST(f AS STRING) LIMIT 3"

QUERIES = (
    f"SELECT CAST(f AS STRING) AS s, c FROM ({COUNTED}) x",
    f"SELECT CAST(f AS STRING) AS s, c FROM ({COUNTED}) x WHERE n = 2",
    f"SELECT s, count(*) AS m FROM (SELECT CAST(f AS STRING) AS s, c FROM ({COUNTED}) x) y GROUP BY s",
    f"SELECT s, count(*) AS m FROM (SELECT CAST(f AS STRING) AS s, c FROM ({GREATEST}) x) y GROUP BY s",
    f"SELECT s, count(*) AS m FROM (SELECT CAST(f AS STRING) AS s FROM ({FIRST}) x) y GROUP BY s",
)

COMPUTED = (
    ("round(f / 10)", "w"),
    ("-f", "w"),
    ("-CAST(n - 2 AS DOUBLE) * f", "w"),
    ("explode(array(f, f + 1))", "w"),
    ("coalesce(g, 0.5D)", "(SELECT k, min(f) AS g FROM w GROUP BY k, n) v"),
)


@pytest.mark.parametrize(("value", "rows"), COMPUTED)
def test_zeros_of_columns_whose_types_follow_from_expressions(value: str, rows: str) -> None:
    counted = f"SELECT g, CAST(count(*) OVER (PARTITION BY k) AS INT) AS c FROM (SELECT k, {value} AS g FROM {rows}) a"
    query = f"SELECT CAST(g AS STRING) AS s, c FROM ({counted}) x"
    view = Maintained(DuckExecutor(), Case(query, (Table("w", COLUMNS, ROWS),), WINDOWS))
    for window in WINDOWS:
        view.step(window)


ZERO, MINUS_ZERO, ONE = ("a", 0.0, 1), ("a", -0.0, 1), ("b", 1.0, 2)
SINGLE = (
    "SELECT n, CAST(m.v AS STRING) AS s FROM (SELECT n FROM w WHERE f > 0) a CROSS JOIN (SELECT {} AS v FROM w"
    " WHERE k = 'a') m"
)


@pytest.mark.parametrize("value", ["max(f)", "-max(f)"])
def test_one_value_that_becomes_the_other_zero(value: str) -> None:
    windows = ({"w": ((-1, ZERO), (1, MINUS_ZERO))}, {"w": ((1, ("a", -7.0, 3)),)}, {"w": ((1, ("a", 8.0, 3)),)})
    executor = DuckExecutor()
    view = Maintained(executor, Case(SINGLE.format(value), (Table("w", COLUMNS, (ZERO, ONE)),), windows))
    for window, moves in zip(windows, (True, False, True), strict=True):
        view.step(window)
        assert bool(executor.rows("SELECT * FROM revalued")) == moves, "for an unchanged value nothing else is read"


@pytest.mark.parametrize("query", QUERIES)
def test_zeros_of_both_signs_below_what_shows_them(query: str) -> None:
    view = Maintained(DuckExecutor(), Case(query, (Table("w", COLUMNS, ROWS),), WINDOWS))
    for window in WINDOWS:
        view.step(window)


AT_THE_TOP = (
    "SELECT CAST(max(f) AS STRING) AS m FROM w GROUP BY k",
    "SELECT k, CAST(max(f) AS STRING) AS m FROM w GROUP BY k",
    "SELECT k, CAST(max(CAST(f AS FLOAT)) AS STRING) AS m, count(f) AS c FROM w GROUP BY k",
    "SELECT CAST(max(f) AS STRING) AS m, CAST(min(f) AS STRING) AS l, max(n) AS n FROM w",
    "SELECT CAST(max(struct(f, 1)) AS STRING) AS m FROM w GROUP BY k",
)
ALONE_CHANGED = (
    {"w": ((-1, ("a", -0.0, 1)), (1, ("a", 0.0, 2)))},
    {"w": ((-1, ("a", 0.0, 2)), (1, ("a", -0.0, 3)))},
    {"w": ((-1, ("a", -0.0, 3)), (1, ("a", 7.0, 4)), (1, ("a", 0.0, 5)))},
    {"w": ((-1, ("a", 7.0, 4)), (-1, ("a", 0.0, 5)), (1, ("a", -0.0, 6)))},
    {"w": ((-1, ("a", -0.0, 6)),)},
)


@pytest.mark.parametrize("query", AT_THE_TOP)
def test_zeros_of_both_signs_in_groups_that_are_remembered(query: str) -> None:
    case = Case(query, (Table("w", COLUMNS, (("a", -0.0, 1),)),), ALONE_CHANGED)
    view = Maintained(DuckExecutor(), case)
    for window in ALONE_CHANGED:
        view.step(window)


STORED = (
    "SELECT k, max(f) AS f FROM w GROUP BY k",
    "SELECT max(f) AS f FROM w GROUP BY k",
    "SELECT k, f FROM w",
    "SELECT k, f, n FROM w ORDER BY n DESC, f, k LIMIT 2",
    "SELECT k, f, CAST(count(*) OVER (PARTITION BY k) AS INT) AS c FROM w",
    "SELECT w.k, v.f FROM w JOIN (SELECT k, min(f) AS f FROM w GROUP BY k, n) v ON v.k = w.k",
)


@pytest.mark.parametrize("query", STORED)
def test_zeros_are_stored_without_a_sign(query: str) -> None:
    """Else a change could take away the other zero than is stored, which what reads the stream table tells apart."""
    case = Case(query, (Table("w", COLUMNS, (("a", -0.0, 1),)),), ALONE_CHANGED)
    executor = DuckExecutor()
    view = Maintained(executor, case)
    for window in (*ALONE_CHANGED, {"w": ((1, ("a", -0.0, 7)),)}):
        view.step(window)
        assert executor.rows("SELECT f FROM state_change WHERE CAST(f AS STRING) = '-0.0'") == []


PARTNERS = (
    "v.f = w.f AND CAST(v.f AS STRING) = w.k",
    "v.f = w.f AND CAST(v.f AS STRING) <> w.k",
    "v.f <=> w.f AND w.k || CAST(v.f AS STRING) LIKE '%-0.0'",
)


@pytest.mark.parametrize("exists", ["EXISTS", "NOT EXISTS"])
@pytest.mark.parametrize("condition", PARTNERS)
def test_partners_that_become_the_other_zero(condition: str, exists: str) -> None:
    query = f"SELECT k, n FROM w WHERE {exists} (SELECT 1 FROM v WHERE {condition})"
    windows = (
        {"v": ((-1, (0.0,)), (1, (-0.0,)))},
        {"v": ((-1, (-0.0,)), (1, (0.0,)), (1, (1.0,)))},
        {"v": ((-1, (0.0,)), (1, (-0.0,))), "w": ((1, ("-0.0", -0.0, 3)),)},
    )
    rows = Table("w", COLUMNS, (("0.0", 0.0, 1), ("-0.0", 0.0, 2), ("1.0", 1.0, 1)))
    view = Maintained(DuckExecutor(), Case(query, (rows, Table("v", (Column("f", "double"),), ((0.0,),))), windows))
    for window in windows:
        view.step(window)
