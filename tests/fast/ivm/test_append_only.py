"""Which changes only add rows, so that nothing has to be added up before they are written."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name

from headrace.algebra.relations import Aggregate
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.names import TableName

COLUMNS = (Column("k", "int"), Column("v", "int"))
TABLES = tuple(Table(name, COLUMNS, ((1, 2), (2, 3))) for name in ("a", "b"))
A, B = map(table_name, ("a", "b"))


@pytest.mark.parametrize(
    ("query", "changed", "appended", "gains"),
    [
        ("SELECT v + 1 AS w FROM a WHERE k > 0", {A}, {A}, True),
        ("SELECT v + 1 AS w FROM a WHERE k > 0", {A}, set(), False),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k", {A, B}, {A, B}, True),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k", {A, B}, {A}, False),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k", {A}, {A}, True),
        ("SELECT v FROM a UNION ALL SELECT k FROM b", {A, B}, {A, B}, True),
        ("SELECT v FROM a UNION SELECT k FROM b", {A}, {A}, False),
        ("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k", {B}, {B}, False),
        ("SELECT v FROM a WHERE k NOT IN (SELECT k FROM b)", {B}, {B}, False),
        ("SELECT a.v FROM a JOIN (SELECT k, max(v) AS v FROM b GROUP BY k) b ON a.k = b.k", {A}, {A}, True),
        ("SELECT a.v FROM a JOIN (SELECT k, max(v) AS v FROM b GROUP BY k) b ON a.k = b.k", {B}, {B}, False),
        ("SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM a", {A}, {A}, False),
    ],
)
def test_which_changes_only_add_rows(
    query: str, changed: set[TableName], appended: set[TableName], gains: bool
) -> None:
    view = Maintained(DuckExecutor(), Case(query, TABLES)).view
    program = view.delta_program(frozenset(changed), frozenset(appended))
    assert program is not None
    assert program.state.insert_only is gains
    if gains and "GROUP BY" not in query:
        assert not any(isinstance(node, Aggregate) for step in program.steps for node in walk(step.relation))
