"""Groups that are grouped again, most of them over outer joins that are grouped before they are joined."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.histories import histories
from kit.maintained import Maintained, replay

from headrace.algebra.relations import Aggregate, OuterJoin
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
]


@pytest.mark.parametrize("query", BETWEEN_GROUPS + OTHERS)
@settings(max_examples=12 * int(os.environ.get("HEADRACE_EXAMPLES", "1")), deadline=None)
@given(data=st.data())
def test_followed(query: str, data: st.DataObject) -> None:
    replay(EXECUTOR, Case(query, TABLES, data.draw(histories(TABLES))))


@pytest.mark.parametrize(("query", "between"), [(q, True) for q in BETWEEN_GROUPS] + [(q, False) for q in OTHERS])
def test_grouped_before_it_is_joined(query: str, between: bool) -> None:
    tree = Maintained(EXECUTOR, Case(query, TABLES)).view.tree
    assert tree is not None
    joins = [node for node in walk(tree) if isinstance(node, OuterJoin)]
    assert between == any(isinstance(side, Aggregate) for join in joins for side in join.inputs)
