"""Groups that nothing is joined to are not followed, where a small source that did not change tells which these are."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name

from headrace.algebra.relations import Scan, SemiJoin
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.ivm.program import DeltaProgram

PARTS = (Column("part", "bigint"), Column("brand", "bigint"))
LINES = (Column("part", "bigint"), Column("quantity", "bigint"))
BELOW = (
    "SELECT l.quantity FROM lines l JOIN parts p ON p.part = l.part "
    "WHERE p.brand = 1 AND l.quantity < (SELECT avg(i.quantity) FROM lines i WHERE i.part = p.part)"
)
INNER = (
    "SELECT p.brand, g.n FROM parts p JOIN (SELECT part, count(DISTINCT quantity) AS n FROM lines GROUP BY part) g "
    "ON g.part = p.part WHERE p.brand = 1"
)
NONE = (
    "SELECT p.part FROM parts p WHERE p.brand = 1 AND NOT EXISTS "
    "(SELECT 1 FROM (SELECT part, count(DISTINCT quantity) AS n FROM lines GROUP BY part) g "
    "WHERE g.part = p.part AND g.n > 5)"
)
ALL_PARTS = INNER.replace(" WHERE p.brand = 1", "")
OTHER_TYPE = INNER.replace("g.part = p.part", "g.part = p.part + 1")
TWICE = (
    "WITH g AS (SELECT part, sum(quantity) AS n FROM lines GROUP BY part) "
    "SELECT g.n FROM g JOIN parts p ON g.part = p.part WHERE p.brand = 1 UNION ALL SELECT n FROM g"
)
ALL_GROUPS = (
    "SELECT g.n, p.brand FROM (SELECT part, sum(quantity) AS n FROM lines GROUP BY part) g "
    "LEFT JOIN (SELECT * FROM parts WHERE brand = 1) p ON g.part = p.part"
)


def _program(query: str, *changed: str, parts: int = 10) -> DeltaProgram:
    tables = Table("parts", PARTS, ()), Table("lines", LINES, ())
    view = Maintained(DuckExecutor(), Case(query, tables)).view
    sizes = {table_name("parts"): parts, table_name("lines"): 1000}
    program = view.delta_program(frozenset(map(table_name, changed)), sizes=sizes)
    assert program is not None
    return program


def _fewer(program: DeltaProgram) -> bool:
    """Whether touched groups are only those of some parts."""
    touched = [step.relation for step in program.steps if step.name == "touched"]
    semi = [node.right for relation in touched for node in walk(relation) if isinstance(node, SemiJoin)]
    return any(isinstance(n, Scan) and n.source == table_name("parts") for right in semi for n in walk(right))


@pytest.mark.parametrize("query", [BELOW, INNER, NONE])
def test_only_groups_with_partners_are_touched(query: str) -> None:
    assert _fewer(_program(query, "lines"))


@pytest.mark.parametrize("query", [ALL_PARTS, OTHER_TYPE, TWICE, ALL_GROUPS])
def test_all_groups_matter(query: str) -> None:
    assert not _fewer(_program(query, "lines"))


def test_not_where_parts_change_or_are_many() -> None:
    assert not _fewer(_program(INNER, "lines", "parts"))
    assert not _fewer(_program(INNER, "lines", parts=500))
