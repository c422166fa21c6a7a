"""Which steps of a refresh are kept, and which are part of the stage that reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained
from kit.planned import facts_of, source
from kit.tpch import compiled

from headrace.algebra.relations import Recursive, Stored
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.demo import tpch22
from headrace.ivm.program import COMPANION
from headrace.physical.facts import in_few_tasks
from headrace.physical.key_ranges import MOST_KEYS
from headrace.physical.stage_planner import apply_outline, asked, compute_stages, user_text
from headrace.physical.stages import Compute, Policy, ReadChange


def _reads_companion(stage: Compute) -> bool:
    return any(isinstance(node, Stored) and node.name == COMPANION for node in walk(stage.relation))


T = Table("t", (Column("g", "int"), Column("v", "int")), ())


def steps(query: str, changed: int = 10, rows: int = 1_000_000) -> dict[str, Compute]:
    """The steps of following a change of so many rows."""
    view = Maintained(DuckExecutor(), Case(query, (T,))).view
    facts = facts_of(view, {name: source(name, rows, changed) for name in view.sources}, state=100)
    program = asked(facts).of(view)
    assert program is not None
    return {stage.name: stage for stage in compute_stages(facts, program) if isinstance(stage, Compute)}


def test_a_seldom_step_is_part_of_the_stage_that_reads_it() -> None:
    found = steps("SELECT g, max(v) AS m FROM t GROUP BY g")
    seldom = found["rescanned"]
    assert seldom.only_if is not None
    assert seldom.policy is Policy.IF_NONEMPTY
    assert [s.name for s in found.values() if seldom.view in s.depends_on] == ["change"]
    assert found["change"].materialized


def test_of_a_change_too_large_to_be_sent_around_it_is_kept() -> None:
    assert steps("SELECT g, max(v) AS m FROM t GROUP BY g", 10_000_000)["rescanned"].materialized


def test_what_always_runs_is_kept_however_many_read_it() -> None:
    found = steps("SELECT g, max(v) AS m FROM t GROUP BY g")
    assert {name for name, stage in found.items() if stage.only_if is None and stage.materialized} == {
        "touched",
        "change",
    }


def test_what_is_sent_to_every_task_without_a_key_is_a_stage_of_its_own() -> None:
    """Spark would wait five minutes for the greatest value of all rows, which are read again."""
    assert steps("SELECT max(v) AS m FROM t")["rescanned"].materialized


def test_rounds_of_a_recursion_are_a_stage_of_their_own() -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT g, v FROM t UNION ALL SELECT t.g, t.v FROM r JOIN t ON t.g = r.v) SELECT * FROM r"
    )
    found = steps(query)
    rounds = [s for s in found.values() if any(isinstance(node, Recursive) for node in walk(s.relation))]
    assert rounds
    assert all(stage.materialized for stage in rounds)


def test_the_only_group_is_known_without_reading_the_companion() -> None:
    """What the greatest value is now follows from the step that says what it was and is."""
    found = steps("SELECT g FROM t WHERE v = (SELECT max(v) FROM t)")
    assert "now" not in found
    assert [name for name, stage in found.items() if _reads_companion(stage)] == ["touched"]


@pytest.mark.parametrize("name", tpch22.NAMES)
@pytest.mark.parametrize("changed", [10, 10_000_000])
def test_a_stage_reads_only_what_stages_before_it_compute(name: str, changed: int) -> None:
    view = compiled(tpch22.text(name))
    facts = facts_of(view, {each: source(each, 1_000_000, changed) for each in view.sources}, state=100)
    program = asked(facts).of(view)
    assert program is not None
    begun = set[str]()
    for stage in compute_stages(facts, program):
        assert isinstance(stage, Compute | ReadChange)
        assert stage.depends_on <= begun, stage.title
        begun.add(stage.view)
    written = {view for write in apply_outline(facts, program) for view in write.depends_on}
    assert written <= begun


@pytest.mark.parametrize(("changed", "looked"), [(MOST_KEYS, True), (MOST_KEYS + 1, False)])
def test_ranges_of_keys_are_looked_for_while_one_task_can_hold_them(changed: int, looked: bool) -> None:
    query = "SELECT v, count(*) AS n FROM (SELECT g, max(v) AS v FROM t GROUP BY g) x GROUP BY v"
    found = steps(query, changed, rows=20_000_000)["semijoin"]
    assert found.semijoin is not None
    assert (found.reduction.keys is not None) == looked


def test_each_source_is_read_by_few_tasks_whatever_the_query_calls_it() -> None:
    view = Maintained(DuckExecutor(), Case("SELECT t.g, u.v FROM t JOIN t AS u ON t.g = u.g", (T,))).view
    facts = facts_of(view, {name: source(name, 100) for name in view.sources}, state=None)
    (name,) = view.sources
    facts = replace(facts, details=replace(facts.details, namespace=name.namespace))
    text = user_text(in_few_tasks(facts, 2), frozenset({name.catalog}))
    read = f"(SELECT /*+ COALESCE(2) */ * FROM {facts.sources[0].after})"
    assert text.count(read) == 2
    assert f"{read} AS `{name.table}` JOIN {read} AS u" in text
