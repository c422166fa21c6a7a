"""Names of select items without an alias, which decide what ORDER BY, subqueries and NATURAL joins mean."""

from __future__ import annotations

import pytest

from headrace.algebra.schema import Column
from headrace.algebra.text import text
from headrace.names import LAKE, TableName
from headrace.sql.reader.reader import read

TABLES = {
    "t": (
        Column("k", "int"),
        Column("a", "int"),
        Column("b", "int"),
        Column("ts", "timestamp"),
        Column("st", "struct<a:int>"),
        Column("v", "variant"),
    ),
    "u": (Column("k", "int"), Column("a", "int"), Column("b", "int"), Column("st", "struct<b:int>")),
}


def tree(query: str) -> str:
    found = read(query, resolve=lambda parts: TableName(LAKE, ("s",), parts[-1]), schema=lambda n: TABLES[n.table])
    assert found.tree is not None, [each.message for each in found.refusals]
    return text(found.tree)


CASTS = ["CAST(a AS STRING)", "try_cast(t.a AS bigint)", "a::string", "CAST((a) AS DECIMAL(10,2))", "string(t.a)"]


@pytest.mark.parametrize("item", CASTS)
def test_a_cast_is_called_as_its_column(item: str) -> None:
    assert tree(f"SELECT k, {item} FROM t ORDER BY a DESC, k LIMIT 2") == tree(
        f"SELECT k, {item} AS a FROM t ORDER BY a DESC, k LIMIT 2"
    )


FIELDS = [
    "(st).a",
    "((t.st)).a",
    "'a'",
    "r'a'",
    "'' 'a'",
    "v:a",
    "(v):a",
    "t.v:x.a[0]",
    "v:['a']",
    "CAST(v:a AS INT)",
    "v:a::int",
]


@pytest.mark.parametrize("item", FIELDS)
def test_fields_paths_and_texts_have_names(item: str) -> None:
    for order in ("a DESC, k", "k, a"):
        assert tree(f"SELECT k, {item} FROM t ORDER BY {order} LIMIT 2") == tree(
            f"SELECT k, {item} AS a FROM t ORDER BY {order} LIMIT 2"
        )
    assert tree(f"SELECT q.a FROM (SELECT k, {item} FROM t) q") == tree(
        f"SELECT q.a FROM (SELECT k, {item} AS a FROM t) q"
    )


@pytest.mark.parametrize("item", ["(a)", "((u.a))", "CAST(a AS STRING)", "u.a::array<int>"])
def test_a_subquery_has_the_column(item: str) -> None:
    query = "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM (SELECT k, {} FROM u) q WHERE q.k = t.k AND a = '1')"
    natural = "SELECT t.k FROM t NATURAL JOIN (SELECT k, {} FROM u) q"
    lateral = "SELECT x.k FROM t, LATERAL (SELECT k, {} FROM u WHERE u.k = t.k) x WHERE x.a > 1"
    for each in (query, natural, lateral):
        assert tree(each.format(item)) == tree(each.format(f"{item} AS a")), each


@pytest.mark.parametrize(
    "item",
    [
        "CAST(st.a AS INT)",
        "CAST((st).a AS INT)",
        "st['a']",
        "upper('a')",
        "CAST('a' AS STRING)",
        "CAST(a + 1 AS INT)",
        "a::int::string",
        "CAST(a AS INT) + CAST(b AS INT)",
        "date(ts) + (1)",
    ],
)
def test_other_expressions_are_called_by_their_text(item: str) -> None:
    assert tree(f"SELECT k, {item} FROM t ORDER BY a DESC, k LIMIT 2") == tree(
        f"SELECT k, {item} AS other FROM t ORDER BY a DESC, k LIMIT 2"
    ).replace("other", "col_2")


def test_a_number_in_brackets_is_a_column_by_its_place() -> None:
    assert tree("SELECT k, a FROM t ORDER BY (2) DESC, ((1)) LIMIT 2") == tree(
        "SELECT k, a FROM t ORDER BY 2 DESC, 1 LIMIT 2"
    )
