"""Averages of 64-bit integers below another operator are added up exactly, in the user's own text."""

from __future__ import annotations

import pytest
from kit.query_kinds import Query, by_duckdb, compiled

from headrace.compiler.compiled_view import CompiledView
from headrace.sql.refinements import refined


def view(query: str) -> CompiledView:
    return compiled(query, by_duckdb(Query("", query, "", "", True, None)))


EXACT = "(CAST(sum(CAST({0} AS DECIMAL(20,0))) AS DOUBLE) / nullif(count({0}), 0))"
OF_INTS = "(CAST(sum({0}) AS DOUBLE) / nullif(count({0}), 0))"
QUANTIFIED = "(CAST(sum({0} CAST({1} AS DECIMAL(20,0))) AS DOUBLE) / nullif(count({0} {1}), 0))"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.id, g.m FROM t JOIN (SELECT a, {} AS m FROM v GROUP BY a) g ON g.a = t.a",
        "SELECT m, count(*) AS n FROM (SELECT a, 2 * {} AS m FROM v GROUP BY a) g GROUP BY m",
        "SELECT a FROM v WHERE b > (SELECT {} FROM v)",
    ],
)
def test_averages_below_another_operator(query: str) -> None:
    found = view(query.format("avg(b)"))
    assert found.refusals == ()
    assert refined(found.query, found.refinements) == query.format(EXACT.format("b"))
    assert [str(each) for each in found.refinements] == ["avg() of long integers: added up as decimals: b"]


def test_averages_of_short_integers_are_added_up_as_long_ones() -> None:
    query = "SELECT t.id, g.m FROM t JOIN (SELECT k, {} AS m FROM u GROUP BY k) g ON g.k = t.a"
    found = view(query.format("avg(a)"))
    assert refined(found.query, found.refinements) == query.format(OF_INTS.format("a"))
    assert [str(each) for each in found.refinements] == ["avg() of integers: added up as whole numbers: a"]


@pytest.mark.parametrize(
    ("argument", "quantifier", "value"),
    [
        ("DISTINCT b", "DISTINCT", "b"),
        ("distinct(b)", "distinct", "(b)"),
        ("DISTINCT\n b", "DISTINCT", "b"),
        ("ALL(b + 1)", "ALL", "(b + 1)"),
    ],
)
def test_averages_of_different_values(argument: str, quantifier: str, value: str) -> None:
    query = "SELECT t.id, g.m FROM t JOIN (SELECT a, {} AS m FROM v GROUP BY a) g ON g.a = t.a"
    found = view(query.format(f"avg({argument})"))
    assert refined(found.query, found.refinements) == query.format(QUANTIFIED.format(quantifier, value))


def test_one_that_cannot_be_written_leaves_the_others() -> None:
    query = (
        "WITH g AS (SELECT a, {} AS m FROM v GROUP BY a), p AS (SELECT * FROM v PIVOT (avg(b) FOR a IN (1, 2))) "
        "SELECT g.a, g.m, p.`1` AS p FROM g CROSS JOIN p"
    )
    found = view(query.format("avg(b)"))
    assert refined(found.query, found.refinements) == query.format(EXACT.format("b"))


def test_averages_at_the_top_over_a_recursion_that_is_kept() -> None:
    query = (
        "WITH RECURSIVE r(n) AS (SELECT id FROM t UNION ALL SELECT n - 1 FROM r WHERE n > 0) "
        "SELECT v.a, {} AS m FROM r JOIN v ON v.a = r.n GROUP BY v.a"
    )
    found = view(query.format("avg(v.b)"))
    assert found.refusals == ()
    assert refined(found.query, found.refinements) == query.format(EXACT.format("v.b"))


def test_one_that_is_spelt_alike_and_is_of_floats_stays() -> None:
    of_averages = "SELECT a, avg(b) AS b FROM (SELECT a, {} AS b FROM v GROUP BY a, b) g GROUP BY a"
    found = view(of_averages.format("avg(b)"))
    assert refined(found.query, found.refinements) == of_averages.format(EXACT.format("b"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, avg(b) AS m FROM v GROUP BY a HAVING avg(b) > 1",  # at the top accumulators are exact
        "SELECT t.id, g.m FROM t JOIN (SELECT k, avg(a * 0.5BD) AS m FROM u GROUP BY k) g ON g.k = t.a",  # of decimals
        "SELECT * FROM t JOIN (SELECT a AS k, avg(b) FROM v GROUP BY a) g ON g.k = t.a",  # named after the call
    ],
)
def test_others_stay(query: str) -> None:
    found = view(query)
    assert (found.refusals, found.refinements) == ((), ())
