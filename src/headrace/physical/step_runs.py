"""Records of what became of each physical step in one refresh, for `explain --analyze`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headrace.algebra.relations import Relation
from headrace.names import TableName


class Policy(StrEnum):
    """How the rows of a step reach the steps that read it."""

    MATERIALIZE = "MATERIALIZE"
    """Computed once, kept in Spark's memory."""
    LOCAL = "LOCAL"
    """Computed once, few rows expected: held by the driver and sent along with whatever reads them."""
    INLINE = "INLINE"
    """Part of each statement that reads it."""
    IF_NONEMPTY = "IF_NONEMPTY"
    """Part of the one statement that reads it, and of that only where its condition has rows."""
    STORED = "STORED"
    """Written to a stored table."""


class Skipped(StrEnum):
    """Why a step was not computed."""

    DEAD = "DEAD"
    """It follows from steps that turned out to have no rows, or only such steps read it."""
    CONDITION = "CONDITION"
    """What it is for did not occur: its condition had no rows."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """What became of one physical step.

    Args:
        title: What a person saw while it ran.
        step: The program's step, or `state_change`, `companion_change`; empty of what reads a change or writes a table.
        relation: What it computed; None of statements that are no relation.
        reads: The source whose change it read, or whose rows near a change it collected.
        writes: The stored table that it wrote.
        policy: How its rows were kept.
        rows: Rows it had, or wrote; None where nobody counted them, as of what is part of its readers.
        seconds: Time it took by itself; 0 where it is part of its readers.
        skipped: Why it was not computed; None where it was.
        key_ranges: How many ranges of keys the source was read within; None where it was not restricted so.
        change_covered: Whether all rows to collect turned out to be in the source's own change, so that the source was
            not read; None where that was not asked.
        shared_by: How many stream tables read it; 1 for this one only.
    """

    title: str
    policy: Policy
    step: str = ""
    relation: Relation | None = None
    reads: TableName | None = None
    writes: TableName | None = None
    rows: int | None = None
    seconds: float = 0.0
    skipped: Skipped | None = None
    key_ranges: int | None = None
    change_covered: bool | None = None
    shared_by: int = 1
