"""Sums of floats below another operator are added up in a fixed order, in the user's own text; else refused."""

from __future__ import annotations

import pytest
from kit.refined_views import check_left_alone, check_refined, compiled

SUM = "aggregate(sort_array(collect_list({})), CAST(NULL AS DOUBLE), (s, v) -> coalesce(s, 0D) + v)"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # compared with what is joined
        (
            "SELECT t.id, g.s FROM t JOIN (SELECT k, sum(x) AS s FROM t GROUP BY k) AS g ON g.k = t.k WHERE g.s > 1",
            f"SELECT t.id, g.s FROM t JOIN (SELECT k, {SUM.format('x')} AS s FROM t GROUP BY k) AS g ON g.k = t.k"
            " WHERE g.s > 1",
        ),
        # written in two ways, within a filter, of values that occur once
        (
            "SELECT max(s), max(d) FROM (SELECT sum(x + 1) FILTER (WHERE v > 1) AS s, SUM(DISTINCT x) AS d"
            " FROM t GROUP BY k)",
            f"SELECT max(s), max(d) FROM (SELECT {SUM.replace('))', ') FILTER (WHERE v > 1))').format('x + 1')}"
            f" AS s, {SUM.format('DISTINCT x')} AS d FROM t GROUP BY k)",
        ),
        # for each row, NULL beside no rows
        (
            "SELECT id FROM t WHERE x > (SELECT sum(i.x) FROM t AS i WHERE i.k = t.k)",
            f"SELECT id FROM t WHERE x > (SELECT {SUM.format('i.x')} FROM t AS i WHERE i.k = t.k)",
        ),
        # first rows among sums
        (
            "SELECT t.id, s FROM t JOIN (SELECT k, sum(x) AS s FROM t GROUP BY k) AS g USING (k) ORDER BY s LIMIT 2",
            f"SELECT t.id, s FROM t JOIN (SELECT k, {SUM.format('x')} AS s FROM t GROUP BY k) AS g USING (k)"
            " ORDER BY s, 1, CAST(`s` AS STRING) LIMIT 2",
        ),
    ],
)
def test_added_up_in_order(query: str, expected: str) -> None:
    check_refined(query, expected)


@pytest.mark.parametrize(
    "call", ["avg(x)", "mean(x)", "stddev(v)", "stddev_samp(v)", "stddev_pop(v)", "variance(x)", "var_pop(v)"]
)
def test_statistics(call: str) -> None:
    query = f"SELECT d, count(*) FROM (SELECT k, {call} AS d FROM t GROUP BY k) GROUP BY d"
    assert compiled(query).tree is not None
    assert [str(each) for each in compiled(query).refinements] == [
        f"{call[:-3]}() of floats: added up in the order of {call[-2]}"
    ]


@pytest.mark.parametrize(
    "query",
    [
        # statistics of two columns
        "SELECT d, count(*) FROM (SELECT k, corr(x, v) AS d FROM t GROUP BY k) GROUP BY d",
        # the column is named after the call
        "SELECT * FROM t JOIN (SELECT k, sum(x) FROM t GROUP BY k) AS g USING (k)",
        # another refusal
        "SELECT d, rand() FROM (SELECT k, sum(x) AS d FROM t GROUP BY k) JOIN t USING (k)",
    ],
)
def test_left_alone(query: str) -> None:
    check_left_alone(query)


def test_at_the_top_sums_stay_as_they_are() -> None:
    assert compiled("SELECT k, sum(x) AS s, stddev(v) AS d FROM t GROUP BY k").refinements == ()


def test_only_where_it_is_asked_for() -> None:
    view = compiled("SELECT max(s) FROM (SELECT k, sum(x) AS s FROM t GROUP BY k)", in_order=False)
    assert [each.construct for each in view.refusals] == ["sum of floats"]
    assert view.refinements == ()
