"""Partners are looked for, not counted, and not restricted to those who are looked for anyway."""

from __future__ import annotations

import pytest
from kit.duck import DuckExecutor

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Project,
    Relation,
    Replicate,
    Scan,
    SemiJoin,
    Stored,
)
from headrace.algebra.scalar import Scalar, column, compose
from headrace.algebra.schema import Column
from headrace.algebra.text import text
from headrace.algebra.tree import identity, walk
from headrace.ivm.program import COMPANION
from headrace.names import LAKE, TableName
from headrace.optimizer.sideways.existence_partners import look_for_partners
from headrace.sql.lower import lower

LEFT, KEPT = Stored("rows", ("k", "x")), Stored("semijoin", ("p", "n"))
KEYS = Aggregate(Project(LEFT, identity(("k",))), ("k",), ())
SAME = compose("{k} = {p}", k=column("k"), p=column("p"))
ROWS = {"rows": [(1, 1), (2, 2), (None, 3), (4, 4)], "semijoin": [(1, 1), (2, 0), (None, 2), (3, 1)]}


def restricted(right: Relation, keys: Relation = KEYS) -> Relation:
    return Replicate(SemiJoin(right, keys, (("p", "k"),)), "n")


def name_of(leaf: Scan | Stored) -> str:
    assert isinstance(leaf, Stored)
    return leaf.name


def operators(tree: Relation) -> list[str]:
    return [type(node).__name__ for node in walk(tree)]


@pytest.mark.parametrize("anti", [False, True])
@pytest.mark.parametrize("null_safe", [False, True])
def test_a_kept_step_is_looked_into_as_it_is(anti: bool, null_safe: bool) -> None:
    same = compose("{k} <=> {p}", k=column("k"), p=column("p")) if null_safe else SAME
    before = Existence(LEFT, restricted(KEPT), same, anti)
    after = look_for_partners(before)
    assert not {"Replicate", "SemiJoin", "Aggregate"} & set(operators(after)), text(after)
    duck = DuckExecutor()
    for step in (LEFT, KEPT):
        duck.define(step.name, [Column(name, "int") for name in step.columns], ROWS[step.name])
    answers = [sorted(duck.rows(lower(tree, name_of)), key=str) for tree in (before, after)]
    assert answers[0] == answers[1]
    assert len(answers[0]) in (1, 2, 3)


@pytest.mark.parametrize(
    ("left", "right", "condition"),
    [
        (LEFT, restricted(Scan(TableName(LAKE, ("shop",), "s"), (("p", "p"), ("n", "n")))), SAME),
        (LEFT, restricted(Stored(COMPANION, ("p", "n"))), SAME),
        (LEFT, restricted(KEPT), compose("{x} = {p}", x=column("x"), p=column("p"))),
        (LEFT, restricted(KEPT), compose("{k} > {p}", k=column("k"), p=column("p"))),
        (LEFT, restricted(KEPT, Aggregate(Filter(LEFT, compose("{x} > 1", x=column("x"))), ("k",), ())), SAME),
        (Stored("others", ("k", "x")), restricted(KEPT), SAME),
    ],
    ids=["a source", "a companion", "another column", "no equality", "some keys", "other rows"],
)
def test_other_restrictions_stay(left: Relation, right: Relation, condition: Scalar) -> None:
    after = look_for_partners(Existence(left, right, condition))
    assert "SemiJoin" in operators(after)
    assert "Replicate" not in operators(after)
