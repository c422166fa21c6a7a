"""What several places of a program need is computed once."""

from __future__ import annotations

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name

from headrace.algebra.relations import Scan, Stored
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.ivm.program import DeltaCoverage, DeltaProgram, Step, TableChange
from headrace.optimizer.common_subexpressions.shared_steps import needed

COLUMNS = (Column("k", "int"), Column("v", "int"))
A = Scan(table_name("a"), (("k", "k"),))


def _program(query: str, *tables: str) -> list[tuple[str, int]]:
    """Name and size of each step when all tables changed."""
    view = Maintained(DuckExecutor(), Case(query, tuple(Table(name, COLUMNS, ((1, 2), (2, 3))) for name in tables)))
    program = view.view.delta_program(frozenset(map(table_name, tables)))
    assert program is not None
    return [(step.name, sum(1 for _ in walk(step.relation))) for step in program.steps]


def test_a_chain_of_outer_joins_grows_by_its_length() -> None:
    def chain(length: int) -> int:
        tables = [f"t{i}" for i in range(length + 1)]
        joins = "".join(f" LEFT JOIN {name} ON {name}.k = t{i}.k" for i, name in enumerate(tables[1:]))
        return sum(size for _, size in _program(f"SELECT t0.v, {tables[-1]}.v AS w FROM t0{joins}", *tables))

    sizes = [chain(length) for length in (2, 4, 6)]
    assert sizes[2] - sizes[1] < 2 * (sizes[1] - sizes[0])


def test_a_common_table_expression_that_is_used_twice_changes_once() -> None:
    query = "WITH w AS (SELECT a.k, b.v FROM a JOIN b ON a.k = b.k) SELECT x.v, y.v AS o FROM w x JOIN w y ON x.k = y.k"
    names = [name for name, _ in _program(query, "a", "b")]
    assert [name for name in names if not name.startswith("semijoin")] == ["shared", "change"]


def test_a_value_that_is_compared_is_computed_once_before_and_once_after() -> None:
    query = "SELECT k FROM a WHERE v > (SELECT count(DISTINCT v) FROM a)"
    names = [name for name, _ in _program(query, "a")]
    assert names.count("shared") == 1
    assert names[-1] == "change"


def test_what_nobody_reads_is_not_computed() -> None:
    assert [name for name, _ in _program("SELECT k, v FROM a", "a")] == ["change"]


@pytest.mark.parametrize("place", ["relation", "only_if", "integer_key", "semijoin", "added", "instead"])
def test_a_step_that_only_one_of_a_steps_relations_reads_is_needed(place: str) -> None:
    keys, other = Stored("keys", ("k",)), Stored("other", ("k",))

    def at(wanted: str) -> Stored:
        return keys if wanted == place else other

    covering = DeltaCoverage(at("semijoin"), at("added"), "n", at("instead"))
    last = Step("last", at("relation"), at("only_if"), integer_key=("k", at("integer_key")), coverage=covering)
    program = DeltaProgram((Step("keys", A), Step("other", A), last), TableChange(Stored("last", ("k",)), None))
    assert "keys" in [step.name for step in needed(program.steps, program)]
    assert keys in last.relations


def test_what_says_whether_a_step_is_needed_is_rewritten_with_it() -> None:
    keys, other = Stored("keys", ("k",)), Stored("other", ("k",))
    moved = Step("a", keys, only_if=keys).rewritten(lambda relation: other if relation == keys else relation)
    assert (moved.relation, moved.only_if) == (other, other)
