"""Few groups are held all, so that tables are written from them, and neither read nor merged."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from kit.case import Case, Row, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name
from kit.planned import facts_of, source

from headrace.algebra.relations import LookupJoin
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.ivm.program import COMPANION, STATE
from headrace.physical.stage_planner import FEW_GROUPS, asked
from headrace.sql.lower import lower

EXECUTOR = DuckExecutor()
COLUMNS = (
    Column("k", "string"),
    Column("f", "double"),
    Column("a", "int"),
    Column("d", "decimal(12,2)"),
)
ROWS: tuple[Row, ...] = (
    ("x", 1.0, 1, Decimal("1.50")),
    ("x", 1.0, 5, None),
    (None, 0.0, 2, Decimal("2.00")),
    ("y", 0.0, None, Decimal("9.00")),
)
TABLES = (Table("t", COLUMNS, ROWS),)
MANY = "SELECT k, sum(d) AS s, avg(a) AS m, min(a) AS low, max(a) AS high, count(*) AS n FROM t GROUP BY k"


def view(query: str, **options: bool) -> Maintained:
    return Maintained(EXECUTOR, Case(query, TABLES), **options)


@pytest.mark.parametrize("query", [MANY, f"{MANY} HAVING count(*) > 1", "SELECT count(*) AS n FROM t GROUP BY k"])
def test_both_tables_follow_from_them(query: str) -> None:
    maintained = view(query)
    new = ("z", 1.0, 7, Decimal("1.00"))
    for change in (
        ((1, new),),
        ((-1, new), (-1, ROWS[1])),  # a group and an extreme leave
        ((1, (None, 0.0, None, None)), (1, ROWS[1])),
        ((-1, ROWS[2]), (1, new)),
        *(((1, (name, 0.0, 3, None)),) for name in "xyz"),
        tuple((-1, row) for row in ROWS if row[0] == "x"),
    ):
        maintained.step({"t": change})
    assert maintained.in_hand[COMPANION] > 2
    assert maintained.in_hand[STATE] > 1


@pytest.mark.parametrize(
    ("query", "ansi", "held"),
    [
        (MANY, True, True),
        (MANY, False, False),  # a sum that overflowed has to be added up again
        ("SELECT k, sum(a) AS s FROM t GROUP BY k", False, True),
        ("SELECT f, count(*) AS n FROM t GROUP BY f", True, False),  # 0.0 is stored, or -0.0
        ("SELECT k, max(f) AS m FROM t GROUP BY k", True, False),
        ("SELECT k, stddev(a) AS s FROM t GROUP BY k", True, False),
        ("SELECT sum(a) AS s FROM t", True, False),
    ],
)
def test_groups_are_held_that_stay_as_they_are_stored(query: str, ansi: bool, held: bool) -> None:
    compiled, changed = view(query, ansi=ansi).view, frozenset({table_name("t")})
    for whole in (True, False):
        program = compiled.delta_program(changed, whole=whole)
        assert program is not None
        assert program.companion is not None
        for change in (program.state, program.companion):
            assert (change.contents is not None) is (held and whole)


def test_zeros_are_written_without_a_sign() -> None:
    program = view("SELECT k, -avg(a) AS m FROM t GROUP BY k").view.delta_program(
        frozenset({table_name("t")}), whole=True
    )
    assert program is not None
    assert program.state.contents is not None
    assert "= 0 THEN" in lower(program.state.contents, lambda leaf: "x")


@pytest.mark.parametrize(("groups", "rows", "held"), [(10, 1, True), (FEW_GROUPS + 1, 1, False), (10, 10**6, False)])
def test_few_groups_of_few_changed_rows_are(groups: int, rows: int, held: bool) -> None:
    name = table_name("t")
    facts = facts_of(view(MANY).view, {name: source(name, 10**7, rows)}, state=groups, companion=groups)
    assert asked(facts).whole is held
    called = replace(facts, details=replace(facts.details, functions={"slow": "1"}))
    assert not asked(called).whole
    assert not asked(facts, local=False).whole  # they were too wide to be held


def test_what_is_added_is_computed_in_all_tasks() -> None:
    gaps = "SELECT k, a - lag(a) OVER (PARTITION BY k ORDER BY a) AS g FROM t"
    compiled = view(f"SELECT k, max(g) AS m FROM ({gaps}) AS w GROUP BY k").view
    program = compiled.delta_program(frozenset({table_name("t")}), whole=True)
    assert program is not None
    read = (node for step in program.steps for node in walk(step.relation))
    (joined,) = (node for node in read if isinstance(node, LookupJoin) and node.whole)
    added, stored = lower(joined, lambda leaf: "x", hints=True).split("FULL")
    assert "REPARTITION(1)" in added
    assert "COALESCE(1)" in stored
