"""Aggregates that choose among rows are settled in the user's own text where that leaves no choice; else refused."""

from __future__ import annotations

import pytest
from kit.refined_views import check_left_alone, check_refined, compiled


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT k, max_by(v, ts) AS m FROM t GROUP BY k",
            "SELECT k, max_by(v, struct(ts, v)) FILTER (WHERE (ts) IS NOT NULL) AS m FROM t GROUP BY k",
        ),
        # floats that are compared by, beside what FILTER leaves; a call that is written twice
        (
            "SELECT k, min_by(v, x) FILTER (WHERE id > 1 OR v > 1) AS m, Min_By( v , x) AS n FROM t GROUP BY k"
            " HAVING min_by(v, x) > 2",
            "SELECT k, min_by(v, struct(x, v)) FILTER (WHERE (id > 1 OR v > 1) AND (x) IS NOT NULL) AS m,"
            " Min_By(v, struct(x, v)) FILTER (WHERE (x) IS NOT NULL) AS n FROM t GROUP BY k"
            " HAVING min_by(v, struct(x, v)) FILTER (WHERE (x) IS NOT NULL) > 2",
        ),
        (
            "SELECT k, first(v) AS f, any_value(v) AS a, last(v) AS l FROM t GROUP BY k",
            "SELECT k, min(v) AS f, min(v) AS a, max(v) AS l FROM t GROUP BY k",
        ),
        # of the same rows, but for sets and frequent values
        (
            "SELECT k, first(v) AS f, any_value(x, true) FILTER (WHERE v > 1) AS a, last(id) AS l FROM t GROUP BY k",
            "SELECT k, (min(named_struct('v0', v, 'v1', x, 'v2', id))).v0 AS f, (min(named_struct('v0', v, 'v1', x,"
            " 'v2', id)) FILTER (WHERE (v > 1) AND (x) IS NOT NULL)).v1 AS a,"
            " (max(named_struct('v0', v, 'v1', x, 'v2', id))).v2 AS l FROM t GROUP BY k",
        ),
        (
            "SELECT max_by(v, ts) AS m, max_by(id, ts) AS n FROM t GROUP BY k UNION ALL SELECT first(v), 0 AS z FROM t",
            "SELECT max_by(v, struct(ts, v, id)) FILTER (WHERE (ts) IS NOT NULL) AS m,"
            " max_by(id, struct(ts, v, id)) FILTER (WHERE (ts) IS NOT NULL) AS n FROM t GROUP BY k"
            " UNION ALL SELECT min(v), 0 AS z FROM t",
        ),
        (
            "SELECT listagg(k) AS l, string_agg(CAST(v AS STRING)) WITHIN GROUP (ORDER BY ts) AS m FROM t GROUP BY x",
            "SELECT listagg(k) WITHIN GROUP (ORDER BY k, CAST(v AS STRING)) AS l,"
            " string_agg(CAST(v AS STRING)) WITHIN GROUP (ORDER BY ts, k, CAST(v AS STRING)) AS m FROM t GROUP BY x",
        ),
        (
            "SELECT concat_ws(',', collect_set(k)) AS s, collect_list(v) FILTER (WHERE v > 1) AS c FROM t GROUP BY id",
            "SELECT concat_ws(',', sort_array(collect_set(k))) AS s,"
            " sort_array(collect_list(v) FILTER (WHERE v > 1)) AS c FROM t GROUP BY id",
        ),
        (
            "SELECT listagg(DISTINCT k, '-') AS a, listagg(k, '-') WITHIN GROUP (ORDER BY v DESC) AS b"
            " FROM t GROUP BY id",
            "SELECT listagg(DISTINCT k, '-') WITHIN GROUP (ORDER BY k) AS a,"
            " listagg(k, '-') WITHIN GROUP (ORDER BY v DESC, k) AS b FROM t GROUP BY id",
        ),
        # what is told apart, or sorted, has no order of rows
        (
            "SELECT k, listagg(DISTINCT k) AS l, sort_array(collect_list(id)) AS s, first(v) AS f FROM t GROUP BY k",
            "SELECT k, listagg(DISTINCT k) WITHIN GROUP (ORDER BY k) AS l, sort_array(collect_list(id)) AS s,"
            " min(v) AS f FROM t GROUP BY k",
        ),
        # what a function sorts keeps the order of rows that are equal for it
        (
            "SELECT id, array_sort(collect_list(k), (l, r) -> length(l) - length(r)) AS a, collect_list(v) AS b FROM t"
            " GROUP BY id",
            "SELECT id, array_sort(transform(sort_array(collect_list(named_struct('v0', k, 'v1', v)) FILTER (WHERE (k)"
            " IS NOT NULL)), r -> r.v0), (l, r) -> length(l) - length(r)) AS a, transform(sort_array(collect_list("
            "named_struct('v0', k, 'v1', v)) FILTER (WHERE (v) IS NOT NULL)), r -> r.v1) AS b FROM t GROUP BY id",
        ),
        # ALL says nothing, and names like those of set operations part nothing
        (
            "SELECT first(ALL v) AS f, max(id) AS minus, last(ALL k) AS l"
            " FROM (SELECT * EXCEPT (x) FROM t) GROUP BY ts",
            "SELECT (min(named_struct('v0', v, 'v1', k))).v0 AS f, max(id) AS minus,"
            " (max(named_struct('v0', v, 'v1', k))).v1 AS l FROM (SELECT * EXCEPT (x) FROM t) GROUP BY ts",
        ),
        (
            "SELECT k, max_by(ALL v, ts) AS m FROM t GROUP BY k",
            "SELECT k, max_by(v, struct(ts, v)) FILTER (WHERE (ts) IS NOT NULL) AS m FROM t GROUP BY k",
        ),
        # one kind after the other, orders among them
        (
            "SELECT k, collect_list(v) AS c, first(v) AS f FROM t GROUP BY k ORDER BY f LIMIT 2",
            "SELECT k, sort_array(collect_list(v)) AS c, min(v) AS f FROM t GROUP BY k ORDER BY f, 1 LIMIT 2",
        ),
        # of the rows of a sorted subquery, too, which say nothing about ties
        (
            "SELECT k, max_by(v, ts) AS m FROM (SELECT * FROM t ORDER BY id) GROUP BY k",
            "SELECT k, max_by(v, struct(ts, v)) FILTER (WHERE (ts) IS NOT NULL) AS m"
            " FROM (SELECT * FROM t ORDER BY id) GROUP BY k",
        ),
        # for each row
        (
            "SELECT k, (SELECT first(v) FROM t u WHERE u.id = t.id) AS f FROM t",
            "SELECT k, (SELECT min(v) FROM t u WHERE u.id = t.id) AS f FROM t",
        ),
    ],
)
def test_settled(query: str, expected: str) -> None:
    check_refined(query, expected)


@pytest.mark.parametrize(
    "query",
    [
        # whoever sorts a subquery means its order
        "SELECT k, first(v) AS f FROM (SELECT * FROM t ORDER BY ts) GROUP BY k",
        "WITH s AS (SELECT * FROM t SORT BY ts) SELECT collect_list(v) AS c FROM s",
        "SELECT first(k) AS f FROM w",
        # Spark, too, names such a column by its text
        "SELECT k, first(v) FROM t GROUP BY k",
        # zeros of floats are equal, and not the same
        "SELECT k, max_by(x, ts) AS m FROM t GROUP BY k",
        # other refusals stay, and then the text as well
        "SELECT k, first(v) AS f, approx_percentile(v, 0.5) AS p FROM t GROUP BY k",
        "SELECT k, first(v) AS f, rand() AS r FROM t GROUP BY k",
    ],
)
def test_not_settled(query: str) -> None:
    check_left_alone(query)


def test_keys_of_sources_leave_nothing_to_settle() -> None:
    query = "SELECT k, max_by(v, id) AS m FROM t GROUP BY k"
    assert compiled(query, keys=True).refinements == ()
    assert compiled(query, keys=True).rests_on_keys
    assert str(compiled(query).refinements[0]) == "max_by(): ties are ordered by v"
