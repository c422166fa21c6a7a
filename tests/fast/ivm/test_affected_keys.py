"""Which groups a change touches is told without looking which rows of an outer join are padded."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name

from headrace.algebra.schema import Column

TABLES = tuple(Table(name, (Column("k", "int"), Column("a", "double"))) for name in ("t", "u"))  # no float is kept
SINGLE = "SELECT n, count(*) AS c FROM ({}) GROUP BY n"
LEFT = "SELECT {}, max(u.a) AS n FROM t LEFT JOIN u ON t.k = u.k GROUP BY {}"


def _steps(query: str, *changed: str) -> list[str]:
    view = Maintained(DuckExecutor(), Case(SINGLE.format(query), TABLES)).view
    program = view.delta_program(frozenset(map(table_name, changed)))
    assert program is not None
    return [step.name for step in program.steps]


@pytest.mark.parametrize("changed", [("u",), ("t", "u")])
@pytest.mark.parametrize("keys", ["t.k", "t.k, t.a", "t.a"])
def test_by_columns_of_the_side_that_is_kept(keys: str, changed: tuple[str, ...]) -> None:
    assert "affected" not in _steps(LEFT.format(keys, keys), *changed)


@pytest.mark.parametrize("keys", ["u.k", "t.k, u.a"])
def test_by_columns_of_the_other_side(keys: str) -> None:
    assert "affected" in _steps(LEFT.format(keys, keys), "u")


def test_by_columns_of_a_full_join() -> None:
    assert "affected" in _steps(LEFT.format("t.k", "t.k").replace("LEFT", "FULL"), "u")
