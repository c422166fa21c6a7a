"""Texts such as 'today', of which Spark makes the time wherever it casts them, and where they stay texts."""

from __future__ import annotations

import duckdb
import pytest
from kit.query_kinds import Query, by_duckdb, compiled

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError, UserError
from headrace.reasons import FullReason
from headrace.sql.reader.functions.determinism import moving_literal

MOVING = [
    "SELECT id, day FROM e WHERE day >= CAST('today' AS DATE)",
    "SELECT id, day FROM e WHERE day >= TRY_CAST(' Yesterday ' AS DATE)",
    "SELECT id, day FROM e WHERE day >= 'today'::date",
    "SELECT id, day FROM e WHERE day >= 'today'",
    "SELECT id, day FROM e WHERE 'today' <= day",
    "SELECT id, day FROM e WHERE day BETWEEN 'yesterday' AND 'tomorrow'",
    "SELECT id, day FROM e WHERE day IN ('2026-01-01', 'today')",
    "SELECT id, day FROM e WHERE day >= date('today') - 7",
    "SELECT id, day FROM e WHERE day >= to_date('today')",
    "SELECT id, moment FROM e WHERE moment < to_timestamp('now')",
    "SELECT id, moment FROM e WHERE moment < TIMESTAMP 'today UTC'",
    "SELECT id, coalesce(day, 'today') AS day FROM e",
    "SELECT id, CASE WHEN day > DATE '2026-01-01' THEN day ELSE 'today' END AS day FROM e",
    "SELECT id, CASE day WHEN 'today' THEN 1 ELSE 2 END AS n FROM e",
    "SELECT id, datediff('today', day) AS age FROM e",
    "SELECT id, count(*) FILTER (WHERE day = 'today') AS n FROM e GROUP BY id",
    "SELECT e.id FROM e JOIN t ON t.id = e.id AND day >= 'today'",
    "SELECT e.id FROM e LEFT JOIN t ON t.id = e.id AND day >= 'today'",
    "SELECT id FROM e WHERE EXISTS (SELECT 1 FROM t WHERE t.id = e.id AND e.day >= 'today')",
    "WITH recent AS (SELECT id, day FROM e WHERE day >= 'today') SELECT id FROM recent",
    "SELECT id, CAST(CASE WHEN id > 1 THEN day ELSE 'today' END AS STRING) AS d FROM e",
    "SELECT id, nullif(day, 'today') AS day FROM e",
    "SELECT id, decode(day, 'today', 1, 2) AS n FROM e",
    "SELECT id, decode('today', day, 'it is', text) AS n FROM e",
    "SELECT id, array_contains(array(day), 'today') AS x FROM e",
    "SELECT id, array_position(map_keys(map(day, id)), 'today') AS x FROM e",
    "SELECT id, element_at(map(day, id), 'today') AS x FROM e",
    "SELECT id FROM e WHERE text IN ('today', day)",
    "SELECT id FROM e WHERE text IN ('today', DATE '2026-01-01')",
    "SELECT id FROM e WHERE day IN ('today', text)",
    "SELECT id FROM e WHERE day = concat('to', 'day', 'today')",
    "SELECT id FROM e WHERE day = lower('TODAY')",
    "SELECT id FROM e WHERE day = 'today' || ''",
    "SELECT id FROM e WHERE day = '' || 'today' || ''",
    "SELECT id FROM e WHERE text || 'today'::date > 'x'",
    "SELECT id, size(filter(array(day), text -> if(id > 1, text, text) = 'today')) AS n FROM e",
    "SELECT id, size(filter(array(day), (text, i) -> if(id > 1, text, text) = 'today')) AS n FROM e",
    "SELECT id, try_cast(x AS DATE) AS day FROM (SELECT id, 'today' AS x FROM e) AS w",
    "WITH w AS (SELECT id, day, 'today' AS x FROM e) SELECT id FROM w WHERE day >= CAST(x AS DATE)",
    "WITH w AS (SELECT id, day, 'today' AS x FROM e) SELECT t.id FROM w JOIN t ON t.id = w.id AND w.day = w.x",
    "SELECT id FROM (SELECT id, day, 'x' AS x FROM e UNION ALL SELECT id, day, 'now' FROM e) AS w WHERE day = x",
    "SELECT id FROM (SELECT id, day, '' AS x FROM e) AS w WHERE day = concat(x, 'today')",
    "SELECT id FROM (SELECT id, day, '' AS x FROM e) AS w WHERE day = x || 'today'",
    "SELECT id FROM (SELECT id, text, 'now' AS x, day FROM e) AS w WHERE x IN (text, day)",
    "SELECT id, CASE x WHEN text THEN 1 WHEN day THEN 2 END AS n FROM (SELECT id, text, 'now' AS x, day FROM e) AS w",
    "SELECT id FROM (SELECT id, 'now' AS x, day FROM e) AS w WHERE x IS DISTINCT FROM day",
    "SELECT x, count_if(try_cast(x AS DATE) > day) AS n FROM (SELECT 'now' AS x, day FROM e) AS w GROUP BY x",
]


@pytest.mark.parametrize("query", MOVING)
def test_texts_that_become_the_time(query: str) -> None:
    view = compiled(query, by_duckdb(Query("", query, "", "", True, None)))
    assert {each.code for each in view.refusals} == {FullReason.NOT_DETERMINISTIC}
    assert all(each.place is not None for each in view.refusals)
    assert view.tree is None


TEXTS = [
    "SELECT id FROM t WHERE s = 'now'",
    "SELECT id FROM t WHERE 'now' <=> s AND a > 1",
    "SELECT id FROM t WHERE NOT s <> 'today' OR lower(s) = 'tomorrow'",
    "SELECT id FROM t WHERE s IN ('now', 'later')",
    "SELECT id FROM t WHERE lower(s) NOT IN ('now', 'later')",
    "SELECT id FROM t WHERE s LIKE 'now'",
    "SELECT id, 'today' AS label FROM t",
    "SELECT id, CASE WHEN a > 1 THEN 'today' WHEN a > 0 THEN 'tomorrow' ELSE 'later' END AS label FROM t",
    "SELECT id, CASE s WHEN 'now' THEN 1 ELSE 2 END AS n FROM t",
    "SELECT id, coalesce(s, 'now') AS s FROM t",
    "SELECT id, if(a > 1, 'now', s) AS s FROM t",
    "SELECT s, count(*) FILTER (WHERE s = 'now') AS n, count_if(s = 'today') AS m FROM t GROUP BY s",
    "SELECT t.id FROM t JOIN u ON t.id = u.id AND u.s = 'now'",
    "SELECT t.id, u.a FROM t LEFT JOIN u ON t.id = u.id AND u.s = 'now'",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.id = u.id AND u.s = 'now')",
    "SELECT id FROM n WHERE pair.y = 'now'",
    "SELECT id, props['today'] AS today FROM n",
    "SELECT id, day FROM e WHERE day >= CAST('epoch' AS DATE)",
    "SELECT id FROM t WHERE s = 'now and then'",
    "SELECT id, nullif(s, 'now') AS s FROM t",
    "SELECT id, decode(s, 'now', 1, 'today', 2, 0) AS n FROM t",
    "SELECT id, decode(a, 1, 'now', 2, s, 'today') AS n FROM t",
    "SELECT id, nvl2(a, 'now', s) AS n FROM t",
    "SELECT id FROM n WHERE array_contains(tags, 'today') OR array_position(tags, 'now') > 1",
    "SELECT id FROM n WHERE array_contains(array_remove(tags, 'today'), pair.y)",
    "SELECT id, element_at(props, 'now') AS n FROM n",
    "SELECT t.id FROM t, u WHERE t.s IN ('now', t.s || 'x', 'later', NULL) AND u.s NOT IN (lower(u.s), \"today\")",
    "SELECT id, s || 'now' AS x, 'today' || s AS y, a || ' ' || 'now' || ' ' AS z FROM t",
    "SELECT id FROM n WHERE pair.y || 'now' <> doc AND doc = 'today' || ' ' || lower(doc)",
    "SELECT id, concat(s, 'now') AS x, concat_ws(',', a, 'today') AS y, replace(s, 'now', 'today') AS z FROM t",
    "SELECT id, regexp_extract(s, 'now', 0) AS x, regexp_replace(s, 'now', '') AS y, lpad(s, 9, 'now') AS z FROM t",
    "SELECT id FROM t WHERE instr(s, 'now') > 1 OR locate('now', s) > 1 OR contains(s, 'now')",
    "SELECT id, split_part(s, 'now', 1) AS x, upper(concat(s, 'now')) AS y FROM t",
    "SELECT id, size(split(s, 'now')) AS n, array_join(array(s, s), 'now') AS x FROM t",
    "SELECT x, count(*) AS n FROM (SELECT 'now' AS x FROM t UNION ALL SELECT 'today' FROM u) AS w "
    "WHERE x = 'today' OR x LIKE 't%' OR x IN ('now', 'later') OR x IS NOT NULL GROUP BY x ORDER BY x",
    "SELECT CASE x WHEN 'now' THEN 1 WHEN 'today' THEN 2 END AS n, x, id FROM (SELECT id, 'today' AS x FROM t) AS w",
    "SELECT w.id FROM (SELECT id, 'now' AS x FROM t) AS w JOIN u ON w.x = u.s AND w.id = u.id",
    "SELECT id, x || s AS y, coalesce(s, x) AS z FROM (SELECT id, s, 'now' AS x FROM t) AS w",
    "SELECT id, day FROM (SELECT id, day, 'now' AS x FROM e) AS w WHERE day >= DATE '2026-01-01' AND x > 'm'",
]


@pytest.mark.parametrize("query", TEXTS)
def test_texts_that_stay_texts(query: str) -> None:
    view = compiled(query, by_duckdb(Query("", query, "", "", True, None)))
    assert view.refusals == ()
    assert view.tree is not None


def test_what_spark_cannot_describe_by_itself_is_refused_with_a_place() -> None:
    by_itself = by_duckdb(Query("", "", "", "", True, None))

    def describe(sql: str) -> tuple[Column, ...]:
        try:
            return (Column("id", "int"),) if sql == query else by_itself(sql)
        except duckdb.Error as error:
            raise UserError("COLUMN_NOT_FOUND", "There is no such column.") from error

    query = "SELECT id FROM n WHERE exists(tags, x -> concat(x, doc) = 'now')"
    (refusal,) = compiled(query, describe).refusals
    assert refusal.code == FullReason.NOT_DETERMINISTIC
    assert refusal.place is not None


def test_an_error_that_may_pass_is_no_answer() -> None:
    by_itself = by_duckdb(Query("", "", "", "", True, None))

    def describe(sql: str) -> tuple[Column, ...]:
        if sql != query:
            raise HeadraceError("SPARK_ERROR", "It is gone.", retryable=True)
        return by_itself(sql)

    query = "SELECT id FROM t WHERE lower(s) = 'now'"
    with pytest.raises(HeadraceError, match="It is gone"):
        compiled(query, describe)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("'now'", True),
        ('"TODAY"', True),
        ("r'today'", True),
        ("$$today$$", True),
        (r"'\u0074oday'", True),
        ("' tomorrow\t'", True),
        ("'today UTC'", True),
        ("'yesterday America/New_York'", True),
        ("'today+01:00'", True),
        ("'now UTC'", False),  # which Spark does not take
        ("'epoch'", False),
        ("'todays'", False),
        ("'nowhere'", False),
        ("'2026-01-01'", False),
    ],
)
def test_spellings(literal: str, expected: bool) -> None:
    assert moving_literal(literal) is expected
