"""A semi-join that several programs read is the same step in all of them, and only where that is exact."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name

from headrace.algebra.relations import Moment, Scan
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.compiler.compiled_view import CompiledView
from headrace.ivm.program import DeltaProgram, Key, Need
from headrace.optimizer.common_subexpressions.across_programs import together
from headrace.optimizer.common_subexpressions.read_once import MOST_ROWS, WORTH_ROWS

ORDERS = (Column("id", "bigint"), Column("customer", "bigint"), Column("total", "double"))
LINES = (Column("order_id", "bigint"), Column("part", "bigint"), Column("price", "decimal(12,2)"))
PRICES = "SELECT o.customer, l.price FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.customer > 7"
PARTS = "SELECT DISTINCT l.part FROM orders o JOIN lines l ON l.order_id = o.id"
LATE = "SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.price > 1)"
BOTH = frozenset({table_name("orders"), table_name("lines")})
KEY_OF_LINES: Key = (table_name("lines"), ("order_id",))
KEY_OF_ORDERS: Key = (table_name("orders"), ("id",))


def _view(query: str) -> CompiledView:
    tables = Table("orders", ORDERS, ()), Table("lines", LINES, ())
    return Maintained(DuckExecutor(), Case(query, tables)).view


def _program(query: str, rows: int = WORTH_ROWS, shared: dict[Key, Need] | None = None) -> DeltaProgram:
    view = _view(query)
    program = view.delta_program(BOTH, sizes=dict.fromkeys(view.sources, rows), shared_semijoins=shared)
    assert program is not None
    return program


def _whole(program: DeltaProgram) -> list[Scan]:
    """Scans of whole sources, those of common steps left out."""
    nodes = [node for step in program.steps if not step.follows for node in walk(step.relation)]
    return [n for n in nodes if isinstance(n, Scan) and n.moment is not Moment.CHANGE]


def test_needs_are_told_by_changes_alone() -> None:
    needs = _program(PRICES).needs
    assert needs == {
        KEY_OF_LINES: Need(frozenset({KEY_OF_ORDERS}), {"order_id": "bigint", "price": "decimal(12,2)"}),
        KEY_OF_ORDERS: Need(frozenset({KEY_OF_LINES}), {"id": "bigint", "customer": "bigint"}),
    }


def test_several_programs_have_the_same_step() -> None:
    queries = PRICES, PARTS, LATE
    alone = [_program(query) for query in queries]
    assert all(_whole(program) for program in alone)
    shared = {key: together(p.needs[key] for p in alone if key in p.needs) for key in (KEY_OF_LINES, KEY_OF_ORDERS)}
    assert shared[KEY_OF_LINES].fields.keys() == {"order_id", "part", "price"}
    assert shared[KEY_OF_LINES].follows == {KEY_OF_LINES, KEY_OF_ORDERS}, "judged lines and those of orders"
    programs = [_program(query, shared=shared) for query in queries]
    for key in shared:
        steps = {
            step.relation for program in programs for step in program.steps if step.follows and step.semijoin == key
        }
        assert len(steps) == 1
    assert not any(_whole(program) for program in programs)


def test_what_is_shared_must_be_enough() -> None:
    fewer_rows = {KEY_OF_LINES: Need(frozenset({KEY_OF_LINES}), {"order_id": "bigint", "price": "decimal(12,2)"})}
    fewer_columns = {KEY_OF_LINES: Need(frozenset({KEY_OF_ORDERS}), {"order_id": "bigint"})}
    for shared in (fewer_rows, fewer_columns):
        program = _program(PRICES, shared=shared)
        assert not any(step.follows for step in program.steps)
        assert {scan.source for scan in _whole(program)} == BOTH


@pytest.mark.parametrize(("rows", "needed"), [(WORTH_ROWS - 1, 0), (WORTH_ROWS, 2), (MOST_ROWS + 1, 0)])
def test_only_where_it_pays(rows: int, needed: int) -> None:
    assert len(_program(PRICES, rows).needs) == needed


def test_not_where_equal_values_can_be_told_apart() -> None:
    """0.0 and -0.0 are equal, so that it cannot be told which of them was removed."""
    assert _program(PRICES.replace("o.customer,", "o.total,")).needs.keys() == {KEY_OF_LINES}
