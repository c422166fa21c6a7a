"""Applying a change to a stored table: three ways, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from headrace.algebra.schema import Column
from headrace.errors import InternalError, Unsupported
from headrace.lake.bag_delete import LOCATOR_ROWS, BagDelete, plan_bag, rollback_sql
from headrace.lake.compare import incomparable
from headrace.lake.measured_change import (
    MEASURES,
    Change,
    Target,
    append_sql,
    change_of,
    delete_sql,
    measures,
    names,
    overwrite_sql,
    replace_sql,
)
from headrace.lake.metadata import TableMeta
from headrace.names import LAKE, WEIGHT, TableName

SMALL_STATE_CELLS = 400_000
"""A state of at most so many values (rows times columns) is rewritten whole.

There one commit costs what two do (measured with 13 columns: equal at 30,000 rows, 0.9 s against 0.6 s at 60,000, 5.5
s against 1.1 s at 1 M), and leaves one file instead of one more per refresh.
"""

REAPPEND_ROWS = 200_000
"""Up to so many rows that a delete took along too many are put back without further thought."""

REAPPEND_FACTOR = 4
"""Putting back copies that a delete took along is cheaper than counting first, up to this multiple of what must go."""

__all__ = [
    "MEASURES",
    "Apply",
    "Change",
    "Method",
    "Target",
    "change_for",
    "change_of",
    "commits",
    "measures",
    "measures_for",
    "plan_apply",
    "plan_log",
    "rows_grown",
    "run_apply",
]


class Runner(Protocol):
    """Operations of Spark that applying a change needs."""

    def run(self, sql: str) -> list[Any]:
        """Run one statement."""
        ...


class Method(StrEnum):
    """Ways to write a change to a stored table."""

    NOTHING = "NOTHING"
    OVERWRITE = "OVERWRITE"
    APPEND = "APPEND"
    DELETE_BY_KEY = "DELETE_BY_KEY"
    DELETE_ROWS = "DELETE_ROWS"


@dataclass(frozen=True, slots=True)
class Apply:
    """A planned application: what will be run, and what must be true afterwards.

    Args:
        table: The stored table.
        method: The way chosen.
        statements: What is run, in order, each one Iceberg commit.
        growth: By how many rows the table must have grown afterwards; None for any.
        deleted: How many rows the first statement must remove, where `bag` is given.
        bag: What to do when the first statement removed more than that, because rows have further copies.
        rebuild: As in `Target`.
    """

    table: TableName
    method: Method
    statements: tuple[str, ...]
    growth: int | None
    deleted: int = 0
    bag: BagDelete | None = None
    rebuild: str | None = None


def plan_log(log: TableName, columns: tuple[Column, ...], change: Change, version: int) -> str:
    """Return the statement that appends a change to a log."""
    return (
        f"INSERT INTO {log.sql} SELECT {names(columns)}, CAST({WEIGHT} AS BIGINT), CAST({version} AS BIGINT) "
        f"FROM {change.table}"
    )


def _sought(target: Target) -> tuple[Column, ...]:
    """Return the columns by which removed rows may be looked for.

    None where all rows are written anew. A change that turns out to be too large for that is applied without what is
    known of its columns.
    """
    return () if target.append_only or _is_small(target) else target.identity


def measures_for(target: Target) -> dict[str, str]:
    """Return what must be measured of a change before it is applied, for `materialize`.

    Different values are counted only where they decide by which columns rows are looked for.
    """
    distinct = target.key is None and (target.rows is None or target.rows >= LOCATOR_ROWS)
    return measures(_sought(target), distinct=distinct)


def change_for(target: Target, view: str, measured: Mapping[str, Any]) -> Change:
    """Return the change in `view`, measured for a table.

    Args:
        target: The table.
        view: The change's temporary view.
        measured: What the aggregates of `measures_for` gave.
    """
    return change_of(view, measured, _sought(target))


def plan_apply(target: Target, change: Change) -> Apply:
    """Choose how to apply a change.

    Raises:
        Unsupported: `TYPE_NOT_COMPARABLE` when rows must be found by a value that Spark cannot compare.
    """
    return replace(_chosen(target, change), rebuild=target.rebuild)


def _chosen(target: Target, change: Change) -> Apply:
    if not change.inserted and not change.deleted:
        return Apply(target.table, Method.NOTHING, (), 0)
    growth = change.inserted - change.deleted
    append = (append_sql(target, change),) if change.inserted else ()
    if not change.deleted:
        return Apply(target.table, Method.APPEND, append, growth)
    _check_comparable(target)
    if _is_small(target, change.inserted):
        # groups that are few are often touched all: nothing of the old ones remains that would have to be read
        replaced = target.key is not None and change.deleted == target.rows
        written = replace_sql if replaced or change.contents is not None else overwrite_sql
        return Apply(target.table, Method.OVERWRITE, (written(target, change),), growth)
    if target.key is not None:
        return Apply(target.table, Method.DELETE_BY_KEY, (delete_sql(target, change, target.identity), *append), growth)
    bag = plan_bag(target, change)
    return Apply(target.table, Method.DELETE_ROWS, (bag.attempts[0].sql, *append), growth, change.deleted, bag)


def _is_small(target: Target, inserted: int = 0) -> bool:
    return target.rows is not None and (target.rows + inserted) * len(target.columns) <= SMALL_STATE_CELLS


def _check_comparable(target: Target) -> None:
    bad = incomparable(target.identity)
    if bad:
        raise Unsupported(
            "TYPE_NOT_COMPARABLE",
            f"Rows of {target.table.within(LAKE)} cannot be deleted one by one: {', '.join(bad)} cannot be compared.",
            hint="Leave the column out, cast it to a comparable type, or use REFRESH MODE FULL.",
        )


def commits(plan: Apply) -> int:
    """Return how many snapshots a plan makes at the most, but for those that it takes back."""
    return len(plan.statements) if plan.bag is None else max(2, len(plan.statements))


def run_apply(
    plan: Apply,
    runner: Runner,
    read: Callable[[], TableMeta],
    failed: Callable[[tuple[str, ...]], None] = lambda columns: None,
) -> TableMeta:
    """Run a plan and check the outcome.

    Args:
        plan: What to do.
        runner: Runs the statements.
        read: Reads the table's current metadata through its `staging` pointer.
        failed: Told of columns by which a delete took along too much.

    Returns:
        The table's metadata afterwards.

    Raises:
        InternalError: `STATE_DIVERGED` when the table did not hold the rows the change removes; nothing must be
            published then.
    """
    before = read()
    if plan.bag is None:
        for statement in plan.statements:
            runner.run(statement)
    else:
        _delete_from_bag(plan, plan.bag, before, runner, read, failed)
    after = read()
    if plan.growth is not None and rows_grown(before, after) != plan.growth:
        raise _diverged(plan, rows_grown(before, after))
    return after


def _delete_from_bag(
    plan: Apply,
    bag: BagDelete,
    before: TableMeta,
    runner: Runner,
    read: Callable[[], TableMeta],
    failed: Callable[[tuple[str, ...]], None],
) -> None:
    """Try the cheap deletes; their row counts show whether they were exact.

    Every row that must go is matched, so that a delete which removed exactly as many rows removed exactly those.
    """
    undo = rollback_sql(plan.table, before)
    removed = 0
    for number, attempt in enumerate(bag.attempts):
        if number:
            runner.run(undo)
        runner.run(attempt.sql)
        removed = -rows_grown(before, read())
        if removed == plan.deleted:
            for rest in plan.statements[1:]:
                runner.run(rest)
            return
        if removed < plan.deleted:
            raise _diverged(plan, -removed)
        failed(attempt.columns)
    if before.current_snapshot_id is not None and removed <= max(REAPPEND_FACTOR * plan.deleted, REAPPEND_ROWS):
        runner.run(bag.reappend(before.current_snapshot_id))
        return
    for statement in (undo, bag.by_position, *plan.statements[1:]):
        runner.run(statement)


def rows_grown(before: TableMeta, after: TableMeta) -> int:
    """Return rows `after` has more than `before`, by the counters of the snapshots between them."""
    grown = 0
    for snapshot in after.ancestors(after.current_snapshot_id):
        if snapshot.id == before.current_snapshot_id:
            break
        grown += snapshot.rows_added
    return grown


def _diverged(plan: Apply, grown: int) -> InternalError:
    anew = (
        f"Run `{plan.rebuild}` to compute it again, and please report this." if plan.rebuild else "Please report this."
    )
    return InternalError(
        "STATE_DIVERGED",
        f"Applying a change to {plan.table.within(LAKE)} moved {grown} rows, expected {plan.growth}.",
        detail=f"Method {plan.method}. Nothing was published.",
        hint=anew,
    )
