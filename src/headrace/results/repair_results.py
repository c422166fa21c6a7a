"""Results of repairs: frozen data, printable, JSON-able."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class RepairResult(Record):
    """The outcome of a repair.

    Args:
        name: The stream table or mirror.
        action: `restored` (what was published is shown again), `made anew` (its files were gone), or `intact`.
        detail: What had happened to it.
    """

    name: str
    action: str
    detail: str
