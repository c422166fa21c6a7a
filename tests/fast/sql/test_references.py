"""Table names are found exactly where they stand. In the queries below « » mark the names to be found."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from headrace.errors import Unsupported, UserError
from headrace.sql.references import Reference, references, substitute

QUERIES = [
    "SELECT * FROM «a.b» x, «`we``ird`.`t`» -- c FROM z\n JOIN (SELECT 1 FROM «c») d ON x.a = d.b",
    "SELECT * FROM «lake . shop . orders»",
    "SELECT '«', é FROM «`日本`.x» /* FROM no */ WHERE 'FROM y' = a".replace("'«'", "'q'"),
    "SELECT extract(year FROM d), trim(BOTH ' ' FROM x), a IS NOT DISTINCT FROM b FROM «t»",
    "SELECT trim(FROM b), trim (FROM (SELECT max(c) FROM «u»)) FROM «t» WHERE trim(FROM b) IN (FROM «v» SELECT c)",
    "SELECT substring(a FROM 1 FOR 2), overlay(a PLACING b FROM 1) FROM «t»",
    "SELECT a FROM «t» WHERE x IN (SELECT y FROM «f») AND EXISTS (SELECT 1 FROM «g») AND b = (SELECT max(c) FROM «h»)",
    "SELECT (SELECT max(x) FROM «a»), CASE WHEN b IN (SELECT 1 FROM «c») THEN 1 END FROM «d»",
    "SELECT a FROM «d» ORDER BY (SELECT 1 FROM «e»)",
    "SELECT a, count(*) FROM «t» GROUP BY a HAVING count(*) > (SELECT min(n) FROM «u») LIMIT 3",
    "SELECT a FROM «t» JOIN «u» ON t.a IN (SELECT 1 FROM «v») LEFT JOIN «w» USING (a) WHERE left(a, 2) = 'x'",
    "SELECT offset, a.limit, a.from FROM «kafka» WHERE offset > 3 LIMIT 5",
    "SELECT * EXCEPT (a) FROM «t» EXCEPT SELECT * FROM «u» MINUS SELECT 1 FROM «v»",
    "SELECT 1 FROM «a» UNION ALL SELECT 2 FROM «b» INTERSECT (SELECT 3 FROM «c» ORDER BY 1 LIMIT 1)",
    "((SELECT * FROM «a») UNION (SELECT * FROM «b»)) EXCEPT SELECT * FROM «c»",
    "SELECT * FROM ((SELECT 1 FROM «a») x JOIN «b» ON x.c = b.d) CROSS JOIN (SELECT * FROM (VALUES (1), (2)) v(a))",
    "SELECT * FROM ((«a» JOIN «b» USING (x)) JOIN «c» USING (y)) q",
    "SELECT * FROM range(10) r, explode(array(1)) e, «u», LATERAL (SELECT u.x FROM «w»)",
    "SELECT c FROM «t» LATERAL VIEW OUTER explode(b) v AS c, d WHERE c IN (SELECT 1 FROM «z»)",
    "SELECT * FROM «t» PIVOT (sum(x) FOR y IN (1, 2)) p JOIN «u» UNPIVOT (a FOR b IN (c, d)) AS q ON p.a = q.a",
    "SELECT transform(a, x -> x + 1) FROM «t»",
    "FROM «t» SELECT a WHERE b IN (SELECT 1 FROM «y»)",
    "FROM «t» |> WHERE x IN (SELECT 1 FROM «q») |> JOIN «u» ON a = b |> AGGREGATE sum(x) GROUP BY y",
    "FROM «t» |> UNION ALL SELECT a FROM «u» WHERE a IN (SELECT b FROM «v») |> WHERE table = 1",
    "FROM «t» |> EXCEPT FROM «u» |> INTERSECT DISTINCT TABLE «v» |> UNION (SELECT 1 FROM «w») |> SELECT a, join",
    "FROM «t» |> LEFT JOIN LATERAL (SELECT * FROM «u») x ON a IN (SELECT b FROM «v»)",
    "TABLE «t»",
    "SELECT * FROM f(TABLE(«o»), 3), VALUES (1, 2), (3, 4) AS v(a, b) JOIN «t» ON 1 = 1",
    "SELECT 1",
    "VALUES (1, 2)",
    "SELECT a, row_number() OVER (PARTITION BY b ORDER BY (SELECT 1 FROM «z»)) FROM «t» WINDOW w AS (ORDER BY a)",
    "SELECT sum(a) FILTER (WHERE a IN (SELECT 1 FROM «f»)) FROM «t» GROUP BY GROUPING SETS ((a), ())",
    "SELECT count(*) AS from, 1 AS select FROM «t»",
    "SELECT /*+ BROADCAST(t) */ a FROM «t» WHERE b BETWEEN 1 AND (SELECT 2 FROM «x»)",
    # common table expressions
    "WITH a AS (SELECT * FROM «a»), b(x) AS (SELECT * FROM a) SELECT * FROM b, «c.a»",
    "WITH a AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT * FROM a), a AS (TABLE b) SELECT * FROM a, b), A, «b»",
    "SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x, «a»",
    "WITH a AS (SELECT 1) SELECT * FROM «t» WHERE x IN (SELECT y FROM A) AND EXISTS (WITH t AS (TABLE a) TABLE t)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r JOIN «s») SELECT * FROM r",
    "WITH RECURSIVE r AS (SELECT a FROM «s»), s AS (SELECT 1 UNION ALL SELECT a FROM s) SELECT * FROM r, s",
    "WITH x AS (WITH y AS (SELECT 1 FROM «z») SELECT * FROM y) SELECT * FROM x, «y»",
]


def unmarked(query: str) -> tuple[str, list[tuple[int, int]]]:
    text, spans, start = "", [], 0
    for character in query:
        if character == "«":
            start = len(text)
        elif character == "»":
            spans.append((start, len(text)))
        else:
            text += character
    return text, spans


@pytest.mark.parametrize("query", QUERIES)
def test_every_table_is_found_in_its_place(query: str) -> None:
    text, spans = unmarked(query)
    assert [(r.start, r.end) for r in references(text)] == spans


@pytest.mark.parametrize(
    "query",
    [
        "WITH A AS (SELECT 1 FROM «a»), b AS (TABLE A) SELECT * FROM A, «a», b, «B»",
        "WITH RECURSIVE R(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM R JOIN «r») SELECT * FROM R",
    ],
)
def test_names_of_common_table_expressions_may_differ_by_case(query: str) -> None:
    text, spans = unmarked(query)
    assert [(r.start, r.end) for r in references(text, case_sensitive=True)] == spans
    assert substitute(text, lambda r: text[r.start : r.end], case_sensitive=True) == text
    assert len(references(text)) < len(spans)


@pytest.mark.parametrize("query", [q for q in QUERIES if "TABLE" not in q])
def test_putting_back_what_was_there_changes_nothing(query: str) -> None:
    text, _ = unmarked(query)
    assert substitute(text, lambda r: text[r.start : r.end]) == text


def test_parts_are_split_and_unquoted() -> None:
    found = references("SELECT * FROM lake. `my``ns` /* x */ .T")
    assert [r.parts for r in found] == [("lake", "my`ns", "T")]


@pytest.mark.parametrize(
    ("item", "aliased"),
    [
        ("t", False),
        ("t AS x", True),
        ("t x", True),
        ("t x(a, b)", True),
        ("t VERSION AS OF 3", False),
        ("t VERSION AS OF 3 x", True),
        ("t WHERE true", False),
        ("t LEFT JOIN u ON true", False),
        ("t NATURAL JOIN u", False),
        ("t `where`", True),
    ],
)
def test_alias(item: str, aliased: bool) -> None:
    assert references(f"SELECT * FROM {item}")[0].has_alias is aliased


@pytest.mark.parametrize(
    "suffix",
    [
        "VERSION AS OF 12",
        "VERSION AS OF 'tag'",
        "FOR SYSTEM_VERSION AS OF 3",
        "TIMESTAMP AS OF '2024-01-01'",
        "FOR TIMESTAMP AS OF current_timestamp() - INTERVAL '1' DAY",
        "FOR SYSTEM_TIME AS OF date_sub(current_date(), 1)",
        "TIMESTAMP AS OF TIMESTAMP '2024-01-01'",
        "TABLESAMPLE (10 PERCENT)",
        "TABLESAMPLE (5 ROWS) REPEATABLE (3)",
        "WITH ('snapshot-id' = '3')",
    ],
)
@pytest.mark.parametrize("alias", ["", " x", " AS x"])
def test_time_travel_and_samples_are_recognised(suffix: str, alias: str) -> None:
    found = references(f"SELECT * FROM t {suffix}{alias} JOIN u ON true")
    assert [(r.parts, r.time_travel, r.has_alias) for r in found] == [
        (("t",), True, bool(alias)),
        (("u",), False, False),
    ]


def test_table_as_a_query_becomes_a_select() -> None:
    def pinned(reference: Reference) -> str:
        return f"`{reference.parts[-1]}` VERSION AS OF 1"

    assert substitute("TABLE a UNION ALL TABLE  b", pinned) == (
        "SELECT * FROM `a` VERSION AS OF 1 UNION ALL SELECT * FROM `b` VERSION AS OF 1"
    )
    assert substitute("SELECT * FROM f(TABLE(a), TABLE b)", pinned) == (
        "SELECT * FROM f(TABLE (SELECT * FROM `a` VERSION AS OF 1), TABLE (SELECT * FROM `b` VERSION AS OF 1))"
    )


def test_a_name_by_expression_cannot_be_followed() -> None:
    with pytest.raises(Unsupported) as error:
        references("SELECT * FROM IDENTIFIER('a' || 'b')")
    assert error.value.code == "DYNAMIC_NAME"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELEC 1",
        "SELECT a FROM",
        "SELECT a FROM t WHERE (a",
        "SELECT a FROM t)",
        "SELECT , FROM t",
        "SELECT a FROM t WHERE",
        "SELECT a FROM t GROUP BY a HAVING",
        "WITH a SELECT 1",
    ],
)
def test_no_query_is_a_syntax_error_with_a_place(query: str) -> None:
    with pytest.raises(UserError) as error:
        references(query)
    assert error.value.code == "SYNTAX_ERROR"
    assert error.value.place is not None


# random queries, judged by sqlglot

NAMES = st.sampled_from(["a", "b", "c", "s.a", "`b`", "`x y`.c", "lake.s.t"])
BLANK = st.sampled_from([" ", "\n", " /* FROM z */ ", " -- JOIN y\n"])


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> str:
    gap = draw(BLANK)
    item = draw(items(depth))
    for _ in range(draw(st.integers(0, 2))):
        joined = draw(items(depth))
        item += draw(st.sampled_from([",", " JOIN", " LEFT JOIN", " CROSS JOIN"])) + draw(BLANK) + joined
    query = f"SELECT{gap}1{gap}AS x FROM{gap}{item}"
    if depth and draw(st.booleans()):
        query += f" WHERE x IN ({draw(queries(depth - 1))}) AND 'FROM q' <> \"it's\""
    if depth and draw(st.booleans()):
        query += f"{gap}UNION ALL{gap}({draw(queries(depth - 1))})"
    if depth and draw(st.booleans()):
        query = f"WITH {draw(st.sampled_from('abc'))} AS ({draw(queries(depth - 1))}){gap}{query}"
    return query


@st.composite
def items(draw: st.DrawFn, depth: int) -> str:
    if depth and draw(st.integers(0, 3)) == 0:
        return f"({draw(queries(depth - 1))}) AS q"
    return draw(NAMES) + draw(st.sampled_from(["", " AS z", " z"]))


def by_sqlglot(query: str) -> list[str]:
    tree = sqlglot.parse_one(query, read="spark")
    found = []
    for scope in traverse_scope(tree):
        for table in scope.tables:
            if table.db or table.name not in scope.cte_sources:
                found.append(".".join(part.name for part in table.parts))
    assert isinstance(tree, exp.Query)
    return sorted(found)


@settings(deadline=None)
@given(queries())
def test_random_queries(query: str) -> None:
    found = references(query)
    assert sorted(".".join(r.parts) for r in found) == by_sqlglot(query)
    assert substitute(query, lambda r: query[r.start : r.end]) == query
    renamed = substitute(query, lambda r: f"`#{'#'.join(r.parts)}`")
    assert ["#".join(("", *r.parts)) for r in found] == [r.parts[0] for r in references(renamed)]
