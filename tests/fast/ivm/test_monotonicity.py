"""Which queries only grow, and which keep copies; on queries as users write them."""

from __future__ import annotations

import pytest
from kit.duck import DuckExecutor
from kit.maintained import table_name

from headrace.algebra.relations import Relation
from headrace.algebra.schema import Column
from headrace.compiler.view_compiler import ViewCompiler
from headrace.ivm.recursion.monotonicity import copied, shrinking

EXECUTOR = DuckExecutor()
TABLES = {"m": ("k", "v"), "o": ("k", "v"), "x": ("k", "w")}
MOVING = frozenset({table_name("m"), table_name("o")})
for _name, _columns in TABLES.items():
    EXECUTOR.define(_name, [Column(c, "int") for c in _columns], [])


def tree(query: str) -> Relation:
    def describe(sql: str) -> tuple[Column, ...]:
        for name in TABLES:
            sql = sql.replace(table_name(name).sql, f"`{name}`")
        return EXECUTOR.describe(sql)

    view = ViewCompiler(
        resolve=lambda parts: table_name(parts[-1]),
        schema=lambda name: tuple(Column(c, "int") for c in TABLES[name.table]),
        describe=describe,
    ).compile(query)
    assert not view.refusals, view.refusals
    assert view.tree is not None
    return view.tree


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k + 1 AS k FROM m WHERE v > 3",
        "SELECT m.k, o.v FROM m JOIN o ON m.k = o.k CROSS JOIN x",
        "SELECT a.k, b.v FROM m AS a JOIN m AS b ON a.v = b.k",
        "SELECT k FROM m UNION ALL SELECT k FROM o UNION SELECT k FROM x",
        "SELECT DISTINCT k FROM m",
        "SELECT k FROM m WHERE EXISTS (SELECT 1 FROM o WHERE o.k = m.k)",
        "SELECT k FROM x WHERE k IN (SELECT k FROM m)",
        "SELECT k FROM m WHERE NOT EXISTS (SELECT 1 FROM x WHERE x.k = m.k)",
        "SELECT m.k, x.w FROM m LEFT JOIN x ON m.k = x.k",
        "SELECT m.k, t.n FROM m JOIN (SELECT k, count(*) AS n FROM x GROUP BY k) AS t ON t.k = m.k",
    ],
)
def test_what_grows(query: str) -> None:
    assert shrinking(tree(query), MOVING) is None


@pytest.mark.parametrize(
    ("query", "construct", "reads"),
    [
        ("SELECT k, count(*) AS n FROM m GROUP BY k", "the aggregate count(*)", "m"),
        ("SELECT k, max(v) AS v FROM m GROUP BY k", "the aggregate max(v)", "m"),
        ("SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM m", "the window function", "m"),
        ("SELECT k, v FROM o ORDER BY k, v LIMIT 3", "LIMIT or OFFSET", "o"),
        ("SELECT k FROM x WHERE NOT EXISTS (SELECT 1 FROM m WHERE m.k = x.k)", "NOT EXISTS, NOT IN or ANTI JOIN", "m"),
        ("SELECT k FROM x WHERE k NOT IN (SELECT k FROM m)", "NOT EXISTS, NOT IN or ANTI JOIN", "m"),
        ("SELECT x.k, m.v FROM x LEFT JOIN m ON m.k = x.k", "the optional side of an outer join", "m"),
        ("SELECT x.k, m.v FROM m FULL JOIN x ON m.k = x.k", "FULL JOIN", "m"),
        ("SELECT k FROM x EXCEPT SELECT k FROM m", "INTERSECT or EXCEPT", "m"),
        ("SELECT k FROM m INTERSECT ALL SELECT k FROM x", "INTERSECT ALL or EXCEPT ALL", "m"),
        ("SELECT k FROM o UNION SELECT t.n FROM (SELECT count(*) AS n FROM m) AS t", "the aggregate count(*)", "m"),
    ],
)
def test_what_may_shrink(query: str, construct: str, reads: str) -> None:
    found = shrinking(tree(query), MOVING)
    assert found is not None
    assert found.construct.startswith(construct)
    assert [source.table for source in found.reads] == [reads]


def test_what_may_shrink_is_found_in_the_text() -> None:
    found = shrinking(tree("SELECT k,\n  max(v) AS v FROM m GROUP BY k"), MOVING)
    assert found is not None
    assert found.place is not None
    assert (found.place.line, found.place.column) == (2, 3)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT m.k FROM m JOIN o ON m.k = o.k", "mo"),
        ("SELECT k FROM m UNION ALL SELECT k FROM x", "m"),
        ("SELECT k FROM m UNION SELECT k FROM o", ""),
        ("SELECT DISTINCT k FROM m UNION ALL SELECT k FROM o", "o"),
        ("SELECT k FROM m WHERE EXISTS (SELECT 1 FROM o WHERE o.k = m.k)", "m"),
        ("SELECT k FROM x", ""),
    ],
)
def test_whose_copies_are_kept(query: str, expected: str) -> None:
    assert "".join(sorted(source.table for source in copied(tree(query), MOVING))) == expected
