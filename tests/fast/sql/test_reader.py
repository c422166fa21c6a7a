"""What queries are read as, and which are refused where."""

from __future__ import annotations

import pytest
from fast.sql.reading_cases import cases, resolve, schema

from headrace.algebra.relations import Project
from headrace.algebra.schema import Column
from headrace.algebra.text import text
from headrace.errors import Place, UserError
from headrace.names import LAKE, TableName
from headrace.reasons import FullReason
from headrace.sql.reader.reader import Reading, read


def reading(query: str, *, case_sensitive: bool = False) -> Reading:
    return read(query, resolve=resolve, schema=schema, case_sensitive=case_sensitive)


@pytest.mark.parametrize(("query", "expected"), cases("reading.spec"))
def test_what_is_read(query: str, expected: str) -> None:
    found = reading(query)
    assert found.refusals == ()
    assert found.tree is not None
    assert text(found.tree) == expected


@pytest.mark.parametrize(("query", "expected"), cases("refusals.spec"))
def test_what_is_refused(query: str, expected: str) -> None:
    found = reading(query)
    assert found.tree is None
    lines = [f"{r.place.line}:{r.place.column} {r.code} {r.construct}" if r.place else "" for r in found.refusals]
    assert "\n".join(lines) == expected


def test_a_refusal_says_what_to_do() -> None:
    (refusal,) = reading("SELECT a\nFROM t\n  LIMIT 3 + 1").refusals
    assert refusal.code is FullReason.OPERATOR_NOT_MAINTAINED
    assert refusal.place == Place(3, 3, "  LIMIT 3 + 1")
    assert refusal.place.render() == "3 |   LIMIT 3 + 1\n      ^"
    assert refusal.hint


def test_a_view_says_which_one() -> None:
    (refusal,) = reading("SELECT a FROM random").refusals
    assert refusal.message.startswith("In view shop.random: rand()")


def test_sources_are_found_behind_views_and_refusals() -> None:
    found = reading(
        "WITH x AS (SELECT * FROM customers) SELECT a FROM big, t WHERE EXISTS (SELECT 1 FROM x) LIMIT 1 + 1"
    )
    assert found.tree is None
    assert [str(name) for name in found.sources] == ["shop.customers", "shop.orders", "shop.t"]


def test_names_come_from_spark() -> None:
    def describe(query: str) -> tuple[Column, ...]:
        return (Column("region", "string"), Column("sum(amount)", "decimal(22,2)"))

    found = read(
        "SELECT region, sum(amount) FROM orders GROUP BY region", resolve=resolve, schema=schema, describe=describe
    )
    assert found.tree is not None
    assert found.columns == found.tree.columns == ("region", "sum(amount)")


@pytest.mark.parametrize("names", [("region",), ("other", "total")])
def test_a_reading_that_spark_contradicts_is_refused(names: tuple[str, ...]) -> None:
    found = read(
        "SELECT region, amount AS total FROM orders",
        resolve=resolve,
        schema=schema,
        describe=lambda _: tuple(Column(name, "string") for name in names),
    )
    assert found.tree is None
    assert "Spark names the columns" in found.refusals[0].message


@pytest.mark.parametrize("query", ["SELECT a, b AS A FROM t", "SELECT * FROM t x, t y"])
def test_two_columns_of_one_name(query: str) -> None:
    with pytest.raises(UserError) as error:
        reading(query)
    assert error.value.code == "DUPLICATE_COLUMN"


def test_a_table_that_does_not_exist_is_shown_in_its_place() -> None:
    with pytest.raises(UserError) as error:
        reading("SELECT 1\nFROM t JOIN nowhere")
    assert error.value.code == "TABLE_NOT_FOUND"
    assert error.value.place == Place(2, 13, "FROM t JOIN nowhere")


@pytest.mark.parametrize(("query", "closing"), [("SELECT (a FROM t", ")"), ("SELECT c[1 FROM (t)", "]")])
def test_a_bracket_that_is_not_closed_is_shown_where_it_opens(query: str, closing: str) -> None:
    with pytest.raises(UserError) as error:
        reading(query)
    assert error.value.message == f"A bracket opens here that no {closing} closes."
    assert error.value.place == Place(1, 8 if closing == ")" else 9, query)


def test_what_other_dialects_have_gets_a_hint() -> None:
    with pytest.raises(UserError) as error:
        reading("SELECT a FROM t QUALIFY rank() OVER (ORDER BY a) = 1")
    assert error.value.code == "SYNTAX_ERROR"
    assert "WHERE" in str(error.value.hint)


@pytest.mark.parametrize("comparison", ["= ANY", "<> ALL", "< some"])
def test_a_comparison_with_all_of_a_query_gets_a_hint(comparison: str) -> None:
    query = f"SELECT a FROM t WHERE b {comparison} (SELECT b FROM t) AND c LIKE ANY ('x', 'y')"
    with pytest.raises(UserError) as error:
        reading(query)
    assert error.value.code == "SYNTAX_ERROR"
    assert error.value.place == Place(1, query.index(comparison) + comparison.index(" ") + 2, query)
    assert "NOT IN" in str(error.value.hint)
    reading(query.replace(f"{comparison} (SELECT b FROM t)", "= any(array(true))"))


def test_a_view_that_reads_itself() -> None:
    with pytest.raises(UserError) as error:
        reading("SELECT * FROM circle")
    assert error.value.code == "CYCLE"


def test_case_matters_only_when_asked_for() -> None:
    assert reading("SELECT T.A FROM shop.t").tree is not None
    assert reading("SELECT T.A FROM shop.t", case_sensitive=True).tree is None
    assert reading("WITH X AS (SELECT a FROM t) SELECT * FROM x").sources == (TableName(LAKE, ("shop",), "t"),)


def test_variables_hide_columns_of_their_case_only_when_asked_for() -> None:
    query = "SELECT transform(array(b), A -> a) AS x FROM t"
    used = {sensitive: _columns_of_item(reading(query, case_sensitive=sensitive)) for sensitive in (False, True)}
    assert used == {False: {"t.b"}, True: {"t.a", "t.b"}}


def _columns_of_item(found: Reading) -> frozenset[str]:
    assert isinstance(found.tree, Project)
    return found.tree.items[0][1].columns


def test_output_names_that_differ_by_case_only() -> None:
    found = reading("SELECT a, b AS A FROM t", case_sensitive=True)
    assert found.tree is None
