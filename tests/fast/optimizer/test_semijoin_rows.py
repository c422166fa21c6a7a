"""Rows with keys of a change are not looked for where the keys tell that they are all in the change itself."""

from __future__ import annotations

from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name

from headrace.algebra.relations import Moment, Scan
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk

ORDERS = (Column("id", "bigint"), Column("customer", "bigint"))
LINES = (Column("order_id", "bigint"), Column("part", "bigint"))
QUERY = "SELECT o.customer, l.part FROM orders o JOIN lines l ON l.order_id = o.id"
KEY_OF_LINES = (table_name("lines"), ("order_id",))


def maintained() -> Maintained:
    orders, lines = [(1, 10), (2, 20), (3, 30)], [(1, 5), (1, 5), (2, 5), (3, 7), (None, 7)]
    view = Maintained(DuckExecutor(), Case(QUERY, (Table("orders", ORDERS, orders), Table("lines", LINES, lines))))
    # the first program only tells what it needs
    view.step({"orders": ((1, (4, 40)),), "lines": ((1, (4, 1)),)})
    view.covered.clear()
    view.turn = 0
    return view


def test_what_comes_and_goes_as_a_whole_is_not_looked_for() -> None:
    view = maintained()
    view.step(
        {
            "orders": ((1, (5, 50)), (-1, (1, 10))),
            "lines": ((2, (5, 5)), (-2, (1, 5))),
        }
    )
    assert view.covered == {True: 2}, "lines of the orders, and orders of the lines"


def test_what_stays_is_found() -> None:
    view = maintained()
    view.step({"orders": ((-1, (1, 10)), (1, (1, 11))), "lines": ((1, (1, 6)),)})
    assert view.covered == {False: 1, True: 1}, "the lines were there before, the order was not"
    assert view.state[11, 5] == 2


def test_what_arrived_too_early_is_found() -> None:
    view = maintained()
    view.step({"lines": ((1, (9, 5)),)})
    view.turn = 0
    view.covered.clear()
    view.step({"orders": ((1, (9, 90)),), "lines": ((1, (9, 6)),)})
    assert view.covered[False] == 1
    assert view.state[90, 5] == view.state[90, 6] == 1


def test_the_statement_instead_reads_changes_only() -> None:
    view = maintained()
    program = view.view.delta_program(frozenset(view.view.sources), shared_semijoins=dict(view.needs))
    steps = [step for step in program.steps if step.semijoin]
    assert KEY_OF_LINES in {step.semijoin for step in steps}
    for step in steps:
        scans = [node for node in walk(step.coverage.instead) if isinstance(node, Scan)]
        assert {scan.moment for scan in scans} == {Moment.CHANGE}
    alone = view.view.delta_program(frozenset({table_name("orders")}), shared_semijoins=dict(view.needs))
    assert all(step.coverage is None for step in alone.steps), "what did not change must be read"
