"""Applying a change to a stored table: three ways, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from headrace.algebra.schema import Column
from headrace.errors import InternalError, Unsupported
from headrace.lake.compare import incomparable, key_expressions, same
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import VERSION
from headrace.names import RESERVED_PREFIX, WEIGHT, TableName, quote

SMALL_STATE_ROWS = 200_000
"""A state of at most this many rows (old and new together) is rewritten whole."""


class Runner(Protocol):
    """What applying needs of Spark."""

    def run(self, sql: str) -> list[Any]:
        """Run one statement."""
        ...


class Method(StrEnum):
    """How a change reaches the stored table."""

    NOTHING = "NOTHING"
    OVERWRITE = "OVERWRITE"
    APPEND = "APPEND"
    DELETE_BY_KEY = "DELETE_BY_KEY"
    DELETE_ROWS = "DELETE_ROWS"


@dataclass(frozen=True, slots=True)
class Target:
    """A stored table as applying sees it.

    Args:
        table: Its name in `staging`.
        columns: Its columns.
        key: Columns that identify a row, NULL-safely; None for a bag.
        rows: Rows it has, None when unknown.
    """

    table: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None
    rows: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """A materialized change.

    Args:
        view: Temporary view: the target's columns and the weight, consolidated (no row twice, no weight 0).
        inserted: Sum of the positive weights.
        deleted: Sum of the negative weights, as a positive number.
        rows: Distinct rows in the view.
    """

    view: str
    inserted: int
    deleted: int
    rows: int


@dataclass(frozen=True, slots=True)
class Apply:
    """A planned application: what will be run, and what must be true afterwards.

    Args:
        table: The stored table.
        method: The way chosen.
        statements: What is run, in order, each one Iceberg commit.
        inserted: Rows added.
        deleted: Rows removed.
        exact: Statements to run instead if the first delete turns out to remove more rows than the change says.
    """

    table: TableName
    method: Method
    statements: tuple[str, ...]
    inserted: int
    deleted: int
    exact: tuple[str, ...] = ()


MEASURES: Mapping[str, str] = {
    "rows": "count(*)",
    "inserted": f"coalesce(sum(CASE WHEN {WEIGHT} > 0 THEN {WEIGHT} END), 0)",
    "deleted": f"coalesce(-sum(CASE WHEN {WEIGHT} < 0 THEN {WEIGHT} END), 0)",
}
"""Aggregates to ask of `materialize`, for `change_of`."""


def change_of(view: str, measured: Mapping[str, Any]) -> Change:
    """The change in `view`, from what `MEASURES` gave."""
    return Change(view, int(measured["inserted"]), int(measured["deleted"]), int(measured["rows"]))


def plan_store(target: Target, query: str) -> Apply:
    """Replace the whole table by a query's rows (FULL)."""
    statement = f"INSERT OVERWRITE {target.table.sql} {query}"
    return Apply(target.table, Method.OVERWRITE, (statement,), -1, -1)


def plan_log(log: TableName, columns: tuple[Column, ...], change: Change, version: int) -> str:
    """Statement that appends a change to a log."""
    names = _names(columns)
    return (
        f"INSERT INTO {log.sql} SELECT {names}, CAST({WEIGHT} AS BIGINT), CAST({version} AS BIGINT) AS {VERSION} "
        f"FROM {quote(change.view)}"
    )


def plan_apply(target: Target, change: Change) -> Apply:
    """Choose how to apply a change.

    Raises:
        Unsupported: `TYPE_NOT_COMPARABLE` when rows must be found by a value that Spark cannot compare.
    """
    raise NotImplementedError


def run_apply(plan: Apply, runner: Runner, read: Callable[[], TableMeta]) -> TableMeta:
    """Run a plan and check the outcome.

    Args:
        plan: What to do.
        runner: Runs the statements.
        read: Reads the table's current metadata through its `staging` pointer.

    Returns:
        The table's metadata afterwards.

    Raises:
        InternalError: `STATE_DIVERGED` when the table did not hold the rows the change removes; nothing must be
            published then.
    """
    raise NotImplementedError


def _names(columns: tuple[Column, ...], alias: str | None = None) -> str:
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + quote(c.name) for c in columns)
