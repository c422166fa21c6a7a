"""Writes a refresh's stored tables in `staging`, and detects foreign commits."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.schema import Column, as_typed
from headrace.lake.apply_change import (
    Change,
    Method,
    Target,
    commits,
    plan_apply,
    plan_log,
    rows_grown,
    run_apply,
)
from headrace.lake.metadata import TableMeta
from headrace.names import LAKE, STAGING, WEIGHT, TableName
from headrace.physical.shared_changes import view_of
from headrace.physical.stages import OVERWRITE, Write
from headrace.refresh.run_context import RunContext
from headrace.refresh.staging_tables import only_ours, somebody_elses, staged, untouched
from headrace.refresh.temporary_results import TemporaryResults
from headrace.statistics.observations import Strategy, StrategyFailed

IN_ONE_STATEMENT = frozenset({Method.OVERWRITE, Method.APPEND})
"""Methods that read a change once. Which rows a delete finds is a question that Spark takes apart: it needs a view."""


class TableWrites:
    """Writes what a refresh has computed.

    Args:
        context: The refresh.
        results: Keeps what it has computed.
    """

    def __init__(self, context: RunContext, results: TemporaryResults) -> None:
        self._context = context
        self._results = results

    def state(self, key: tuple[str, ...] | None = None, *, append_only: bool = False) -> Target:
        """Return the state as applying sees it.

        Args:
            key: Columns that identify a row; None for a bag.
            append_only: Whether its change is known to remove no rows.
        """
        facts = self._context.facts
        columns, unique = facts.details.output, facts.details.keys
        return self._target(facts.name, columns, key, facts.state_rows, unique, append_only=append_only)

    def companion(self, table: TableName, key: tuple[str, ...] | None) -> Target:
        """Return a companion as applying sees it.

        Args:
            table: The companion, in `lake`.
            key: Columns that identify a row; None for a bag.
        """
        columns = self._context.facts.details.companion or ()
        return self._target(table, columns, key, None)

    def _target(
        self,
        table: TableName,
        columns: tuple[Column, ...],
        key: tuple[str, ...] | None,
        rows: int | None,
        unique: tuple[tuple[str, ...], ...] = (),
        *,
        append_only: bool = False,
    ) -> Target:
        facts, failed = self._context.facts, self._context.off(Strategy.DELETE_BY_COLUMNS, table)
        rebuild = f"headrace refresh {facts.name} --full"
        if rows is None:
            rows = self._staged(table).row_count
        where = table.within(STAGING)
        return Target(where, columns, key, rows, unique, failed, rebuild, facts.broadcast, append_only)

    def apply(self, target: Target, change: Change) -> None:
        """Apply a change to a stored table, as its size suggests.

        Args:
            target: The table.
            change: The change.
        """
        context, table = self._context, target.table.within(LAKE)
        change = replace(change, query=context.sql.inlined(change.view))
        applied = plan_apply(target, change)
        if applied.method is Method.NOTHING:
            return
        if change.query is not None and applied.method not in IN_ONE_STATEMENT:
            self._results.show(change.view, change.query)
            applied = plan_apply(target, replace(change, query=None))
        stage = Write(target.table, applied.method.value.lower(), applied.statements, frozenset({change.view}))
        with context.timed(stage) as run:
            run.rows = change.inserted + change.deleted
            before = self._before(table)
            with somebody_elses(table, before, lambda: self._staged(table), commits(applied)):
                after = run_apply(
                    applied,
                    context.runner,
                    lambda: self._staged(table),
                    lambda columns: context.statistics.observe(
                        StrategyFailed(Strategy.DELETE_BY_COLUMNS, table, columns)
                    ),
                )
        only_ours(table, before, after, commits(applied))
        context.outcome.written[table] = after

    def write(self, stage: Write) -> TableMeta:
        """Run the statements that write a table; returns its metadata before."""
        context, table = self._context, stage.table
        with context.timed(stage) as run:
            before = self._before(table)
            for sql in stage.sqls:
                context.runner.run(sql)
        after = self._staged(table)
        run.rows = after.row_count if stage.strategy == OVERWRITE else rows_grown(before, after)
        only_ours(table, before, after, len(stage.sqls))
        context.outcome.written[table.within(LAKE)] = after
        return before

    def append_log(self, change: Change) -> None:
        """Append a change to the change log, if there is one, and hand it to consumers."""
        context, facts = self._context, self._context.facts
        if facts.log is None:
            return
        log, columns = facts.log.within(STAGING), facts.details.output
        change = replace(change, query=context.sql.inlined(change.view))
        statement = plan_log(log, columns, change, facts.next_version)
        self.write(Write(log, "log", (statement,), depends_on=frozenset({change.view})))
        if facts.readers and facts.version is not None:
            view = view_of(context.outcome.written[facts.log], facts.version, facts.next_version)
            # with the log's types: it has small integers as larger ones, by which its readers calculate otherwise
            stored = {c.name: c for c in context.outcome.written[facts.log].columns}
            logged = tuple(stored[c.name] for c in columns)
            kept = map(as_typed, logged)
            rows = f"SELECT {', '.join((*kept, f'CAST({WEIGHT} AS BIGINT) AS {WEIGHT}'))} FROM {change.table}"
            context.changes.hand_over(context.runner, facts.name, view, rows, logged, facts.readers)

    def _staged(self, table: TableName) -> TableMeta:
        return staged(self._context.catalog, table)

    def _before(self, table: TableName) -> TableMeta:
        """Return the metadata of a table that is about to be written."""
        written = self._context.outcome.written.get(table.within(LAKE))
        return untouched(self._context.catalog, table) if written is None else written
