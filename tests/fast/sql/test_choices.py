"""Aggregates that choose among rows, or order them, are maintained only where that leaves nothing to choose."""

from __future__ import annotations

import pytest
from kit.duck import DuckExecutor

from headrace.algebra.properties.keys import Uniqueness
from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.lower import lower
from headrace.sql.reader.functions.order_dependence import unsettled
from headrace.sql.reader.reader import read

TYPES = {"id": "int", "k": "string", "v": "int", "x": "double", "big": "bigint", "wide": "decimal(30,2)"}
COLUMNS = tuple(Column(name, type_) for name, type_ in TYPES.items())
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
    refusals = unsettled(reading.tree, types_of, Uniqueness({}, {}, numbered=True).keys)
    assert all(refusal.place and refusal.hint for refusal in refusals)
    return [refusal.construct for refusal in refusals]


@pytest.mark.parametrize(
    "query",
    [
        # compared by what is returned, too
        "SELECT max_by(k, struct(v, k)), min_by(v, named_struct('a', k, 'b', v)), max_by(v, v) FROM t GROUP BY id",
        "SELECT k, max_by(v, struct(id, v)), max_by(k, struct(v, k)) FROM t GROUP BY CUBE(k, v)",
        "SELECT max_by(v, s) FROM (SELECT id, v, struct(id, v) AS s FROM t) z GROUP BY id",
        # returned by group, or by a unique key of a grouped query
        "SELECT any_value(k), first(k, true), last(k) FILTER (WHERE v > 1) FROM t GROUP BY k, v",
        "SELECT max_by(n, k) FROM (SELECT id, k, sum(x) AS n FROM t GROUP BY id, k) z GROUP BY id",
        "SELECT first(n) FROM (SELECT id, k, sum(x) AS n FROM t GROUP BY id, k) z GROUP BY k, id",
        # ordered by what is listed
        "SELECT listagg(k) WITHIN GROUP (ORDER BY v DESC, k), listagg(DISTINCT k) WITHIN GROUP (ORDER BY k) FROM t",
        "SELECT string_agg(upper(k)) WITHIN GROUP (ORDER BY k) FROM (SELECT DISTINCT k, v FROM t) z GROUP BY v",
        # no type to run out of
        "SELECT try_sum(v), try_avg(v), try_sum(x), try_sum(CAST(big AS DECIMAL(20,0))) FROM t",
        "SELECT mode() WITHIN GROUP (ORDER BY k), percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t",
    ],
)
def test_maintained(query: str) -> None:
    assert found(query) == []


@pytest.mark.parametrize(
    ("query", "constructs"),
    [
        ("SELECT max_by(k, v), min_by(k, struct(v, id)) FROM t", ["max_by()", "min_by()"]),
        ("SELECT max_by(k, n) FROM (SELECT id, k, sum(v) AS n FROM t GROUP BY id, k) z GROUP BY id", ["max_by()"]),
        ("SELECT any_value(v), last(id) FROM t GROUP BY k", ["any_value()", "last()"]),
        ("SELECT k, max_by(v, id), first(k) FROM t GROUP BY ROLLUP(k, v)", ["max_by()", "first()"]),
        ("SELECT listagg(k) WITHIN GROUP (ORDER BY v) FROM t", ["listagg()"]),
        ("SELECT listagg(CAST(x AS STRING)) WITHIN GROUP (ORDER BY x) FROM t", ["listagg()"]),
        # 0.0 and -0.0 are equal and not the same
        ("SELECT max_by(x, struct(v, x)), any_value(x) FROM t GROUP BY x", ["max_by()", "any_value()"]),
        ("SELECT try_sum(big), try_avg(big), try_sum(wide) FROM t", ["try_sum()", "try_avg()", "try_sum()"]),
    ],
)
def test_refused(query: str, constructs: list[str]) -> None:
    assert found(query) == constructs
