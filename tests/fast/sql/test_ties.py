"""Window functions that go by position are maintained only where their ORDER BY settles every position that shows."""

from __future__ import annotations

import pytest
from kit.duck import DuckExecutor

from headrace.algebra.properties.keys import Uniqueness
from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.lower import lower
from headrace.sql.reader.functions.ties import loose_orders
from headrace.sql.reader.reader import read

COLUMNS = (Column("id", "int"), Column("k", "string"), Column("v", "int"), Column("x", "double"))
EXECUTOR = DuckExecutor()
EXECUTOR.define("t", COLUMNS, [])


def found(query: str) -> list[str]:
    def bind(leaf: Scan | Stored) -> str:
        assert isinstance(leaf, Scan)
        return leaf.source.table

    def types_of(relation: Relation) -> tuple[Column, ...]:
        return EXECUTOR.describe(lower(relation, bind))

    reading = read(query, resolve=lambda p: TableName(LAKE, ("shop",), p[-1]), schema=lambda name: COLUMNS)
    assert reading.tree is not None, reading.refusals
    keys = Uniqueness({}, {}, numbered=True).keys
    return [loose.refusal.construct.split("(")[0] for loose in loose_orders(reading.tree, types_of, keys)]


@pytest.mark.parametrize(
    "query",
    [
        # functions of peers
        "SELECT id, rank() OVER (PARTITION BY k ORDER BY v), sum(x) OVER (ORDER BY v), avg(v) OVER () FROM t",
        "SELECT x, count(*) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
        "SELECT x, sum(v) OVER (ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t",
        # nothing is read but what ORDER BY and PARTITION BY name
        "SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) FROM t",
        "SELECT k, v + 1, upper(k), lag(v) OVER (PARTITION BY k ORDER BY v DESC) FROM t WHERE x > 1",
        "SELECT row_number() OVER (ORDER BY v), sum(v) OVER (ORDER BY v ROWS 1 PRECEDING) FROM t",
        "SELECT v, row_number() OVER (ORDER BY v), rank() OVER (ORDER BY v DESC) FROM t",
        # unique after grouping, whatever else is read
        "SELECT k, sum(x), row_number() OVER (ORDER BY sum(x), k) FROM t GROUP BY k",
        "SELECT x, row_number() OVER (ORDER BY x), row_number() OVER (ORDER BY count(*), x) FROM t GROUP BY x",
        "SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t) z WHERE n <= 3",
        # numbered once, unique by that
        "SELECT k, n, lag(v) OVER (PARTITION BY k ORDER BY n) AS p FROM"
        " (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t) z",
        # the cut of a LIMIT
        "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 3",
        "SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY s, k LIMIT 3 OFFSET 2",
        "SELECT z.k FROM (SELECT k, v, x FROM t ORDER BY v, k LIMIT 3) z",
        # no LIMIT chooses from one row
        "SELECT a.s, b.n FROM (SELECT sum(v) AS s FROM t) a, (SELECT count(*) AS n FROM t WHERE v > 1) b LIMIT 100",
        "SELECT k, (SELECT max(v) FROM t LIMIT 1) AS m FROM t",
    ],
)
def test_maintained(query: str) -> None:
    assert found(query) == []


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("SELECT id, row_number() OVER (PARTITION BY k ORDER BY v) FROM t", ["row_number"]),
        ("SELECT k, first_value(id) OVER (PARTITION BY k ORDER BY v) FROM t", ["first_value"]),
        ("SELECT v, x, sum(x) OVER (ORDER BY v ROWS 1 PRECEDING) FROM t", ["sum"]),
        # 0.0 and -0.0 are equal and not the same
        ("SELECT x, row_number() OVER (ORDER BY x) FROM t", ["row_number"]),
        # two orders: which number goes with which is open for equal rows
        (
            "SELECT v, row_number() OVER (ORDER BY v) a, row_number() OVER (ORDER BY v DESC) b FROM t",
            ["row_number"] * 2,
        ),
        (
            "SELECT k, v, lag(v) OVER (ORDER BY k, v) a, ntile(2) OVER (PARTITION BY k ORDER BY v) b FROM t",
            ["ntile", "lag"],
        ),
        # a number given to equal rows is another column to tell apart
        (
            "SELECT k, v, n, row_number() OVER (PARTITION BY k ORDER BY v) AS m FROM"
            " (SELECT k, v, row_number() OVER (ORDER BY k, v) AS n FROM t) z",
            ["row_number"],
        ),
        ("SELECT k, v, row_number() OVER (ORDER BY k || 'x', v) FROM t", ["row_number"]),
        ("SELECT k, v FROM t ORDER BY v LIMIT 3", ["LIMIT"]),
        ("SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s OFFSET 3", ["OFFSET"]),
        ("SELECT k FROM t LIMIT 3", ["LIMIT"]),
        ("SELECT 1 AS one FROM t LIMIT 3", ["LIMIT"]),
        ("SELECT sum(v) FROM t GROUP BY k OFFSET 1", ["OFFSET"]),
        ("SELECT k, (SELECT v FROM t AS u WHERE u.k = t.k LIMIT 1) AS any FROM t", ["LIMIT"]),
        (
            "SELECT t.k, l.id FROM t, LATERAL (SELECT v, id FROM t AS u WHERE u.k = t.k ORDER BY v LIMIT 1) AS l",
            ["LIMIT"],
        ),
    ],
)
def test_refused(query: str, refused: list[str]) -> None:
    assert found(query) == refused
