"""State shared by the parts of a running refresh: facts, Spark, SQL, outcome so far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.catalog import Catalog
from headrace.events import Events, stage_told
from headrace.lake.metadata import TableMeta
from headrace.names import TableName
from headrace.physical.facts import Facts
from headrace.physical.plan_sql import PlanSql
from headrace.physical.shared_changes import SharedChanges
from headrace.physical.stages import Policy, SparkStage, Write
from headrace.physical.step_runs import StepRun
from headrace.ports import Runner
from headrace.statistics.observations import Strategy
from headrace.statistics.session_statistics import SessionStatistics


@dataclass(slots=True)
class Outcome:
    """Holds what a run has done so far.

    Args:
        written: Stored tables that were written, by `lake` name, with their metadata in `staging` now.
        inserted: Rows that appear in the state.
        deleted: Rows that disappear.
        seconds: Seconds per stage, by title.
        jobs: Spark jobs run, where the session can tell.
        compared: Whether `inserted` and `deleted` count what really differs, not whole contents.
        shared: Seconds by which it would have taken longer had all readers of what is common computed a part of it;
            negative for who computed it for others.
        steps: What became of each stage, in the order in which they ended.
    """

    written: dict[TableName, TableMeta] = field(default_factory=dict)
    inserted: int = 0
    deleted: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    jobs: int | None = None
    compared: bool = False
    shared: float = 0.0
    steps: list[StepRun] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunContext:
    """One refresh under way; safe to be used by the threads that write its tables.

    Args:
        facts: What it was planned from.
        runner: Runs Spark SQL under the definition's semantics.
        catalog: Where the `staging` pointers are.
        events: Told of each stage.
        changes: Keeps changes that several stream tables read.
        statistics: What earlier refreshes observed; this one reports to it.
        sql: Writes the statements of its stages.
        outcome: What it has done so far.
    """

    facts: Facts
    runner: Runner
    catalog: Catalog
    events: Events
    changes: SharedChanges
    statistics: SessionStatistics
    sql: PlanSql
    outcome: Outcome = field(default_factory=Outcome)

    @contextmanager
    def timed(self, stage: SparkStage, policy: Policy = Policy.MATERIALIZE) -> Iterator[StepRun]:
        """Tell of a stage, time it and record what became of it.

        Args:
            stage: The stage.
            policy: How its rows are kept, as far as is known before it runs.
        """
        table, run = str(self.facts.name), StepRun(stage, Policy.STORED if isinstance(stage, Write) else policy)
        with stage_told(self.events, table, stage.title):
            start = time.perf_counter()
            yield run
            seconds = time.perf_counter() - start
            self.outcome.seconds[stage.title] = round(self.outcome.seconds.get(stage.title, 0.0) + seconds, 4)
        run.seconds = round(seconds, 4)
        self.outcome.steps.append(run)

    def off(self, strategy: Strategy, subject: TableName) -> frozenset[tuple[str, ...]]:
        """Return with what a strategy is not to be tried in this refresh, because it failed before."""
        return self.statistics.off(strategy, subject, by=self.facts.name)
