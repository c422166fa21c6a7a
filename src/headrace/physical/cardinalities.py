"""Estimates the cardinality of all that a refresh reads and computes."""

from __future__ import annotations

from collections.abc import Callable

from headrace.algebra.relations import Moment, Scan, Stored
from headrace.ivm.program import COMPANION, STATE, DeltaProgram, Step
from headrace.optimizer.cardinality import Cardinality, Work
from headrace.physical.facts import Facts, SourceFacts

DEFAULT_ROWS = 1_000_000
"""Rows of a source whose snapshots do not tell how many they have."""
CARRIED = 0.1
"""Share of the rows of rewritten files that changed, where that is not known."""


def source_rows(source: SourceFacts) -> int:
    """Return the expected rows of a source at the cut."""
    return DEFAULT_ROWS if source.rows is None else source.rows


def changed_rows(source: SourceFacts) -> int:
    """Return the expected rows of the change of a source."""
    return DEFAULT_ROWS if source.change_rows is None else source.change_rows


def leaf_cardinality(facts: Facts, leaf: Scan | Stored) -> Cardinality:
    """Return the expected cardinality of what is read.

    Args:
        facts: The refresh.
        leaf: A source, the change of one, or something stored.
    """
    if isinstance(leaf, Stored):
        rows = {STATE: facts.state_rows or 0, COMPANION: facts.companion_rows}.get(leaf.name, DEFAULT_ROWS)
        return Cardinality(rows, rows)
    source = facts.by_name[leaf.source]
    whole = source_rows(source)
    if leaf.moment is not Moment.CHANGE:
        return Cardinality(whole, whole)
    changed = changed_rows(source) * (CARRIED if source.carried else 1.0)
    return Cardinality(changed, max(whole, changed))  # of a source that was emptied all rows have changed


def work_of_steps(
    facts: Facts, program: DeltaProgram, share: Callable[[Step], float] = lambda _: 1.0
) -> tuple[Work, dict[str, Cardinality]]:
    """Count the work of a program's steps.

    Args:
        facts: The refresh.
        program: How the table follows its sources.
        share: The share of a step's seconds that counts.

    Returns:
        The work, which tells the cardinality of whatever follows from the steps; and that of each step, by name.
    """
    found: dict[str, Cardinality] = {}

    def known(leaf: Scan | Stored) -> Cardinality:
        return found[leaf.name] if isinstance(leaf, Stored) and leaf.name in found else leaf_cardinality(facts, leaf)

    work = Work(known)
    for step in program.steps:
        before = work.seconds
        found[step.name] = work.add(step.relation)
        work.seconds = before + share(step) * (work.seconds - before)
    return work, found
