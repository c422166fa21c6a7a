"""Records of how each stage of a refresh ran, for `explain --analyze`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headrace.physical.stages import Policy, SparkStage


class Skipped(StrEnum):
    """The reason why a step was not computed."""

    DEAD = "DEAD"
    """It follows from steps that turned out to have no rows, or only such steps read it."""
    CONDITION = "CONDITION"
    """Its condition had no rows: what it is for did not occur."""


@dataclass(slots=True)
class StepRun:
    """Record of how one stage ran; filled while it runs.

    Args:
        stage: The stage, as it was planned.
        policy: How its rows were kept.
        rows: Rows it had, or by which it changed a table; None where nobody counted them, as of a subquery.
        seconds: Time it took by itself: of a subquery, writing it; its readers take the rest.
        skipped: Why it was not computed; None where it was.
        key_ranges: How many ranges of keys the source was read within; None where it was not restricted so.
        covered: Whether the source's own change had all rows to collect, so that the source was not read; None where
            that was not asked.
        readers: How many stream tables read it; 1 for this one only.
    """

    stage: SparkStage
    policy: Policy
    rows: int | None = None
    seconds: float = 0.0
    skipped: Skipped | None = None
    key_ranges: int | None = None
    covered: bool | None = None
    readers: int = 1
