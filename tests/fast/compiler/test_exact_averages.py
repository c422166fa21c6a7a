"""Averages of 64-bit integers below another operator are added up exactly, in the user's own text."""

from __future__ import annotations

import pytest
from kit.query_kinds import Query, by_duckdb, compiled

from headrace.compiler.compiled_view import CompiledView
from headrace.sql.refinements import refined


def view(query: str) -> CompiledView:
    return compiled(query, by_duckdb(Query("", query, "", "", True, None)))


EXACT = "(CAST(sum(CAST({0} AS DECIMAL(20,0))) AS DOUBLE) / nullif(count({0}), 0))"


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


def test_one_that_is_spelt_alike_and_is_of_floats_stays() -> None:
    of_averages = "SELECT a, avg(b) AS b FROM (SELECT a, {} AS b FROM v GROUP BY a, b) g GROUP BY a"
    found = view(of_averages.format("avg(b)"))
    assert refined(found.query, found.refinements) == of_averages.format(EXACT.format("b"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, avg(b) AS m FROM v GROUP BY a HAVING avg(b) > 1",  # at the top accumulators are exact
        "SELECT t.id, g.m FROM t JOIN (SELECT k, avg(a) AS m FROM u GROUP BY k) g ON g.k = t.a",  # of int
        "SELECT * FROM t JOIN (SELECT a AS k, avg(b) FROM v GROUP BY a) g ON g.k = t.a",  # named after the call
    ],
)
def test_others_stay(query: str) -> None:
    found = view(query)
    assert (found.refusals, found.refinements) == ((), ())
