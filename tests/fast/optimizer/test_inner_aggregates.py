"""Which aggregates below other operators are kept: those that would be computed over all rows, before and after."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.schema import Column
from headrace.optimizer.auxiliary_views.companion_parts import PART

EXECUTOR = DuckExecutor()
NUMBERS = tuple(Column(name, "int") for name in ("k", "a"))
TABLES = (Table("t", NUMBERS), Table("u", NUMBERS), Table("f", (Column("k", "int"), Column("x", "double"))))
LEFT = "t LEFT JOIN u ON u.k = t.k"
GROUPS = "(SELECT k, count(*) AS n FROM u GROUP BY k) g"
WITH = "WITH g AS (SELECT k, sum(a) AS n FROM u GROUP BY k) "


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT k FROM t WHERE a > (SELECT sum(a) FROM u)", [0]),
        ("SELECT k, count(*) AS n FROM t WHERE a > (SELECT avg(a) FROM u) GROUP BY k", [0]),
        (f"{WITH} SELECT t.a, g.n FROM t JOIN g USING (k) WHERE n = (SELECT max(n) FROM g)", [1, 0]),
        (f"SELECT t.a FROM t JOIN {GROUPS} ON g.n > t.a", [1]),
        (f"SELECT k, rank() OVER (ORDER BY n) AS r FROM {GROUPS}", [1]),
        ("SELECT k, sum(a) AS s FROM t GROUP BY k HAVING sum(a) > (SELECT sum(a) FROM t)", [1, 0]),
        # only those of few partners are looked for
        (f"SELECT t.a, g.n FROM t JOIN {GROUPS} ON g.k = t.k WHERE t.a = 1", [1]),
        (f"SELECT t.a, g.n FROM (SELECT * FROM t WHERE a = 1) t LEFT JOIN {GROUPS} ON g.k = t.k", [1]),
        (f"SELECT k FROM t WHERE a = 1 AND NOT EXISTS (SELECT 1 FROM {GROUPS} WHERE g.k = t.k AND g.n > 1)", [1]),
        ("SELECT k FROM t WHERE t.a = 1 AND k < (SELECT sum(a) FROM u WHERE u.k = t.k)", [1]),
        # grouped again
        (f"SELECT n, count(*) AS c FROM {GROUPS} GROUP BY n", []),
        (f"SELECT n, count(*) AS c FROM (SELECT t.k, count(u.a) AS n FROM {LEFT} GROUP BY t.k) GROUP BY n", [1]),
        ("SELECT x, count(*) AS c FROM (SELECT k, max(x) AS x FROM f GROUP BY k) GROUP BY x", []),
        (
            "SELECT x, count(*) AS c FROM (SELECT t.k, max(x) AS x FROM t LEFT JOIN f USING (k) GROUP BY 1) GROUP BY x",
            [],
        ),
        # of these partners, but what is grouped is read beside its groups, or they are not to be kept
        ("SELECT t.a FROM t JOIN u USING (k) WHERE t.a = 1 AND u.a < (SELECT avg(a) FROM u i WHERE i.k = t.k)", []),
        ("SELECT t.a, x FROM t JOIN (SELECT k, max(x) AS x FROM f GROUP BY k) g ON g.k = t.k WHERE t.a = 1", []),
        # looked for by key, at the root, or not to be kept
        (f"SELECT t.a, g.n FROM t JOIN {GROUPS} ON g.k = t.k", []),
        (f"SELECT t.a FROM t JOIN {GROUPS} ON g.k = t.k AND g.n = t.a", []),
        ("SELECT k, sum(a) AS s FROM t GROUP BY k", []),
        ("SELECT k FROM t WHERE a > (SELECT max(x) FROM f)", []),
        ("SELECT k FROM t WHERE a > (SELECT count(DISTINCT a) FROM u)", []),
        ("SELECT k FROM t WHERE a > (SELECT max(a) FROM u WHERE u.k = t.k)", []),
    ],
)
def test_kept(query: str, keys: list[int]) -> None:
    view = Maintained(EXECUTOR, Case(query, TABLES)).view
    assert view.tree is not None
    assert [len(root.aggregate.keys) for root in view.views.aggregates] == keys


def test_several_are_parts_of_one_companion() -> None:
    view = Maintained(EXECUTOR, Case(f"SELECT count(*) AS n FROM t, {GROUPS} WHERE g.n > t.a", TABLES)).view
    names = [(c.name, c.type) for c in view.companion or ()]
    assert names == [(PART, "int"), ("part1___hr_n", "bigint"), ("part2_k", "int"), ("part2___hr_n", "bigint")]
    alone = Maintained(EXECUTOR, Case("SELECT k FROM t WHERE a > (SELECT count(*) FROM u)", TABLES)).view
    assert [c.name for c in alone.companion or ()] == ["__hr_n"]
