"""Session statistics: what refreshes have observed, for planning the next ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from headrace.catalog import RanAs
from headrace.definitions.table_memory import PerTable, TableMemory
from headrace.ivm.program import Key, Need
from headrace.names import TableName
from headrace.semantics import Semantics
from headrace.statistics.calibration import warmth
from headrace.statistics.failed_strategies import FailedStrategies, Names
from headrace.statistics.observations import (
    Observation,
    ProgramNeeds,
    RefreshBegan,
    RefreshRan,
    StepCounted,
    Strategy,
    StrategyFailed,
)
from headrace.statistics.observed_cardinalities import ObservedCardinalities


class SessionStatistics:
    """Remembers what refreshes observed; safe to use from several threads.

    `observe` is the only method that changes anything. Reads are pure, so that choosing, costing and running a refresh
    find the same however often they ask.

    Args:
        memory: Forgets tables that are gone.
    """

    def __init__(self, memory: TableMemory | None = None) -> None:
        self._failed = FailedStrategies(memory)
        self._cardinalities = ObservedCardinalities(memory)
        self._needs = PerTable[tuple[Semantics, Mapping[Key, Need]]](memory)
        self._ran = Counter[RanAs]()

    def observe(self, seen: Observation) -> None:
        """Record an observation of a refresh."""
        match seen:
            case RefreshBegan(table):
                self._failed.count_refresh(table)
            case RefreshRan(mode):
                self._ran[mode] += 1
            case StrategyFailed(strategy, subject, names):
                self._failed.add(strategy, subject, names)
            case StepCounted(table, step, changed, rows):
                self._cardinalities.note(table, step, changed, rows)
            case ProgramNeeds(table, semantics, needs):
                self._needs.put(table, (semantics, needs))
            case _:
                assert_never(seen)

    def off(self, strategy: Strategy, subject: TableName, *, by: TableName) -> frozenset[Names]:
        """Return columns or steps for which a strategy is off in this refresh.

        Args:
            strategy: The strategy.
            subject: The table that is read or written.
            by: The stream table that is refreshed.
        """
        return self._failed.off(strategy, subject, by)

    def at_most(self, table: TableName, step: str, changed: int) -> int | None:
        """Return a number of rows that a step will hardly exceed; None where nothing is known.

        Args:
            table: The stream table.
            step: The step.
            changed: How many rows changed.
        """
        return self._cardinalities.at_most(table, step, changed)

    def needs(self, semantics: Semantics) -> dict[TableName, Mapping[Key, Need]]:
        """Return the programs' semi-join needs by table, for the same settings only.

        Tables that are computed under other settings share nothing.
        """
        return {table: needs for table, (own, needs) in self._needs.all().items() if own == semantics}

    def warmth(self, mode: RanAs) -> int:
        """Return how many refreshes have warmed this session up for a mode."""
        return warmth(self._ran, mode)
