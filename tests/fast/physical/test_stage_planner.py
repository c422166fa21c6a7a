"""Which steps of a refresh are kept, and which are part of the stage that reads them."""

from __future__ import annotations

from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained
from kit.planned import facts_of, source

from headrace.algebra.schema import Column
from headrace.names import quote
from headrace.physical.stage_planner import asked, compute_stages
from headrace.physical.stages import Compute

T = Table("t", (Column("g", "int"), Column("v", "int")), ())


def steps(query: str, changed: int = 10) -> dict[str, Compute]:
    """The steps of following a change of so many rows."""
    view = Maintained(DuckExecutor(), Case(query, (T,))).view
    facts = facts_of(view, {name: source(name, 1_000_000, changed) for name in view.sources}, state=100)
    program = asked(facts).of(view)
    assert program is not None
    return {stage.name: stage for stage in compute_stages(facts, program) if isinstance(stage, Compute)}


def test_a_seldom_step_is_part_of_the_stage_that_reads_it() -> None:
    found = steps("SELECT g, max(v) AS m FROM t GROUP BY g")
    seldom = found["rescanned"]
    assert seldom.only_if is not None
    assert not seldom.kept
    assert [s.name for s in found.values() if quote(seldom.view) in s.sql] == ["change"]
    assert found["change"].kept


def test_of_a_change_too_large_to_be_sent_around_it_is_kept() -> None:
    assert steps("SELECT g, max(v) AS m FROM t GROUP BY g", 10_000_000)["rescanned"].kept


def test_what_always_runs_is_kept_however_many_read_it() -> None:
    found = steps("SELECT g, max(v) AS m FROM t GROUP BY g")
    assert {name for name, stage in found.items() if stage.only_if is None and stage.kept} == {"touched", "change"}


def test_what_is_sent_to_every_task_without_a_key_is_a_stage_of_its_own() -> None:
    """Spark would wait five minutes for the greatest value of all rows, which are read again."""
    assert steps("SELECT max(v) AS m FROM t")["rescanned"].kept


def test_rounds_of_a_recursion_are_a_stage_of_their_own() -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT g, v FROM t UNION ALL SELECT t.g, t.v FROM r JOIN t ON t.g = r.v) SELECT * FROM r"
    )
    found = steps(query)
    rounds = [stage for stage in found.values() if "RECURSIVE" in stage.sql]
    assert rounds
    assert all(stage.kept for stage in rounds)


def test_the_only_group_is_known_without_reading_the_companion() -> None:
    """What the greatest value is now follows from the step that says what it was and is."""
    found = steps("SELECT g FROM t WHERE v = (SELECT max(v) FROM t)")
    assert "now" not in found
    assert [name for name, stage in found.items() if "_companion`" in stage.sql] == ["touched"]
