"""Types of columns by name: of recursions, of names that several columns have, of keys in the companion."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.relations import Aggregate, Filter, Recursive, Relation, SemiJoin, Window
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.compiler.compiled_view import CompiledView
from headrace.ivm.consolidate import CHANGED
from headrace.names import WEIGHT

TABLES = {
    "org": (Column("id", "int"), Column("parent", "int")),
    "a": (Column("id", "int"), Column("v", "int"), Column("g", "int")),
    "b": (Column("id", "int"), Column("v", "decimal(12,2)")),
    "c": (Column("id", "int"), Column("v", "double")),
    "visits": (Column("userId", "int"), Column("page", "int"), Column("seconds", "int")),
}
DUCK = DuckExecutor()


def compiled(query: str) -> CompiledView:
    return Maintained(DUCK, Case(query, tuple(Table(name, each, ()) for name, each in TABLES.items()), ())).view


def steps(view: CompiledView) -> list[Relation]:
    program = view.delta_program(frozenset(view.sources))
    assert program is not None
    return [node for step in program.steps for node in walk(step.relation)]


def adds_up(view: CompiledView, kind: type[Relation]) -> bool:
    """Return whether the change of an operator below is added up."""
    assert view.tree is not None
    (below,) = (node for node in walk(view.tree) if isinstance(node, kind))
    return any(
        isinstance(node, Filter)
        and node.condition == CHANGED
        and isinstance(node.input, Aggregate)
        and node.input.columns == (*below.columns, WEIGHT)
        for node in steps(view)
    )


TREE = """WITH RECURSIVE tree AS (SELECT id AS root_id, id, {start} AS x FROM org WHERE parent IS NULL
    UNION ALL SELECT t.root_id, o.id, {step} FROM org o JOIN tree t ON o.parent = t.id)
    SELECT root_id, count(DISTINCT id) AS n, count(DISTINCT CAST(x AS STRING)) AS xs FROM tree GROUP BY root_id"""


@pytest.mark.parametrize(
    ("start", "step", "expected"),
    [
        ("id", "o.id", True),
        ("id", "t.x + 1", True),
        ("1", "CAST(o.id AS BIGINT)", True),
        ("1.0D", "t.x", False),
    ],
)
def test_changes_of_recursions_are_added_up_where_their_columns_are_exact(
    start: str, step: str, expected: bool
) -> None:
    assert adds_up(compiled(TREE.format(start=start, step=step)), Recursive) == expected


NUMBERED = """SELECT x.id, x.v, x.n, y.total FROM
    (SELECT t.id, t.v, row_number() OVER (PARTITION BY t.g ORDER BY t.id, t.v) AS n FROM a t) x
    JOIN (SELECT t.id, max(t.v) AS total FROM {other} t GROUP BY t.id) y ON x.id = y.id"""


@pytest.mark.parametrize(("other", "expected"), [("a", True), ("b", True), ("c", False)])
def test_columns_of_one_name_are_exact_where_each_of_them_is(other: str, expected: bool) -> None:
    view = compiled(NUMBERED.format(other=other))
    assert adds_up(view, Window) == expected
    assert ("t.v" in view.types) == (other == "a"), "no other type is true of both"


def semijoins(query: str) -> list[SemiJoin]:
    return [node for node in steps(compiled(query)) if isinstance(node, SemiJoin)]


@pytest.mark.parametrize("rest", ["min(seconds) AS m", "max(seconds) AS m", "count(DISTINCT page) AS m"])
def test_groups_are_read_again_by_integer_keys_whatever_their_case(rest: str) -> None:
    found = semijoins(f"SELECT userId, {rest} FROM visits GROUP BY userId")
    assert found
    assert all(len(node.numbers) == len(node.on) for node in found)


def test_a_key_of_the_companion_says_nothing_of_a_computed_column_of_its_name() -> None:
    view = compiled("SELECT CAST(userId AS STRING) AS userid, min(seconds) AS m FROM visits GROUP BY userId")
    assert "userid" not in view.types
