"""Groups that are grouped again, or of few partners: queries that are written anew so that groups can be kept."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.histories import histories
from kit.long_tests import LONG
from kit.maintained import Maintained, replay

from headrace.algebra.relations import Aggregate, Filter, OuterJoin
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk

EXECUTOR = DuckExecutor()
TABLES = (
    Table("c", (Column("id", "int"), Column("name", "string"))),
    Table("o", (Column("id", "int"), Column("c", "int"), Column("t", "string"))),
)
JOINED = "c LEFT JOIN o ON c.id = o.c"

BETWEEN_GROUPS = [
    f"SELECT n, count(*) AS m FROM (SELECT c.id, count(o.id) AS n FROM {JOINED} GROUP BY c.id) GROUP BY n",
    f"SELECT n, count(*) AS m FROM (SELECT c.id, count(*) AS n FROM {JOINED} AND o.id > 1 GROUP BY c.id) GROUP BY n",
    f"SELECT sum(n) AS s, max(x) AS x FROM (SELECT c.id, count(o.t) AS n, max(o.id) AS x FROM {JOINED} GROUP BY c.id)",
    # groups by more than the join is by, and whose rows meet the same partners
    f"SELECT name, max(n) AS n, min(x) AS x FROM (SELECT c.name, c.id, count(*) AS n, min(o.t) AS x FROM {JOINED} "
    "GROUP BY c.name, c.id) GROUP BY name",
    "SELECT n, m, count(*) AS k FROM (SELECT o.c, count(c.id) AS n, count(*) AS m FROM c RIGHT JOIN o ON o.c = c.id "
    "AND o.t = c.name GROUP BY o.c, o.t HAVING count(*) <> 2) GROUP BY n, m ORDER BY k, n, m LIMIT 2",
    f"SELECT n, count(*) AS m FROM (SELECT c.id, count(o.id) AS n FROM {JOINED} "
    "AND o.id IN (SELECT id FROM c WHERE name > 'a') GROUP BY c.id) WHERE n < 3 GROUP BY n HAVING count(*) > 1",
    # groups by what is computed, of few rows, of all rows, of rows that are groups, by several equal columns
    "SELECT n, count(*) AS m FROM (SELECT x.id, x.u, count(o.id) AS n FROM (SELECT id, upper(name) AS u FROM c) x "
    "LEFT JOIN o ON x.id = o.c GROUP BY x.id, x.u) GROUP BY n",
    "SELECT n, max(place) AS p FROM (SELECT x.id, x.place, count(*) AS n FROM (SELECT id, row_number() OVER "
    "(PARTITION BY id ORDER BY name) AS place FROM c) x LEFT JOIN o ON o.c = x.id GROUP BY x.id, x.place) GROUP BY n",
    f"SELECT n, count(*) AS m FROM (SELECT c.id, count(o.id) AS n FROM {JOINED} WHERE c.name = 'a' GROUP BY c.id) "
    "GROUP BY n",
    f"SELECT max(n) AS hi, min(x) AS lo, count(DISTINCT n) AS d FROM (SELECT c.id, count(*) AS n, min(o.id) AS x "
    f"FROM {JOINED} AND o.t IS NOT NULL GROUP BY c.id)",
    "SELECT n, x, count(*) AS m FROM (SELECT c.id, c.name, count(o.t) AS n, max(o.id) AS x FROM c LEFT JOIN o "
    "ON c.id = o.c AND c.id = o.id AND c.name = o.t GROUP BY c.id, c.name) GROUP BY n, x",
    "SELECT n, count(*) AS m FROM (SELECT a.id, count(b.name) AS n FROM c a LEFT JOIN c b ON a.id = b.id "
    "GROUP BY a.id) GROUP BY n",
    "SELECT DISTINCT n FROM (SELECT c.id, count(g.k) AS n FROM c LEFT JOIN (SELECT c, t, count(*) AS k FROM o "
    "GROUP BY c, t) g ON g.c = c.id GROUP BY c.id)",
]
OTHERS = [
    "SELECT n, count(*) AS m, min(x) AS x FROM (SELECT c, count(*) AS n, min(t) AS x FROM o GROUP BY c) GROUP BY n",
    "SELECT count(*) AS m, sum(n) AS s FROM (SELECT c, t, sum(id) AS n FROM o GROUP BY c, t) WHERE n > 1",
    "SELECT n, count(*) AS m FROM (SELECT o.c, count(*) AS n FROM o JOIN c ON c.id = o.c GROUP BY o.c) GROUP BY n",
    # a call over the left side, what has a value beside NULLs, groups told by something else than the join
    f"SELECT n, count(*) AS m FROM (SELECT c.id, count(c.name) AS n FROM {JOINED} GROUP BY c.id) GROUP BY n",
    f"SELECT n, count(*) AS m FROM (SELECT c.id, count(coalesce(o.id, 0)) AS n FROM {JOINED} GROUP BY c.id) GROUP BY n",
    f"SELECT n, count(*) AS m FROM (SELECT c.name, count(o.id) AS n FROM {JOINED} GROUP BY c.name) GROUP BY n",
    f"SELECT n, count(*) AS m FROM (SELECT c.id, count(o.id) AS n FROM {JOINED} AND c.name = 'a' GROUP BY c.id) "
    "GROUP BY n",
    "SELECT n, count(*) AS m FROM (SELECT c.id, count(o.id) AS n FROM c LEFT JOIN o ON c.id <=> o.c GROUP BY c.id) "
    "GROUP BY n",
    "WITH RECURSIVE r(id) AS (SELECT id FROM c WHERE id < 2 UNION ALL SELECT id + 1 FROM r WHERE id < 3) SELECT n, "
    "count(*) AS m FROM (SELECT r.id, count(o.id) AS n FROM r LEFT JOIN o ON r.id = o.c GROUP BY r.id) GROUP BY n",
]
GROUPS = "(SELECT c, count(*) AS n, max(t) AS x FROM o GROUP BY c) g"
FEW = "(SELECT id FROM c WHERE name = 'a')"
ASKED_ONCE = [
    f"SELECT a.id, a.name, g.n, g.x FROM c a JOIN {GROUPS} ON g.c = a.id WHERE a.id IN {FEW}",
    f"SELECT a.name, count(*) AS m, sum(n) AS s FROM c a JOIN {GROUPS} ON g.c = a.id AND n > 1 WHERE a.id IN {FEW} "
    "GROUP BY a.name",
    f"SELECT name FROM c WHERE id IN (SELECT g.n FROM c a JOIN {GROUPS} ON g.c = a.id WHERE a.id IN {FEW})",
]
ASKED_TWICE = [
    f"SELECT a.id, g.n FROM c a LEFT JOIN {GROUPS} ON g.c = a.id WHERE a.id IN {FEW} "
    "AND a.name NOT IN (SELECT name FROM c WHERE id = 2 AND name IS NOT NULL)",
    f"SELECT a.id, g.n FROM c a JOIN {GROUPS} ON g.c = a.id WHERE a.id + 1 IN {FEW}",
    f"WITH g AS (SELECT c, count(*) AS n FROM o GROUP BY c) SELECT n, count(*) AS m FROM (SELECT g.c, g.n FROM g "
    f"JOIN g h ON g.c = h.c AND g.n = h.n WHERE g.c IN {FEW}) GROUP BY n",
]


@pytest.mark.parametrize("query", BETWEEN_GROUPS + OTHERS + ASKED_ONCE + ASKED_TWICE)
@settings(max_examples=(4 if LONG else 2) * int(os.environ.get("HEADRACE_EXAMPLES", "1")), deadline=None)
@given(data=st.data())
def test_followed(query: str, data: st.DataObject) -> None:
    replay(EXECUTOR, Case(query, TABLES, data.draw(histories(TABLES))))


@pytest.mark.parametrize(("query", "between"), [(q, True) for q in BETWEEN_GROUPS] + [(q, False) for q in OTHERS])
def test_grouped_before_it_is_joined(query: str, between: bool) -> None:
    tree = Maintained(EXECUTOR, Case(query, TABLES)).view.tree
    assert tree is not None
    joins = [node for node in walk(tree) if isinstance(node, OuterJoin)]
    assert between == any(isinstance(side, Aggregate) for join in joins for side in join.inputs)


@pytest.mark.parametrize("query", ASKED_ONCE)
def test_partners_of_few_groups_are_looked_for_once(query: str) -> None:
    tree = Maintained(EXECUTOR, Case(query, TABLES)).view.tree
    assert tree is not None
    among = [node for node in walk(tree) if isinstance(node, Filter) and "= 'a'" in node.condition.sql]
    assert len(among) == 1
