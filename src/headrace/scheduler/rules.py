"""The options that a scheduler is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.refresh.groups.grouping import Defaults
from headrace.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Rules:
    """Options of a scheduler.

    Args:
        slots: Refreshes at once.
        quotas: Refreshes at once by pool.
        default_schedule: For tables without a schedule that nothing reads.
        defaults: What the project wants of diamonds.
        poll: Seconds between two looks.
        grace: Seconds that running refreshes are given when the scheduler is to end, before they are cancelled.
        suspend_after: After so many failures in a row a stream table is suspended.
        maintenance: Seconds between two times that stored tables are maintained; None for never.
    """

    slots: int
    default_schedule: Schedule
    quotas: Mapping[str, int] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=Defaults)
    poll: float = 1.0
    grace: float = 60.0
    suspend_after: int = 5
    maintenance: float | None = None
