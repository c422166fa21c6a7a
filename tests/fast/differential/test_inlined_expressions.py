"""Expressions that begin like a reference, such as `tan(1) - x`, are operands above as any other."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.schema import Column

A = Table("a", (Column("id", "int"), Column("g", "double"), Column("n", "int")), ((1, 1.0, 1), (2, 2.0, 2)))
B = Table(
    "b", (Column("id", "int"), Column("x", "double"), Column("flag", "boolean")), ((1, 1.0, True), (3, 2.0, False))
)
WINDOWS = (
    {"b": ((1, (2, 4.0, None)), (1, (4, 3.0, None)))},
    {"b": ((-1, (2, 4.0, None)),)},
    {"a": ((1, (3, 3.0, 3)), (1, (7, 3.0, 3)))},
    {"a": ((-1, (1, 1.0, 1)),), "b": ((1, (7, 5.0, True)), (-1, (3, 2.0, False)))},
)
MINUS = "(SELECT id, tan(1) - x AS f, flag FROM b)"
QUERIES = (
    f"SELECT id, f * 2 AS p, f * 3 AS q FROM {MINUS} q",
    f"SELECT a.id, q.f * 2 AS d FROM a JOIN {MINUS} q ON a.id = q.id",
    f"SELECT a.id, q.f FROM a JOIN {MINUS} q ON q.f * 2 < a.g",
    f"SELECT a.id, q.f * 2 AS d FROM a LEFT JOIN {MINUS} q ON a.id = q.id",
    "SELECT a.id, q.ok FROM a LEFT JOIN (SELECT id, true OR flag AS ok FROM b) q ON a.id = q.id",
    "SELECT a.id, NOT q.ok AS bad FROM a JOIN (SELECT id, true OR flag AS ok FROM b) q ON a.id = q.id",
    "SELECT true AND NOT flag AS g, max(x) AS m, count(DISTINCT x) AS d FROM b GROUP BY true AND NOT flag",
    "SELECT a.id, q.l FROM a FULL JOIN (SELECT id, trim('a') || x AS l FROM b) q ON a.id = q.id",
)


@pytest.mark.parametrize("disabled", [(), ("merge_projections",)])
@pytest.mark.parametrize("query", QUERIES)
def test_inlined_expressions(query: str, disabled: tuple[str, ...]) -> None:
    view = Maintained(DuckExecutor(), Case(query, (A, B), WINDOWS), disabled=frozenset(disabled))
    for window in WINDOWS:
        view.step(window)
