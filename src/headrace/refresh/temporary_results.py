"""Temporary results of a refresh, some of them shared with other stream tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headrace.names import TableName
from headrace.physical.facts import Common
from headrace.physical.shared_changes import LOCAL_RELATION_ROWS, About
from headrace.physical.stage_planner import fits_local_relation
from headrace.physical.stages import Policy
from headrace.physical.step_runs import StepRun
from headrace.refresh.run_context import RunContext
from headrace.statistics.observations import StepCounted, Strategy, StrategyFailed


class TemporaryResults:
    """Keeps rows in Spark until `close`.

    Args:
        context: The refresh.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._views: list[str] = []
        self._common: list[str] = []
        self._small_change = fits_local_relation(context.facts)

    def close(self) -> None:
        """Free everything."""
        context = self._context
        for name in reversed(self._views):
            context.runner.release(name)
        for name in self._common:
            context.changes.leave(context.runner, name, context.facts.name)

    def keep(
        self,
        view: str,
        sql: str,
        aggregates: Mapping[str, str] | None = None,
        *,
        stem: str,
        large: int | None = None,
        run: StepRun | None = None,
    ) -> Mapping[str, Any]:
        """Compute a query once, and keep its rows.

        Args:
            view: Temporary name.
            sql: The query.
            aggregates: SQL aggregates that are computed along with it, by result name.
            stem: What is the same of its name in all refreshes of the table: by it is remembered how many rows it had.
            large: How many rows changed, where these are not few.
            run: Its record.

        Returns:
            The aggregates' values by name.
        """
        context, table = self._context, self._context.facts.name
        self._views.append(view)
        if large is None:
            with self._expecting(table, stem, view) as local:
                found = context.runner.materialize(view, sql, aggregates, local=local)
        else:
            most = context.statistics.at_most(table, stem, large)
            found = context.runner.materialize(
                view, sql, aggregates, local=most is not None and most <= LOCAL_RELATION_ROWS
            )
            rows = context.runner.kept_count(view)
            if rows is not None and (run is None or run.skipped is None):  # a skipped step tells nothing
                context.statistics.observe(StepCounted(table, stem, large, rows))
        self._record(view, run)
        return found

    def show(self, view: str, sql: str) -> None:
        """Give a query a temporary name; whatever reads it computes it."""
        self._views.append(view)
        self._context.runner.view(view, sql)

    def read_common(
        self,
        about: About,
        common: Common,
        measures: Mapping[str, str] | None = None,
        *,
        stem: str,
        sql: Callable[[], str] | None = None,
        run: StepRun | None = None,
    ) -> Mapping[str, Any]:
        """Read a shared change; compute it first if needed, and charge each reader a share.

        Args:
            about: The source, or its semi-join with changes.
            common: How it is kept.
            measures: SQL aggregates over its columns, by result name.
            stem: As for `keep`.
            sql: Writes the statement that computes it, should it not be there yet; None: as `common` says.
            run: Its record.

        Returns:
            The aggregates' values by name.
        """
        context, source = self._context, about if isinstance(about, TableName) else about[0]
        self._common.append(common.view)
        with self._expecting(source, stem, common.view) as local:
            begun = time.perf_counter()
            read = context.changes.read(context.runner, about, common, measures=measures, local=local, sql=sql)
            context.outcome.shared += read.seconds - (time.perf_counter() - begun)
        if run is not None:
            run.readers = common.readers
        self._record(common.view, run)
        return read.measures

    @contextmanager
    def _expecting(self, table: TableName, stem: str, view: str) -> Iterator[bool]:
        """Yield whether few rows are expected under a name, by what was observed before."""
        context = self._context
        local = self._small_change and (stem,) not in context.off(Strategy.LOCAL_ROWS, table)
        yield local
        if local and context.runner.literal_count(view) is None:
            context.statistics.observe(StrategyFailed(Strategy.LOCAL_ROWS, table, (stem,)))

    def _record(self, view: str, run: StepRun | None) -> None:
        if run is not None:
            runner = self._context.runner
            run.rows = runner.kept_count(view)
            run.policy = Policy.MATERIALIZE if runner.literal_count(view) is None else Policy.LOCAL
