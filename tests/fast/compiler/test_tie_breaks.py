"""Orders that leave ties are refined in the user's own text where that settles them; else the query is refused."""

from __future__ import annotations

import pytest
from kit.refined_views import check_left_alone, check_refined, compiled


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # by the columns that are used, and by no others
        (
            "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM t) WHERE n = 1",
            "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY ts DESC, `v`) AS n FROM t)"
            " WHERE n = 1",
        ),
        (
            "SELECT z.k FROM (SELECT * FROM t ORDER BY v LIMIT 2) z",
            "SELECT z.k FROM (SELECT * FROM t ORDER BY v, 2 LIMIT 2) z",
        ),
        ("SELECT k FROM t ORDER BY ts -- newest\nLIMIT 3", "SELECT k FROM t ORDER BY ts, 1 -- newest\nLIMIT 3"),
        ("SELECT k, v FROM t LIMIT 3 OFFSET 1", "SELECT k, v FROM t ORDER BY 1, 2 LIMIT 3 OFFSET 1"),
        ("SELECT 1 AS one FROM t LIMIT 3", "SELECT 1 AS one FROM t ORDER BY 1 LIMIT 3"),
        ("SELECT k FROM t UNION SELECT k FROM t OFFSET 1", "SELECT k FROM t UNION SELECT k FROM t ORDER BY 1 OFFSET 1"),
        # by a key that follows from the query
        (
            "SELECT k, x, sum(v) AS s, max(id) FROM t GROUP BY k, x ORDER BY s LIMIT 3",
            "SELECT k, x, sum(v) AS s, max(id) FROM t GROUP BY k, x ORDER BY s, 1, 2 LIMIT 3",
        ),
        (
            "SELECT upper(k) AS u, row_number() OVER (ORDER BY count(*)) AS n FROM t GROUP BY 1, v",
            "SELECT upper(k) AS u, row_number() OVER (ORDER BY count(*), upper(`k`)) AS n FROM t GROUP BY 1, v",
        ),
        # two zeros are equal, and told apart as texts; so are those of what is not shown
        ("SELECT x FROM t ORDER BY ts LIMIT 2", "SELECT x FROM t ORDER BY ts, CAST(`x` AS STRING) LIMIT 2"),
        (
            "SELECT k FROM t ORDER BY x / 2 LIMIT 2",
            "SELECT k FROM t ORDER BY x / 2, 1, CAST(`x` / 2 AS STRING) LIMIT 2",
        ),
        (
            "SELECT avg(v) FROM t GROUP BY k LIMIT 2",
            "SELECT avg(v) FROM t GROUP BY k ORDER BY CAST(avg(`v`) AS STRING) LIMIT 2",
        ),
        (
            "SELECT x, lag(x) OVER (ORDER BY x) AS l FROM t",
            "SELECT x, lag(x) OVER (ORDER BY x, CAST(`x` AS STRING)) AS l FROM t",
        ),
        # windows that others share keep their order for these
        (
            "SELECT v, row_number() OVER w AS n, rank() OVER w AS r FROM t WINDOW w AS (ORDER BY ts)",
            "SELECT v, row_number() OVER (ORDER BY ts, `v`) AS n, rank() OVER w AS r FROM t WINDOW w AS (ORDER BY ts)",
        ),
        (
            "SELECT k, sum(v) OVER (w) AS s FROM t WINDOW w AS (ORDER BY ts ROWS 1 PRECEDING)",
            "SELECT k, sum(v) OVER (ORDER BY ts, `k`, `v` ROWS 1 PRECEDING) AS s FROM t"
            " WINDOW w AS (ORDER BY ts ROWS 1 PRECEDING)",
        ),
        (
            "SELECT v, last_value(v) OVER (PARTITION BY k) AS l FROM t",
            "SELECT v, last_value(v) OVER (PARTITION BY k ORDER BY `v`"
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM t",
        ),
        (
            "SELECT first_value(v) OVER (ORDER BY ts) AS f FROM t",
            "SELECT first_value(v) OVER (ORDER BY ts, `v`) AS f FROM t",
        ),
        (
            "SELECT sum(v) OVER (ROWS 1 PRECEDING) AS s FROM t",
            "SELECT sum(v) OVER (ORDER BY `v` ROWS 1 PRECEDING) AS s FROM t",
        ),
        # names as the SELECT sees them
        (
            "SELECT a.k, b.v, row_number() OVER (ORDER BY a.ts) AS n FROM t a JOIN t b USING (id)",
            "SELECT a.k, b.v, row_number() OVER (ORDER BY a.ts, `a`.`k`, `b`.`v`) AS n FROM t a JOIN t b USING (id)",
        ),
        (
            "WITH c AS (SELECT k, id, v FROM t ORDER BY ts LIMIT 2) SELECT v FROM c UNION ALL SELECT id FROM c",
            "WITH c AS (SELECT k, id, v FROM t ORDER BY ts, 3, 2 LIMIT 2) SELECT v FROM c UNION ALL SELECT id FROM c",
        ),
        (
            "SELECT t.k, l.v FROM t, LATERAL (SELECT v, id FROM t u WHERE u.k = t.k ORDER BY id LIMIT 1) AS l",
            "SELECT t.k, l.v FROM t, LATERAL (SELECT v, id FROM t u WHERE u.k = t.k ORDER BY id, 1 LIMIT 1) AS l",
        ),
    ],
)
def test_refined(query: str, expected: str) -> None:
    check_refined(query, expected)


@pytest.mark.parametrize(
    "query",
    [
        # rows that tie share a frame by value; finer ordered they would not
        "SELECT v, last_value(v) OVER (ORDER BY ts) AS c FROM t",
        "SELECT v, nth_value(v, 2) OVER (ORDER BY ts) AS c FROM t",
        "SELECT v, first_value(v) IGNORE NULLS OVER (ORDER BY ts) AS c FROM t",
        "SELECT v, first_value(v) OVER (ORDER BY ts RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS c FROM t",
        # which number of equal rows goes with which is open, however finely both are ordered
        "SELECT row_number() OVER (ORDER BY ts) AS c, row_number() OVER (ORDER BY v) AS d FROM t",
        # Spark, too, names such a column by its text
        "SELECT v, row_number() OVER (ORDER BY ts) FROM t",
        # the text of a view is not the user's
        "SELECT k FROM w",
        "SELECT DISTINCT k, x / 2 FROM t ORDER BY k SORT BY k LIMIT 2",
        # Spark would forget the finer order with the coarser
        "SELECT t.k, l.v FROM t, LATERAL (SELECT v FROM t u WHERE u.k = t.k ORDER BY id LIMIT 1) AS l",
        # other refusals stay, and then the text as well
        "SELECT k, first(v) FROM t GROUP BY k ORDER BY k LIMIT 2 + 1",
        "SELECT k, rand() FROM t LIMIT 3",
    ],
)
def test_not_refined(query: str) -> None:
    check_left_alone(query)


def test_keys_of_sources_settle_ties_before_anything_is_refined() -> None:
    query = "SELECT * FROM t ORDER BY ts, id LIMIT 3"
    assert compiled(query, keys=True).refinements == ()
    assert compiled(query, keys=True).rests_on_keys
    assert compiled(query).refinements
    view = compiled("SELECT id, v, k FROM t ORDER BY ts LIMIT 3", keys=True)
    assert [each.by for each in view.refinements] == [("id", "v", "k")]
    assert str(view.refinements[0]) == "LIMIT: ties are ordered by id, v, k"
