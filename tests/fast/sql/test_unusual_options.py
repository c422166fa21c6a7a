"""Where the session has Spark read a text in another way than usual, the query is not maintained."""

from __future__ import annotations

import pytest

from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.semantics import (
    CTE_PRECEDENCE,
    ORDER_BY_ORDINAL,
    QUOTED_NAMES,
    RELATION_PRECEDENCE,
    SET_OPERATIONS_IN_ORDER,
)
from headrace.sql.reader.context import ViewText
from headrace.sql.reader.reader import read

CONCERNED = {
    RELATION_PRECEDENCE: "SELECT t.a FROM t, u ^RIGHT JOIN w ON w.c = u.b",
    SET_OPERATIONS_IN_ORDER: "SELECT a FROM t UNION SELECT b FROM u ^INTERSECT SELECT c FROM w",
    QUOTED_NAMES: 'SELECT a, ^"a" AS x FROM t',
    CTE_PRECEDENCE: "^WITH x AS (SELECT 1 AS b) SELECT a, (WITH x AS (SELECT 2 AS b) SELECT b FROM x) AS b FROM t",
    ORDER_BY_ORDINAL: "SELECT a FROM t ^ORDER BY 1 LIMIT 3",
}
COLUMNS = {"t": "a", "u": "b", "w": "c"}


def resolve(parts: tuple[str, ...]) -> TableName:
    return TableName(LAKE, ("shop",), parts[-1])


def schema(name: TableName) -> tuple[Column, ...] | ViewText:
    if name.table == "v":
        return ViewText(CONCERNED[SET_OPERATIONS_IN_ORDER].replace("^", ""), resolve)
    return (Column(COLUMNS[name.table], "int"),)


def refused(query: str, *unusual: str) -> list[tuple[str, int | None]]:
    found = read(query, resolve=resolve, schema=schema, unusual=frozenset(unusual)).refusals
    assert all(refusal.hint for refusal in found)
    return [(refusal.construct, refusal.place and refusal.place.column) for refusal in found]


@pytest.mark.parametrize("option", CONCERNED)
def test_what_is_read_otherwise_is_refused(option: str) -> None:
    query = CONCERNED[option]
    place = query.index("^") + 1
    assert refused(query.replace("^", ""), option) == [(option, place)]
    assert refused(query.replace("^", "")) == []


@pytest.mark.parametrize(
    ("option", "query"),
    [
        (RELATION_PRECEDENCE, "SELECT t.a FROM t JOIN u ON a = b, w"),
        (RELATION_PRECEDENCE, "SELECT t.a FROM t, (u RIGHT JOIN w ON w.c = u.b)"),
        (SET_OPERATIONS_IN_ORDER, "SELECT a FROM t INTERSECT SELECT b FROM u UNION SELECT c FROM w"),
        (SET_OPERATIONS_IN_ORDER, "SELECT a FROM t UNION (SELECT b FROM u INTERSECT SELECT c FROM w)"),
        (QUOTED_NAMES, "SELECT a, 'a' AS x FROM t"),
        (CTE_PRECEDENCE, "WITH x AS (SELECT 1 AS b) SELECT b FROM x"),
        (ORDER_BY_ORDINAL, "SELECT a FROM t GROUP BY 1"),
        (ORDER_BY_ORDINAL, "SELECT a FROM t ORDER BY a, a + 1"),
        (ORDER_BY_ORDINAL, "SELECT a, lag(a, 1) OVER (ORDER BY a) AS b, 2 AS c FROM t"),
    ],
)
def test_other_texts_stay(option: str, query: str) -> None:
    assert refused(query, option) == []


@pytest.mark.parametrize("order", ["1", "a, 1", "f(a, 1), (1)", "a DESC, -1"])
def test_numbers_of_columns_are_found(order: str) -> None:
    assert refused(f"SELECT a FROM t ORDER BY {order}", ORDER_BY_ORDINAL)[0] == (ORDER_BY_ORDINAL, 17)


def test_ties_are_not_ordered_by_numbers_that_mean_no_columns() -> None:
    found = {
        option: read("SELECT a FROM t LIMIT 3", resolve=resolve, schema=schema, unusual=frozenset({option})).orders
        for option in (ORDER_BY_ORDINAL, QUOTED_NAMES)
    }
    assert {option: len(orders) for option, orders in found.items()} == {ORDER_BY_ORDINAL: 0, QUOTED_NAMES: 1}


def test_views_are_looked_at() -> None:
    assert refused("SELECT a FROM v", SET_OPERATIONS_IN_ORDER) == [(SET_OPERATIONS_IN_ORDER, 15)]
