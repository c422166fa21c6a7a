"""Estimates the seconds of both modes: FULL by query, DIFFERENTIAL by program.

Seconds of one machine class; only their comparison matters, and history corrects both. The constants were measured with
`python -m bench queries` and `python -m bench matrix` on two cores; who changes them raises `calibration.MODEL`.
"""

from __future__ import annotations

from headrace.algebra.relations import Aggregate, Project, Relation
from headrace.compiler.compiled_view import CompiledView, DeltaProgram
from headrace.ivm.program import Step, TableChange
from headrace.optimizer.cardinality import PROBED_PER_SECOND, VALUES_PER_SECOND, Cardinality, Work
from headrace.physical.cardinalities import changed_rows, leaf_cardinality, source_rows, work_of_steps
from headrace.physical.facts import Facts, SourceFacts
from headrace.physical.stage_planner import is_direct

FULL_FIXED = 0.15
DIFFERENTIAL_FIXED = 0.2
"""Seconds of a refresh that does next to nothing."""
COMPANION_FIXED = 0.1
"""A companion is one more table to write."""
LEAST = DIFFERENTIAL_FIXED + COMPANION_FIXED
"""No DIFFERENTIAL refresh of a table with a companion takes less, whatever changed."""
STEP_FIXED = 0.05
"""Seconds of a step beside what it computes."""
BAG_FIXED = 0.25
"""Seconds of finding deleted rows where rows have no key, which takes several statements."""
LEAST_GROUPS = 1_000
"""Groups that a table is taken to have at least while it is nearly empty."""
SELDOM = 0.1
"""Share of refreshes that need a conditional step, such as one for a reserve that ran out."""
WRITE_VALUES_PER_SECOND = 14_000_000
"""Values of rows written to new files, as FULL does."""
COMPARE_ROWS_PER_SECOND = 500_000
"""After FULL, the old and the new contents are compared where somebody reads the difference."""
CHANGE_ROWS_PER_SECOND = 1_500_000
"""Rows of a change that are read from its source."""
APPLY_ROWS_PER_SECOND = 300_000
"""Rows merged into a stored table, those that leave looked for among its files."""
ROWS_PER_SECOND = 4_000_000
"""Of a query that is not maintained, of which no more is known than what it reads."""


def full_seconds(facts: Facts, view: CompiledView | None) -> float:
    """Return seconds of a FULL refresh that writes no companion.

    Args:
        facts: The refresh.
        view: The query; None, or without a tree, where it is not maintained.
    """
    if view is not None and view.tree is not None:
        seconds, found = _computing(facts, view.tree, facts.state_rows)
    else:
        found = float(sum(map(source_rows, facts.sources)))
        seconds = found / ROWS_PER_SECOND
    written = found if facts.state_rows is None else facts.state_rows
    seconds += FULL_FIXED + written * len(facts.details.output) / WRITE_VALUES_PER_SECOND
    if facts.log is not None and not facts.first_load:
        seconds += FULL_FIXED + 2 * written / COMPARE_ROWS_PER_SECOND
    return seconds


def companion_seconds(facts: Facts, view: CompiledView | None) -> float:
    """Estimate by how much writing the companion prolongs a FULL refresh.

    Args:
        facts: The refresh.
        view: Its definition; None where it is not read as algebra.

    Returns:
        Seconds; 0 where the table has no companion.
    """
    if facts.companion is None or view is None or view.tree is None:
        return 0.0
    program = view.full_program()
    alone, _ = _computing(facts, view.tree, facts.state_rows)
    instead = 0.0
    for relation, groups in ((program.companion, facts.companion_rows), (program.state, facts.state_rows)):
        if relation is not None:
            instead += _computing(facts, relation, groups)[0]
    columns = len(facts.details.companion or ())
    writing = COMPANION_FIXED + facts.companion_rows * columns / WRITE_VALUES_PER_SECOND
    return writing + max(0.0, instead - alone if program.state is not None else instead)


def _computing(facts: Facts, relation: Relation, groups: int | None) -> tuple[float, float]:
    """Return seconds of computing a relation over the sources as they are, and its rows.

    Args:
        facts: The refresh.
        relation: What is computed.
        groups: How many rows it has, if known; it tells how many groups, where it is these that it shows.
    """
    work = Work(lambda leaf: leaf_cardinality(facts, leaf), _groups(relation, groups))
    found = work.add(relation).rows
    return work.seconds, found


def differential_seconds(facts: Facts, program: DeltaProgram) -> float:
    """Return seconds of a DIFFERENTIAL refresh.

    Args:
        facts: The refresh.
        program: What it would compute.
    """
    work, _ = _steps(facts, program)
    seconds = DIFFERENTIAL_FIXED + STEP_FIXED * len(program.steps)
    seconds += _applying(program.state, work, facts.state_rows or 0, direct=is_direct(facts, program))
    if program.companion is not None:
        seconds += COMPANION_FIXED + _applying(program.companion, work, facts.companion_rows)
    return seconds + work.seconds + sum(_reading(facts, s) for s in facts.sources if s.change is not None)


def step_rows(facts: Facts, program: DeltaProgram) -> dict[str, float]:
    """Return the expected rows of each step.

    Args:
        facts: The refresh.
        program: How the table follows its sources.

    Returns:
        Rows by the step's name.
    """
    return {name: found.rows for name, found in _steps(facts, program)[1].items()}


def _steps(facts: Facts, program: DeltaProgram) -> tuple[Work, dict[str, Cardinality]]:
    """Count the work of a program's steps."""
    return work_of_steps(facts, program, lambda step: _share(facts, step))


def _share(facts: Facts, step: Step) -> float:
    """Return the share of a step's cost charged to this refresh.

    A step that several tables read is computed by one of them.
    """
    if step.only_if is not None:
        return SELDOM
    if step.semijoin is not None and step.follows:
        return 1 / facts.shared_semijoins[step.semijoin].common.readers
    return 1.0


def _applying(change: TableChange, work: Work, rows: int, *, direct: bool = False) -> float:
    """Return seconds of writing a change; rows that leave are looked for in the whole table.

    Args:
        change: The change.
        work: What has computed it.
        rows: In the table.
        direct: Whether it is written as it is computed.
    """
    changed = work.add(change.change).rows
    if change.insert_only:
        values = changed * len(change.change.columns) / WRITE_VALUES_PER_SECOND
        return values if direct else values + changed / APPLY_ROWS_PER_SECOND
    if change.key is not None:
        return min(changed, 2 * max(rows, LEAST_GROUPS)) / APPLY_ROWS_PER_SECOND + rows / PROBED_PER_SECOND
    return BAG_FIXED + changed / APPLY_ROWS_PER_SECOND + 3 * rows / VALUES_PER_SECOND + rows / PROBED_PER_SECOND


def _groups(tree: Relation, rows: int | None) -> dict[int, int]:
    """Return how many groups a relation has, where these are its rows."""
    node = tree
    while isinstance(node, Project):
        node = node.input
    return {} if rows is None or not isinstance(node, Aggregate) else {id(node): rows}


def _reading(facts: Facts, source: SourceFacts) -> float:
    """Return seconds of reading a change.

    Rows deleted in place are found by reading the files they are in.
    """
    columns = next(len(use.columns) for use in facts.details.sources if use.name == source.name)
    if source.appended:
        seconds = changed_rows(source) * columns / VALUES_PER_SECOND
    else:
        seconds = changed_rows(source) / CHANGE_ROWS_PER_SECOND
        if not source.logged:
            seconds += source_rows(source) * columns / VALUES_PER_SECOND
    # whoever reads it for others is charged its part
    return seconds / (source.common.readers if source.common is not None else 1)
