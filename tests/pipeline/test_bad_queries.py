"""Queries that nobody can run, or maintain: every verb says so plainly, with the place, and makes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.refresh.definition import define
from headrace.results.refresh_results import Mode
from headrace.sql.references import references

ODD = "`odd table.name`"


@pytest.fixture(scope="module")
def source(shared: Headrace) -> str:
    """A namespace with the sources of all tests here, which change none of them."""
    ns = "bad_queries"
    shared.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{ns}")
    rows = "VALUES (1, 10, array(1), '1', NULL), (2, 0, NULL, 'b', now()) AS t(k, v, a, s, ts)"
    shared.spark.sql(f"CREATE OR REPLACE TABLE lake.{ns}.t USING iceberg AS SELECT * FROM {rows}")
    shared.spark.sql(f"CREATE OR REPLACE TABLE lake.{ns}.u (k INT, w INT) USING iceberg")
    return ns


@pytest.fixture
def hr(shared: Headrace) -> Headrace:
    shared.spark.sql("USE lake")
    return shared


def verbs(hr: Headrace, ns: str) -> dict[str, Callable[[str], object]]:
    return {
        "validate": hr.validate,
        "explain": hr.explain_query,
        "create": lambda query: hr.create_stream_table(f"{ns}.made", query),
    }


def refused(hr: Headrace, ns: str, query: str) -> dict[str, HeadraceError]:
    """What each verb says of a query; nothing is there afterwards that was not before."""
    found = {}
    before = hr.spark.sql(f"SHOW TABLES IN lake.{ns}").count(), [t.name for t in hr.status()]
    for verb, ask in verbs(hr, ns).items():
        with pytest.raises(HeadraceError) as caught:
            ask(query)
        found[verb] = caught.value
        text = str(caught.value)
        assert not any(sign in text for sign in ("\tat ", "Traceback", "org.apache", "== SQL =="))
        assert len(text) < 1_500
    assert (hr.spark.sql(f"SHOW TABLES IN lake.{ns}").count(), [t.name for t in hr.status()]) == before
    return found


WRONG = {
    "type error deep in a query": (
        "SELECT x.k FROM (SELECT k FROM (SELECT k,\n a + 1 AS b FROM {ns}.t) y WHERE b > 1) x",
        "TYPE_MISMATCH",
        2,
    ),
    "ambiguous column": ("SELECT\n k FROM {ns}.t JOIN {ns}.u ON t.k = u.k", "COLUMN_AMBIGUOUS", 2),
    "correlation through two queries": (
        "SELECT k FROM {ns}.t x WHERE EXISTS (\n SELECT 1 FROM {ns}.u y WHERE EXISTS ("
        "\n  SELECT 1 FROM {ns}.u z WHERE z.w = x.v))",
        "COLUMN_NOT_FOUND",
        3,
    ),
    "union of other columns": ("SELECT k, v FROM {ns}.t\nUNION ALL SELECT k FROM {ns}.u", "TYPE_MISMATCH", 1),
    "two million characters with a mistake": (
        "SELECT k /* " + "x" * 2_000_000 + " */ FROM {ns}.t\nWHERE nope = 1",
        "COLUMN_NOT_FOUND",
        2,
    ),
    "cut at what a subquery gives": ("SELECT k FROM {ns}.t ORDER BY k\nLIMIT (SELECT 1)", "QUERY_INVALID", 2),
    "begun at what a subquery gives": (
        "SELECT k FROM {ns}.t ORDER BY k LIMIT 1\nOFFSET (SELECT 1)",
        "QUERY_INVALID",
        2,
    ),
    "the time of a refresh compared with a number": (
        "SELECT k FROM {ns}.t WHERE\n v > current_date()",
        "TYPE_MISMATCH",
        2,
    ),
    "ordered by maps": ("SELECT k FROM {ns}.t ORDER BY\n map(v, k) LIMIT 1", "TYPE_MISMATCH", 2),
    "ordered by variants": (
        "SELECT k, row_number() OVER (\n  ORDER BY parse_json(s)) AS r FROM {ns}.t",
        "TYPE_MISMATCH",
        2,
    ),
    "recursion through an order": (
        "WITH RECURSIVE r AS (SELECT k, v FROM {ns}.t UNION ALL SELECT q.k + 1, q.v FROM "
        "(SELECT *, row_number() OVER (ORDER BY k) AS n FROM r) q WHERE q.k < 5 AND n = 1) SELECT k, v FROM r",
        "QUERY_INVALID",
        None,
    ),
    "nothing": ("-- nothing", "SYNTAX_ERROR", 1),
    "no query": ("DROP TABLE {ns}.t", "SYNTAX_ERROR", 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(hr: Headrace, source: str, name: str) -> None:
    query, code, line = WRONG[name]
    for error in refused(hr, source, query.format(ns=source)).values():
        assert error.code == code
        assert (error.place.line if error.place else None) == line


SPANS = {
    "window(ts, '0 seconds')": ("TYPE_MISMATCH", "Give it a value within these bounds."),
    "window(ts, '-5 minutes')": ("TYPE_MISMATCH", "Give it a value within these bounds."),
    "window(ts, '5 minutes', '-1 minute')": ("TYPE_MISMATCH", "Give it a value within these bounds."),
    "window(ts, '5 minutes', '10 minutes')": ("TYPE_MISMATCH", "so that this holds"),
    "window(ts, '5 minutes', '1 minute', '2 minutes')": ("TYPE_MISMATCH", "so that this holds"),
    "window(ts, '1 month')": ("QUERY_INVALID", "date_trunc('MONTH', t)"),
    "window(ts, '1 day', '1 year')": ("QUERY_INVALID", "date_trunc('MONTH', t)"),
    "window(ts, s)": ("QUERY_INVALID", "a text such as '5 minutes'"),
    "window(ts, '5 moons')": ("VALUE_ERROR", "an interval such as '5 minutes'"),
    "session_window(ts, INTERVAL 5 MINUTES)": ("TYPE_MISMATCH", "make_interval"),
    "session_window(ts, v)": ("TYPE_MISMATCH", "make_interval"),
    "window(ts, '1 day'), session_window(ts, '5 minutes')": ("QUERY_INVALID", "in a subquery"),
    "session_window(ts, '1 hour'), session_window(ts, '5 minutes')": ("QUERY_INVALID", "in a subquery"),
}


@pytest.mark.parametrize("span", SPANS)
def test_spans_of_time_that_are_none(hr: Headrace, source: str, span: str) -> None:
    code, hint = SPANS[span]
    for error in refused(hr, source, f"SELECT count(*) AS n FROM {source}.t GROUP BY {span}").values():
        assert error.code == code
        assert hint in (error.hint or "")


NEVER = {
    "a change that would take too many operators": "\nSELECT t0.k FROM {ns}.t t0 "
    + " ".join(f"LEFT JOIN {{ns}}.t t{i} ON t{i}.k = t{i - 1}.k" for i in range(1, 95)),
    "not deterministic inside a CTE": (
        "WITH a AS (SELECT k,\n uuid() AS id FROM {ns}.t), b AS (SELECT * FROM a) SELECT id FROM b"
    ),
    "outer columns in a query of its FROM": (
        "SELECT k,\n (SELECT max(w) FROM (SELECT w FROM {ns}.u WHERE u.k = t.k) z) AS m FROM {ns}.t"
    ),
    "cut between maps": "SELECT k FROM (SELECT k, map(v, k) AS m FROM {ns}.t\nLIMIT 1) WHERE size(m) > 0",
    "cut at what is computed": "SELECT k FROM {ns}.t\nLIMIT 1 + 1",
    "the time of a refresh beside a number": "SELECT k FROM {ns}.t WHERE\n v > unix_timestamp()",
    "cut between variants": "SELECT k FROM (SELECT k, parse_json(s) AS p FROM {ns}.t\nLIMIT 1) WHERE p IS NOT NULL",
    "sessions without a length": "SELECT count(*) AS n FROM {ns}.t GROUP BY\n session_window(ts, '-5 minutes')",
    "sessions of single rows": "SELECT k,\n session_window(ts, '5 minutes') AS w FROM {ns}.t",
    "sessions as a condition": "SELECT k FROM {ns}.t WHERE\n session_window(ts, '5 minutes').start > '2024'",
    "floats that are not among others": "SELECT k FROM {ns}.t WHERE CAST(v AS DOUBLE)\n NOT IN (SELECT k FROM {ns}.u)",
    "intervals that groups remember": "SELECT k,\n max(make_dt_interval(v)) > INTERVAL 1 DAY m FROM {ns}.t GROUP BY k",
}


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_maintained(hr: Headrace, source: str, name: str) -> None:
    query = NEVER[name].format(ns=source)
    for found in (hr.validate(query), hr.explain_query(query)):
        assert (found.mode, found.refusals[0].line) == (Mode.FULL, 2)
        assert found.refusals[0].message
    with pytest.raises(HeadraceError) as caught:
        hr.create_stream_table(f"{source}.made", query, refresh_mode="DIFFERENTIAL")
    assert (caught.value.code, caught.value.place.line if caught.value.place else None) == ("NOT_MAINTAINABLE", 2)
    assert not hr.spark.catalog.tableExists(f"lake.{source}.made")


def test_sixty_joins_and_two_million_characters_are_no_obstacle(hr: Headrace, source: str) -> None:
    joins = " ".join(f"JOIN {source}.t AS t{i} ON t{i}.k = t{i - 1}.k" for i in range(1, 60))
    long = f"SELECT k /* {'x' * 2_000_000} */ FROM {source}.t WHERE v IN ({', '.join(map(str, range(1_000)))})"
    for query in (f"SELECT t0.k FROM {source}.t AS t0 {joins}", long):
        assert hr.validate(query).mode is Mode.DIFFERENTIAL


def test_names_of_any_kind(hr: Headrace, source: str) -> None:
    table, columns = f"lake.{source}.{ODD}", "`select` INT, `a b` STRING, `d.o.t` INT, `quo``te` INT, `😀` STRING"
    hr.spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
    hr.spark.sql(f"INSERT INTO {table} VALUES (1, 'x', 2, 3, 'y')")
    query = (
        "SELECT `😀` AS `ключ 1`, `quo``te` AS `a``b`, sum(`my.alias 1`.`d.o.t`) AS `from`, count(*) AS `n n`"
        f" FROM {source}.{ODD} AS `my.alias 1` WHERE `select` < 9 GROUP BY `😀`, `quo``te`"
    )
    name = f"{source}.`Größe 😀`"
    assert hr.validate(query).mode is Mode.DIFFERENTIAL
    hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {table} VALUES (2, 'z', 5, 3, 'y'), (3, 'z', 5, 3, '😀')")
    result = hr.refresh(name)
    assert (result.mode, result.rows_inserted, result.rows_deleted) == (Mode.DIFFERENTIAL, 2, 1)
    assert hr.verify(name).ok
    hr.drop_stream_table(name)


@pytest.mark.parametrize(("alias", "missed"), [("", "{}.u"), ("AS u", "u")])
def test_a_table_that_is_not_found_in_the_text_is_refused(
    hr: Headrace, source: str, monkeypatch: pytest.MonkeyPatch, alias: str, missed: str
) -> None:
    """As if the reader had missed the second."""
    monkeypatch.setattr(define, "references", lambda text, **_: references(text)[:1])
    missed = missed.format(source)
    hr.sql(f"USE lake.{source}")
    with pytest.raises(HeadraceError, match="QUERY_READ_DIFFERENTLY") as caught:
        hr.create_stream_table(f"{source}.s", f"SELECT k FROM {source}.t {alias} WHERE k IN (SELECT k FROM {missed})")
    assert f"Spark reads {missed} " in caught.value.message
