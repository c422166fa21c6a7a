"""Columns that are called as keywords are: Spark takes them without quotes wherever an operand stands."""

from __future__ import annotations

import pytest

from headrace.algebra.schema import Column
from headrace.algebra.text import text
from headrace.names import LAKE, TableName
from headrace.sql.reader.reader import read
from headrace.sql.reader.syntax.tokens import words
from headrace.sql.references import references

WORDS = words(
    """
    AND BETWEEN BY CASE DIV ELSE ESCAPE EXCEPT FROM HAVING ILIKE IN INTERSECT IS JOIN LIKE LIMIT MINUS OFFSET ON OR
    REGEXP RLIKE SETMINUS THEN UNION USING WHEN WHERE WITH
    """
)
CASE = words("CASE ELSE THEN WHEN")

QUERIES = (
    "SELECT k, {} FROM s.u",
    "SELECT {}, k FROM s.u",
    "SELECT DISTINCT k, {} FROM s.u",
    "SELECT k FROM s.u ORDER BY k, {} LIMIT 3",
    "SELECT k FROM s.u ORDER BY k, {} DESC NULLS LAST LIMIT 3 OFFSET 1",
    "SELECT k FROM s.t WHERE k IN (SELECT {} FROM s.u)",
    "SELECT k FROM s.t WHERE k NOT IN (SELECT max({}) FROM s.u GROUP BY k)",
    "SELECT t.k FROM s.t JOIN s.u ON t.k = u.k AND t.c = {} JOIN s.v ON v.k = u.k",
    "SELECT k FROM s.u WHERE k < {} UNION ALL SELECT k FROM s.v",
    "SELECT k FROM s.u WHERE k = -{} AND k IN (SELECT k FROM s.v)",
    "SELECT k FROM s.u WHERE {} BETWEEN 1 AND 3 GROUP BY k",
    "SELECT k FROM s.u WHERE NOT {} = 1 OR c NOT IN (1, {})",
    "SELECT k FROM s.u WHERE k IS NOT DISTINCT FROM {} LIMIT 2",
    "SELECT count(*) AS n FROM s.u GROUP BY k, {} HAVING count(*) > 1",
    "SELECT CASE WHEN k = 1 THEN {} ELSE k END AS x FROM s.u WHERE k IN (SELECT k FROM s.v)",
    "SELECT k + {} * 2 AS x, c FROM s.u WHERE k NOT BETWEEN 1 AND {} ORDER BY x LIMIT 1",
    "SELECT count(*) FILTER (WHERE {} > 1) AS n FROM s.u",
)


def resolve(parts: tuple[str, ...]) -> TableName:
    return TableName(LAKE, ("s",), parts[-1])


@pytest.mark.parametrize("query", QUERIES)
def test_a_keyword_is_a_column_where_an_operand_stands(query: str) -> None:
    for word in sorted(WORDS - CASE if "CASE" in query else WORDS):
        columns = tuple(Column(name, "int") for name in ("k", "c", word.lower()))
        bare, quoted = query.replace("{}", word.lower()), query.replace("{}", f"`{word.lower()}`")
        tables = [each.parts for each in references(bare)]
        assert tables == [each.parts for each in references(quoted)], bare
        found, expected = (
            read(each, resolve=resolve, schema=lambda table, of=columns: of if table.table == "u" else of[:2])
            for each in (bare, quoted)
        )
        assert expected.tree is not None, [each.message for each in expected.refusals]
        assert found.tree is not None, (bare, [each.message for each in found.refusals])
        assert text(found.tree).replace("`", "") == text(expected.tree).replace("`", ""), bare


@pytest.mark.parametrize("word", ["case", "distinct", "select"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, {} FROM s.u",
        "SELECT k FROM s.u ORDER BY {}, k LIMIT 3",
        "SELECT k FROM s.u ORDER BY k, {} LIMIT 3 OFFSET 1",
        "SELECT k FROM s.u WHERE k = {} UNION ALL SELECT k FROM s.v",
        "SELECT t.k FROM s.t LEFT JOIN s.u ON t.k = {} LEFT JOIN s.v ON v.k = t.k",
        "SELECT max({}) AS m, CASE WHEN max({}) = 1 THEN 2 WHEN true THEN 3 END AS n FROM s.u",
    ],
)
def test_what_begins_an_operand_is_a_column_where_none_follows(word: str, query: str) -> None:
    found, expected = (_tree(query.replace("{}", each), word) for each in (word, f"`{word}`"))
    assert found.replace("`", "") == expected.replace("`", "")


def _tree(query: str, column: str) -> str:
    columns = (Column("k", "int"), Column(column, "int"))
    found = read(query, resolve=resolve, schema=lambda table: columns if table.table == "u" else columns[:1])
    assert found.tree is not None, (query, [each.message for each in found.refusals])
    return text(found.tree)


@pytest.mark.parametrize(
    "value",
    [
        "then",
        "u.end",
        "u.then + 1",
        "CASE WHEN k = 1 THEN 1 END",
        "1 + CASE k WHEN 1 THEN 2 END",
        "coalesce(k, 1)",
        "(k)",
        "-k",
    ],
)
def test_a_case_stays_one_before_any_value(value: str) -> None:
    columns = tuple(Column(name, "int") for name in ("k", "end", "then"))
    query = f"SELECT CASE {value} WHEN 1 THEN k WHEN 2 THEN 3 ELSE 4 END AS x FROM s.u"
    found = read(query, resolve=resolve, schema=lambda _: columns)
    assert found.tree is not None, [each.message for each in found.refusals]


@pytest.mark.parametrize("cut", ["LIMIT 3", "OFFSET 2", "LIMIT (3)"])
@pytest.mark.parametrize("clause", ["ORDER BY k, not", "ORDER BY not", "SORT BY not"])
def test_no_limit_is_lost_behind_a_column_called_not(clause: str, cut: str) -> None:
    columns = (Column("k", "int"), Column("not", "int"))
    for query in (f"SELECT k FROM s.u {clause} {cut}", f"SELECT sum(k) AS n FROM (SELECT k FROM s.u {clause} {cut}) x"):
        assert read(query, resolve=resolve, schema=lambda _: columns).tree is None, query


@pytest.mark.parametrize("order", ["limit", "offset DESC", "limit, k", "k, (SELECT max(k) FROM s.v LIMIT 1)"])
def test_a_column_called_as_a_cut_is_none(order: str) -> None:
    columns = tuple(Column(name, "int") for name in ("k", "limit", "offset"))
    found = read(f"SELECT k FROM s.u ORDER BY {order}", resolve=resolve, schema=lambda _: columns)
    assert found.tree is not None, [each.message for each in found.refusals]


TYPES = [
    "array<bigint>",
    "map<string,array<decimal(10,2)>>",
    "struct<a:int,b:array<int>>",
    "struct<a:int COMMENT 'x > y', b:array<int> NOT NULL COMMENT \"z\">",
]


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_ends_an_operand(type_: str) -> None:
    assert [each.parts for each in references(f"SELECT k, x::{type_} FROM s.u")] == [("s", "u")]
    both = f"SELECT k FROM s.u WHERE y = x::{type_} UNION ALL SELECT k FROM s.v"
    assert [each.parts for each in references(both)] == [("s", "u"), ("s", "v")]


def test_a_comparison_ends_none() -> None:
    assert [each.parts for each in references("SELECT k > limit FROM s.u")] == [("s", "u")]
    assert [each.parts for each in references("SELECT array < k, k > offset FROM s.u")] == [("s", "u")]


@pytest.mark.parametrize("operator", ["!", "-", "+", "~", "NOT "])
def test_an_operator_may_begin_a_subquery(operator: str) -> None:
    query = f"SELECT k IN (SELECT {operator}c FROM s.u) AS x FROM s.t"
    assert {each.parts for each in references(query)} == {("s", "u"), ("s", "t")}
