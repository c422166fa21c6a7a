"""What refreshes of this session have taught about tables; nothing that a result depends on."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.physical.shared_semijoins import Needs
from headrace.statistics.failed_strategies import FailedStrategies
from headrace.statistics.observed_cardinalities import ObservedCardinalities


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """What is remembered from one refresh to the next.

    Args:
        locators: Of stored tables: columns that did not tell the rows to delete from others.
        near: Of sources: columns with too few values for rows near a change to be few.
        collected: The same where the rows are collected for several stream tables.
        enclosed: Of sources: columns by which rows near a change were not all among what changed, and the stream table
            that collected them for itself.
        needs: What several stream tables may read together.
        many: Of stream tables: steps, and of sources: their change, that had too many rows to be held as literal ones.
        sizes: Of stream tables: how many rows the steps of large changes had.
    """

    locators: FailedStrategies = field(default_factory=FailedStrategies)
    near: FailedStrategies = field(default_factory=FailedStrategies)
    collected: FailedStrategies = field(default_factory=FailedStrategies)
    enclosed: FailedStrategies = field(default_factory=FailedStrategies)
    needs: Needs = field(default_factory=Needs)
    many: FailedStrategies = field(default_factory=FailedStrategies)
    sizes: ObservedCardinalities = field(default_factory=ObservedCardinalities)
