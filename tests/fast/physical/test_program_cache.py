"""Programs are derived once for what is asked of a definition, and forgotten with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.maintained import table_name
from kit.tpch import compiled

from headrace.compiler.compiled_view import CompiledView
from headrace.definitions.table_memory import TableMemory
from headrace.ivm.program import Need
from headrace.physical.program_cache import EACH, Asked, Programs, rounded

ORDERS, LINES, NAME = table_name("orders"), table_name("lineitem"), table_name("view")


@pytest.fixture
def view() -> CompiledView:
    return compiled("SELECT o_custkey, l_tax FROM orders JOIN lineitem ON l_orderkey = o_orderkey")


def asked(*changed: str, rows: int = 1_000_000, shared: bool = False) -> Asked:
    need = Need(frozenset({(ORDERS, ("o_orderkey",))}), {"l_orderkey": "bigint", "l_tax": "decimal(15,2)"})
    wanted = {(LINES, ("l_orderkey",)): need} if shared else {}
    return Asked(
        frozenset(map(table_name, changed)),
        frozenset(),
        frozenset({(LINES, rounded(rows)), (ORDERS, rounded(rows // 4))}),
        0,
        frozenset(),
        frozenset((key, each.follows, tuple(each.fields.items())) for key, each in wanted.items()),
    )


def test_the_same_change_is_derived_once(view: CompiledView) -> None:
    programs = Programs()
    first = programs.delta(NAME, view, asked("orders"))
    assert first is not None
    assert programs.delta(NAME, view, asked("orders")) is first
    assert programs.delta(NAME, view, asked("orders", rows=1_004_000)) is first, "a table that grew a little"
    assert programs.delta(NAME, view, asked("orders", rows=1_400_000)) is not first
    assert programs.delta(NAME, view, asked("orders", "lineitem")) not in (None, first)
    assert programs.delta(NAME, view, asked("nation")) is None


def test_it_is_what_the_definition_derives(view: CompiledView) -> None:
    changed = frozenset({ORDERS, LINES})
    what = asked("orders", "lineitem", shared=True)
    got = Programs().delta(NAME, view, what)
    shared = {key: Need(follows, dict(fields)) for key, follows, fields in what.shared_semijoins}
    assert got == view.delta_program(changed, frozenset(), dict(what.sizes), 0, frozenset(), shared)
    assert got is not None
    assert any(step.follows for step in got.steps)


def test_another_definition_starts_anew(view: CompiledView) -> None:
    programs = Programs()
    first = programs.delta(NAME, view, asked("orders"))
    assert programs.delta(NAME, replace(view), asked("orders")) is not first


def test_few_are_kept_and_none_of_tables_that_are_gone(view: CompiledView) -> None:
    memory = TableMemory()
    programs = Programs(memory)
    first = programs.delta(NAME, view, asked("orders"))
    for rows in range(1, EACH + 1):
        programs.delta(NAME, view, asked("orders", rows=rows * 10_000_000))
    assert programs.delta(NAME, view, asked("orders")) is not first
    kept = programs.delta(NAME, view, asked("orders"))
    memory.keep_only((NAME, ORDERS))
    assert programs.delta(NAME, view, asked("orders")) is kept
    memory.keep_only((ORDERS,))
    assert programs.delta(NAME, view, asked("orders")) is not kept


@pytest.mark.parametrize(("rows", "in_two_digits"), [(0, 0), (7, 7), (99, 99), (101, 100), (6_001_215, 6_000_000)])
def test_sizes_in_two_digits(rows: int, in_two_digits: int) -> None:
    assert rounded(rows) == in_two_digits
