"""Applying a change to a stored table: three ways, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from headrace.algebra.schema import Column
from headrace.errors import InternalError, Unsupported
from headrace.lake.compare import consolidate, incomparable, key_expressions, same
from headrace.lake.metadata import TableMeta
from headrace.names import WEIGHT, TableName, quote

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
    STORE = "STORE"
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
        growth: By how many rows the table must have grown afterwards; None for any.
        first_growth: By how many rows it must have grown after the first statement, where `exact` is given.
        exact: What to run instead of the first statement if that turns out to delete too many rows.
    """

    table: TableName
    method: Method
    statements: tuple[str, ...]
    growth: int | None
    first_growth: int = 0
    exact: str | None = None


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
    """Replace the whole table by a query's rows (FULL); the query gives the table's columns in order."""
    return Apply(target.table, Method.STORE, (f"INSERT OVERWRITE {target.table.sql} {query}",), None)


def plan_log(log: TableName, columns: tuple[Column, ...], change: Change, version: int) -> str:
    """Statement that appends a change to a log."""
    return (
        f"INSERT INTO {log.sql} SELECT {_names(columns)}, CAST({WEIGHT} AS BIGINT), CAST({version} AS BIGINT) "
        f"FROM {quote(change.view)}"
    )


def plan_apply(target: Target, change: Change) -> Apply:
    """Choose how to apply a change.

    Raises:
        Unsupported: `TYPE_NOT_COMPARABLE` when rows must be found by a value that Spark cannot compare.
    """
    if not change.inserted and not change.deleted:
        return Apply(target.table, Method.NOTHING, (), 0)
    growth = change.inserted - change.deleted
    append = (_append(target, change),) if change.inserted else ()
    if not change.deleted:
        return Apply(target.table, Method.APPEND, append, growth)
    _check_comparable(target)
    if target.rows is not None and target.rows + change.inserted <= SMALL_STATE_ROWS:
        return Apply(target.table, Method.OVERWRITE, (_overwrite(target, change),), growth)
    if target.key is not None:
        return Apply(target.table, Method.DELETE_BY_KEY, (_delete(target, change), *append), growth)
    statements = (_delete(target, change), *append)
    return Apply(target.table, Method.DELETE_ROWS, statements, growth, -change.deleted, _delete_copies(target, change))


def _check_comparable(target: Target) -> None:
    bad = incomparable(_identity(target))
    if bad:
        raise Unsupported(
            "TYPE_NOT_COMPARABLE",
            f"Rows of {target.table.within('lake')} cannot be deleted one by one: {', '.join(bad)} cannot be compared.",
            hint="Leave the column out, cast it to a comparable type, or use REFRESH MODE FULL.",
        )


def _identity(target: Target) -> tuple[Column, ...]:
    """The columns that tell rows apart."""
    if target.key is None:
        return target.columns
    by_name = {c.name: c for c in target.columns}
    return tuple(by_name[k] for k in target.key)


def _append(target: Target, change: Change) -> str:
    return f"INSERT INTO {target.table.sql} {_inserted(target, change)}"


def _inserted(target: Target, change: Change) -> str:
    """The new rows, each as often as its weight says."""
    source = f"SELECT {_names(target.columns)} FROM {quote(change.view)}"
    if target.key is not None:
        return f"{source} WHERE {WEIGHT} > 0"
    return f"{source} LATERAL VIEW explode(sequence(1, {WEIGHT})) __hr_copies AS __hr_copy WHERE {WEIGHT} > 0"


def _old(change: Change) -> str:
    return f"(SELECT * FROM {quote(change.view)} WHERE {WEIGHT} < 0)"


def _delete(target: Target, change: Change) -> str:
    condition = same(_identity(target), "s", "c")
    return f"DELETE FROM {target.table.sql} AS s WHERE EXISTS (SELECT 1 FROM {_old(change)} AS c WHERE {condition})"


def _delete_copies(target: Target, change: Change) -> str:
    """Delete as many copies of each row as its weight says, by file and position."""
    keys = ", ".join(e for c in _identity(target) for e in key_expressions(c, "s"))
    victims = (
        f"SELECT s._file AS __hr_file, s._pos AS __hr_pos, c.{WEIGHT} AS __hr_n, "
        f"row_number() OVER (PARTITION BY {keys} ORDER BY s._file, s._pos) AS __hr_i "
        f"FROM {target.table.sql} AS s JOIN {_old(change)} AS c ON {same(_identity(target), 's', 'c')}"
    )
    return (
        f"MERGE INTO {target.table.sql} AS t "
        f"USING (SELECT __hr_file, __hr_pos FROM ({victims}) WHERE __hr_i <= -__hr_n) AS v "
        f"ON t._file = v.__hr_file AND t._pos = v.__hr_pos WHEN MATCHED THEN DELETE"
    )


def _overwrite(target: Target, change: Change) -> str:
    table, names = target.table.sql, _names(target.columns)
    if target.key is not None:
        kept = f"SELECT {_names(target.columns, 's')} FROM {table} AS s LEFT ANTI JOIN {_old(change)} AS c"
        query = f"{kept} ON {same(_identity(target), 's', 'c')} UNION ALL {_inserted(target, change)}"
        return f"INSERT OVERWRITE {table} SELECT /*+ COALESCE(1) */ {names} FROM ({query})"
    both = f"SELECT {names}, 1L AS {WEIGHT} FROM {table} UNION ALL SELECT {names}, {WEIGHT} FROM {quote(change.view)}"
    return (
        f"INSERT OVERWRITE {table} SELECT /*+ COALESCE(1) */ {names} FROM ({consolidate(both, target.columns)}) "
        f"LATERAL VIEW explode(sequence(1, {WEIGHT})) __hr_copies AS __hr_copy WHERE {WEIGHT} > 0"
    )


def _names(columns: tuple[Column, ...], alias: str | None = None) -> str:
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + quote(c.name) for c in columns)


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
    before = meta = read()
    statements = plan.statements
    if plan.exact is not None:
        runner.run(statements[0])
        meta = read()
        if _grown(before, meta) != plan.first_growth:
            # Some of the rows have further copies that must stay. Rare, and only known once it has happened.
            runner.run(_roll_back(plan.table, before))
            runner.run(plan.exact)
        statements = statements[1:]
    for statement in statements:
        runner.run(statement)
    meta = read()
    if plan.growth is not None and _grown(before, meta) != plan.growth:
        raise _diverged(plan, before, meta)
    return meta


def _roll_back(table: TableName, to: TableMeta) -> str:
    name = ".".join(map(quote, table.parts[1:])).replace("'", "\\'")
    return f"CALL {quote(table.catalog)}.system.rollback_to_snapshot('{name}', {to.current_snapshot_id})"


def _grown(before: TableMeta, after: TableMeta) -> int:
    """Rows `after` has more than `before`, by the counters of the snapshots between them."""
    grown = 0
    for snapshot in after.ancestors(after.current_snapshot_id):
        if snapshot.id == before.current_snapshot_id:
            break
        grown += snapshot.rows_added
    return grown


def _diverged(plan: Apply, before: TableMeta, after: TableMeta) -> InternalError:
    return InternalError(
        "STATE_DIVERGED",
        f"Applying a change to {plan.table.within('lake')} moved {_grown(before, after)} rows, expected {plan.growth}.",
        detail=f"Method {plan.method}. Nothing was published.",
        hint=f"Run `headrace refresh {plan.table.within('lake')} --full` to rebuild it, and please report this.",
    )
