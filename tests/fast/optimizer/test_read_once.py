"""Semi-joins with a change are read once, and only where that pays and is exact."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name

from headrace.algebra.relations import Filter, Moment, Project, Relation, Scan, SemiJoin, Stored, Union
from headrace.algebra.scalar import column, compose, literal
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.ivm.program import DeltaProgram
from headrace.names import TableName
from headrace.optimizer.common_subexpressions import read_once
from headrace.optimizer.common_subexpressions.read_once import MOST_ROWS, WORTH_ROWS
from headrace.optimizer.sideways.value_domains import Domains

ORDERS = (Column("id", "bigint"), Column("customer", "bigint"))
LINES = (Column("order_id", "bigint"), Column("price", "decimal(12,2)"))
LATE = "SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.price > 1)"
CUSTOMERS = (
    "SELECT customer, count(*) AS n FROM (SELECT customer, max(id) AS m FROM orders GROUP BY customer) GROUP BY 1"
)


def _maintained(query: str, lines: tuple[Column, ...] = LINES) -> Maintained:
    tables = Table("orders", ORDERS, ((1, 10), (2, 10), (2, 10), (None, 11))), Table("lines", lines, ())
    return Maintained(DuckExecutor(), Case(query, tables))


def _program(
    query: str,
    *changed: str,
    lines: tuple[Column, ...] = LINES,
    rows: int | None = None,
    barred: frozenset[tuple[TableName, tuple[str, ...]]] = frozenset(),
) -> DeltaProgram:
    view = _maintained(query, lines).view
    sizes = {} if rows is None else {name: rows for name in view.sources}
    program = view.delta_program(frozenset(map(table_name, changed)), sizes=sizes, barred=barred)
    assert program is not None
    return program


def _readings(program: DeltaProgram, table: str) -> int:
    nodes = [node for step in program.steps for node in walk(step.relation)]
    whole = [n for n in nodes if isinstance(n, Scan) and n.moment is not Moment.CHANGE]
    return sum(1 for scan in whole if scan.source == table_name(table))


def test_partners_are_read_once_for_before_and_after() -> None:
    program = _program(LATE, "orders", "lines")
    assert [step.semijoin for step in program.steps if step.semijoin] == [(table_name("lines"), ("order_id",))]
    assert _readings(program, "lines") == 1


def test_groups_are_read_once_for_before_and_after() -> None:
    program = _program(CUSTOMERS, "orders")
    assert [step.semijoin for step in program.steps if step.semijoin] == [(table_name("orders"), ("customer",))]
    assert _readings(program, "orders") == 1


@pytest.mark.parametrize(("rows", "steps"), [(WORTH_ROWS - 1, 0), (WORTH_ROWS, 1), (MOST_ROWS, 1), (MOST_ROWS + 1, 0)])
def test_only_where_it_pays(rows: int, steps: int) -> None:
    assert sum(1 for step in _program(LATE, "orders", "lines", rows=rows).steps if step.semijoin) == steps


def test_programs_of_many_operators_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking through one of thirty joins would take seconds."""
    program = _program(LATE, "orders", "lines")
    monkeypatch.setattr(read_once, "MOST_NODES", 5)
    assert read_once.is_large(program)
    assert not any(step.semijoin for step in _program(LATE, "orders", "lines").steps)


@pytest.mark.parametrize(
    ("conditions", "applied"),
    [
        ("l.price > 1 AND l.code LIKE '1%' AND l.price < 5", {"price > 1"}),
        ("l.code RLIKE '^[0-9]+$' AND l.price < 5", set()),
        ("l.code::INT > 5 AND l.price < 5", set()),
    ],
)
def test_conditions_come_behind_what_guards_them(conditions: str, applied: set[str]) -> None:
    """A row that RLIKE rejects may fail where a text is compared with a number."""
    lines = (*LINES, Column("code", "string"))
    query = LATE.replace("l.price > 1", conditions)
    (semijoin,) = (step for step in _program(query, "orders", "lines", lines=lines).steps if step.semijoin)
    found = [node.condition.sql for node in walk(semijoin.relation) if isinstance(node, Filter)]
    assert {each.replace("`", "") for each in found if "__hr" not in each} == applied


def test_not_where_it_was_found_to_be_large() -> None:
    barred = frozenset({(table_name("lines"), ("order_id",))})
    program = _program(LATE, "orders", "lines", barred=barred)
    assert not any(step.semijoin for step in program.steps)
    assert _readings(program, "lines") > 1


@pytest.mark.parametrize("type_", ["double", "float", "struct<a:double>"])
def test_not_where_equal_values_can_be_told_apart(type_: str) -> None:
    """0.0 and -0.0 are equal, so that it cannot be told which of them was removed."""
    price = "l.price.a" if "struct" in type_ else "l.price"
    query = LATE.replace("l.price", price)
    lines = (Column("order_id", "bigint"), Column("price", type_))
    assert not any(step.semijoin for step in _program(query, "orders", "lines", lines=lines).steps)


def test_conditions_that_take_long_are_left_to_who_reads_it() -> None:
    def conditions(query: str) -> str:
        semijoin = next(step for step in _program(query, "orders", "lines").steps if step.semijoin)
        return " ".join(str(getattr(node, "condition", "")) for node in walk(semijoin.relation))

    assert "price" in conditions(LATE)
    assert "LIKE" not in conditions(LATE.replace("l.price > 1", "CAST(l.price AS STRING) LIKE '%1%'"))


def test_duplicates_and_missing_keys_are_counted() -> None:
    for query in (LATE, CUSTOMERS, f"SELECT a.id FROM ({LATE}) a JOIN orders b ON a.id = b.id"):
        view = _maintained(query)
        lines = [(2, 5), (2, 5), (None, 9), (1, 0)]
        view.step({"lines": tuple((1, row) for row in lines), "orders": ((1, (1, 10)), (-1, (2, 10)))})
        view.step({"lines": ((-1, (2, 5)), (1, (1, 7))), "orders": ((1, (None, 10)), (-1, (None, 11)))})
        view.step({"lines": ((-1, (2, 5)),), "orders": ((-1, (1, 10)), (1, (2, 12)))})
        assert view.state == view.expected()


def _deep(levels: int) -> tuple[Domains, Relation]:
    """Steps that each read the one before in three places."""
    change = Scan(table_name("orders"), (("id", "id"),), Moment.CHANGE)
    steps: dict[str, Relation] = {"s0": Project(SemiJoin(change, change, (("id", "id"),)), (("id", column("id")),))}
    for level in range(1, levels):
        before = Stored(f"s{level - 1}", ("id",))
        above = (compose("{id} > {i}", id=column("id"), i=literal(i)) for i in range(3))
        steps[f"s{level}"] = Union(tuple(Filter(before, condition) for condition in above))
    return Domains(steps, frozenset(), {"id": "bigint"}), Stored(f"s{levels - 1}", ("id",))


def test_where_keys_come_from_is_found_in_time_whatever_reads_what() -> None:
    domains, last = _deep(18)
    found = domains.of(last, ("id",))
    assert found is not None
    assert [type(node) for node in walk(found)] == [Project, Scan]
    assert len(domains.found) < 18 * 6


def test_what_is_far_back_is_not_looked_for() -> None:
    domains, last = _deep(1000)
    assert domains.of(last, ("id",)) is None
