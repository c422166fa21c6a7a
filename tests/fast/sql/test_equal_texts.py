"""Texts that are equal under a collation, and not the same: which of them comes out must not show."""

from __future__ import annotations

import pytest
from kit.duck import DuckExecutor

from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.lower import lower
from headrace.sql.reader.functions.equal_texts import chosen_texts
from headrace.sql.reader.reader import read

COLUMNS = (Column("id", "int"), Column("k", "int"), Column("s", "string"))
EXECUTOR = DuckExecutor()
EXECUTOR.define("t", COLUMNS, [])

C = "(SELECT id, k, s COLLATE NOCASE AS c FROM t)"


def types_of(relation: Relation) -> tuple[Column, ...]:
    """DuckDB's types do not tell collations: here texts called c, or after the function that gives them, have one."""

    def bind(leaf: Scan | Stored) -> str:
        assert isinstance(leaf, Scan)
        return leaf.source.table

    found = EXECUTOR.describe(lower(relation, bind))  # lists are of varchar
    return tuple(
        Column(c.name, c.type.replace("varchar", "string").replace("string", f"string{_collation(c.name)}"))
        for c in found
    )


def _collation(name: str) -> str:
    return " collate UTF8_LCASE" if name.startswith(("c", "max", "min", "sort_array")) else ""


def found(query: str) -> list[str]:
    text = query.replace("{c}", C)
    reading = read(text, resolve=lambda p: TableName(LAKE, ("shop",), p[-1]), schema=lambda name: COLUMNS)
    assert reading.tree is not None, reading.refusals
    refusals = chosen_texts(reading.tree, types_of)
    assert all(refusal.hint for refusal in refusals)
    return [refusal.construct for refusal in refusals]


@pytest.mark.parametrize(
    "query",
    [
        # not shown, or compared only
        "SELECT n FROM (SELECT c, count(*) AS n FROM {c} GROUP BY c) WHERE c = 'A' AND n > abs(k)".replace(
            "abs(k)", "1"
        ),
        "SELECT count(*) FROM (SELECT DISTINCT c FROM {c})",
        "SELECT k, count(DISTINCT c), count(c) FROM {c} GROUP BY k",
        "SELECT k, m > 'a' AND NOT m IS NULL AS b FROM (SELECT k, max(c) AS m FROM {c} GROUP BY k)",
        "SELECT a.id FROM {c} AS a JOIN (SELECT k, max(c) AS cm FROM {c} GROUP BY k) AS b ON a.k = b.k AND a.c = cm",
        "SELECT count(*) FROM (SELECT cm FROM (SELECT k, max(c) AS cm FROM {c} GROUP BY k) GROUP BY cm)",
        "SELECT id, max(c) OVER (PARTITION BY k) = c AS last FROM {c}",
        "SELECT id FROM {c} WHERE c IN (SELECT min(c) FROM {c} GROUP BY k)",
        "SELECT k FROM (SELECT k, max(c) AS cm FROM {c} GROUP BY k) WHERE cm IN ('a', 'B') AND cm BETWEEN 'a' AND 'x'",
        "SELECT k, cm NOT IN ('a', 'B') AS b, e FROM (SELECT k, max(c) AS cm FROM {c} GROUP BY k) "
        "LATERAL VIEW explode(array(k)) AS e",
        # a result that is compared by its collation
        "SELECT c, max(c) AS cm FROM {c} GROUP BY c",
        # no choice is made
        "SELECT k, c || 'x' AS x FROM {c} WHERE lower(c) = 'a'",
        "SELECT max(x) FROM (SELECT lower(c) AS x FROM {c})",
        "SELECT lower(s), count(*) FROM t GROUP BY lower(s)",
        "SELECT upper(c) FROM (SELECT c FROM {c} UNION ALL SELECT c FROM {c})",
    ],
)
def test_maintained(query: str) -> None:
    assert found(query) == []


@pytest.mark.parametrize(
    ("query", "constructs"),
    [
        ("SELECT k, hex(cm) AS h FROM (SELECT k, max(c) AS cm FROM {c} GROUP BY k)", ["max()"]),
        ("SELECT hex(c) AS h FROM (SELECT DISTINCT c FROM {c})", ["GROUP BY"]),
        ("SELECT c || 'x' AS x FROM (SELECT c, count(*) AS n FROM {c} GROUP BY c)", ["GROUP BY"]),
        ("SELECT a.id FROM t AS a JOIN (SELECT k, min(c) AS cm FROM {c} GROUP BY k) b ON a.s = upper(cm)", ["min()"]),
        ("SELECT id, hex(max(c) OVER (PARTITION BY k)) AS h FROM {c}", ["max()"]),
        ("SELECT id FROM {c} AS a WHERE hex(a.c) = (SELECT hex(max(b.c)) FROM {c} b WHERE b.k = a.k)", ["max()"]),
        ("SELECT hex(c) AS h FROM (SELECT c FROM {c} EXCEPT SELECT c FROM {c} WHERE id = 1)", ["GROUP BY"]),
        ("SELECT sum(length(cm)) AS h FROM (SELECT k, max(c) AS cm FROM {c} GROUP BY k)", ["max()"]),
        ("SELECT h FROM (SELECT hex(cm) AS h FROM (SELECT max(c) AS cm FROM {c} GROUP BY k)) GROUP BY h", ["max()"]),
        ("SELECT k, (cm, cm IN ('a', 'b')) AS x FROM (SELECT k, max(c) AS cm FROM {c} GROUP BY k)", ["max()"]),
        (
            "SELECT k FROM (SELECT k, max(c) AS cm FROM {c} GROUP BY k) LATERAL VIEW explode(array(cm)) AS e",
            ["max()"],
        ),
        ("SELECT array_join(cs, '') FROM (SELECT sort_array(collect_list(c)) AS cs FROM {c})", ["collect_list()"]),
    ],
)
def test_refused(query: str, constructs: list[str]) -> None:
    assert found(query) == constructs
