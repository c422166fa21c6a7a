"""What a refresh can do without, once steps have turned out to be empty."""

from __future__ import annotations

from kit.tpch import compiled

from headrace.algebra.relations import Filter, Stored, Union
from headrace.algebra.scalar import column
from headrace.demo import tpch22
from headrace.ivm.change import weigh
from headrace.ivm.program import DeltaProgram, Step, TableChange
from headrace.physical.dead_steps import DeadSteps, dead_steps

MET, OTHER = Stored("met", ("k",)), Stored("other", ("k",))
REACHED, ROWS = Stored("reached", ("k",)), Stored("rows", ("k",))
READ = Stored("state", ("k",))


def test_what_follows_from_nothing_and_what_only_that_would_read() -> None:
    steps = (
        Step("met", Filter(READ, column("k"))),
        Step("other", Filter(READ, column("k"))),
        Step("reached", Union((MET, OTHER))),
        Step("rows", Filter(MET, column("k"))),
        Step("late", ROWS, only_if=OTHER),
    )
    state = TableChange(Union((weigh(ROWS, 1), weigh(Stored("late", ("k",)), -1))), None)
    program = DeltaProgram(steps, state)
    # nobody reads what is reached
    assert dead_steps(program, set()) == {"reached"}
    assert dead_steps(program, {"other"}) == {"other", "late", "reached"}
    assert dead_steps(program, {"met"}) == {"met", "reached", "rows", "late", "other"}


def test_what_a_companion_needs_is_needed() -> None:
    steps = (Step("met", Filter(READ, column("k"))), Step("other", Filter(READ, column("k"))))
    program = DeltaProgram(steps, TableChange(weigh(MET, 1), None), TableChange(weigh(OTHER, 1), None))
    assert dead_steps(program, {"met"}) == {"met"}


def test_suppliers_that_nobody_met_are_not_looked_for() -> None:
    view = compiled(tpch22.text("q20"))
    lineitem = next(s for s in view.sources if s.table == "lineitem")
    sizes = {s: 10_000_000 for s in view.sources}
    program = view.delta_program(frozenset([lineitem]), frozenset(), sizes, 100_000)
    assert program is not None
    known = DeadSteps(program)
    assert not known.steps
    known.note_empty("affected")
    assert {"semijoin", "change_2"} <= known.steps
    assert "change" not in known.steps  # it is what the companion follows from
    known.note_empty("change")
    assert known.steps == {step.name for step in program.steps}
