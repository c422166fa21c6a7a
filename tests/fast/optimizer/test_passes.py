"""The list of passes: what each entry says, what can be switched off, and that nothing goes past it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import headrace
from headrace.errors import UserError
from headrace.optimizer import passes
from headrace.optimizer.optimizer import Optimizer, passes_over
from headrace.optimizer.optimizer_pass import Phase, Subject
from headrace.optimizer.pass_names import DEFINING, check_disabled
from headrace.optimizer.passes import PASSES

SOURCE = Path(headrace.__file__).parent

ADAPTIVE = {("physical/dead_steps.py", "drop_empty")}
"""What execution does once steps have turned out to be empty, which no plan can know."""


def test_every_pass_says_what_it_rests_on() -> None:
    assert all(each.claim.strip() and each.name.isidentifier() for each in PASSES)
    assert all(each.assumes for each in PASSES if each.cost_based), "cost is decided by something that is assumed"


def test_the_list_is_in_the_order_in_which_subjects_come_to_be() -> None:
    order = [each.subject for each in PASSES]
    assert order == sorted(order, key=list(Subject).index)


def test_passes_over_a_subject_keep_their_order_and_leave_out_what_is_off() -> None:
    names = [each.name for each in passes_over(Subject.QUERY)]
    assert names[:3] == ["empty_relations", "merge_projections", "filter_pushdown"]
    without = [each.name for each in passes_over(Subject.QUERY, frozenset({"merge_projections"}))]
    assert without == [name for name in names if name != "merge_projections"]


def test_passes_that_define_are_those_of_the_logical_phase() -> None:
    assert {each.name for each in PASSES if each.phase is Phase.LOGICAL} == DEFINING
    assert "eager_aggregation" in DEFINING
    assert "read_once" not in DEFINING


def test_what_can_be_switched_off() -> None:
    optional = {each.name for each in PASSES if not each.required}
    assert check_disabled(sorted(optional)) == optional
    assert Optimizer(frozenset(optional)) != Optimizer()


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("filter_pushdwn", "does not exist", "Did you mean filter_pushdown?"),
        ("nothing_like_it_at_all", "does not exist", "Passes are "),
        ("empty_relations", "cannot be switched off", "Take it out"),
    ],
)
def test_what_cannot_be_switched_off_is_told(name: str, message: str, hint: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        check_disabled([name])
    assert raised.value.code == "CONFIG_INVALID"
    assert hint in (raised.value.hint or "")


def test_no_pass_is_called_past_the_list() -> None:
    tree = ast.parse(Path(passes.__file__).read_text(encoding="utf-8"))
    functions = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headrace.optimizer.")
        for alias in node.names
        if alias.name.islower()
    }
    assert len(functions) > 12
    past = []
    for path in SOURCE.rglob("*.py"):
        if path.name == "passes.py" and path.parent.name == "optimizer":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                name = path.relative_to(SOURCE).as_posix()
                past += [(name, a.name) for a in node.names if (node.module, a.name) in functions]
    assert set(past) == ADAPTIVE
