"""A measured change, and the statements that apply it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.algebra.schema import Column
from headrace.lake.compare import consolidate, key_expressions, not_apart, same
from headrace.names import WEIGHT, TableName, quote

STORED = "__hr_s"
"""Alias of the stored table. No user column may be called so: Spark would read `alias._file` as that column's field."""

REMOVED = "__hr_c"
"""Alias of the rows a change removes."""

BROADCAST_ROWS, BROADCAST_NUMBERS = 500_000, 2_000_000
"""Removed rows that are sent to every task to look for them, at most: some 30 MB.

The second number is for rows that are looked for by a single number or date.
"""

_CHEAP = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")
_ORDERED = ("tinyint", "smallint", "int", "bigint", "date")
_ORDERABLE = ("string", "boolean", "float", "double")
_MEASURED_COLUMNS = 40
"""Columns measured at most; each takes several aggregates, and one suitable is enough."""
_BOUND_BITS = 4
"""Bounds are rounded outward to so many bits, so that statements are the same again."""
_MOST_NEGATIVE = -(1 << 63)
_EPOCH = datetime.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = ((end - _EPOCH).days for end in (datetime.date.min, datetime.date.max))


@dataclass(frozen=True, slots=True)
class Target:
    """A stored table as applying sees it.

    Args:
        table: Its name in `staging`.
        columns: Its columns.
        key: Columns that identify a row, NULL-safely; None for a bag.
        rows: Rows it has, None when unknown.
        unique: Sets of columns that no two rows of a bag agree in, as far as is known: where rows are looked for, not
            what they are known by.
        barred: Sets of columns by which a delete took along too much before.
        rebuild: The command by which a user has the table computed anew, should it not hold what it must.
        broadcast: Whether Spark may be asked to send the removed rows to every task when rows are looked for.
        append_only: Whether the change is known to remove no rows.
        apart: Whether rows of a bag are different whose values are equal and not the same, such as zeros of both signs.
    """

    table: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None
    rows: int | None
    unique: tuple[tuple[str, ...], ...] = ()
    barred: frozenset[tuple[str, ...]] = frozenset()
    rebuild: str | None = None
    broadcast: bool = True
    append_only: bool = False
    apart: bool = False

    @property
    def identity(self) -> tuple[Column, ...]:
        """Return the columns that identify rows."""
        if self.key is None:
            return self.columns
        by_name = {c.name.lower(): c for c in self.columns}
        return tuple(by_name[k.lower()] for k in self.key)


@dataclass(frozen=True, slots=True)
class Spread:
    """Measured distribution of a column's values among the rows a change removes.

    Args:
        nulls: How many are NULL.
        distinct: About how many different ones there are; 0 when not measured.
        low: A number or day that none lies below, as a SQL literal; None when not measured.
        high: One that none lies above.
    """

    nulls: int
    distinct: int = 0
    low: str | None = None
    high: str | None = None

    @property
    def width(self) -> int | None:
        """Return how many integers lie between the ends, inclusive; None if not measured."""
        try:
            return int(self.high or "") - int(self.low or "") + 1
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was measured.

    Args:
        view: Temporary view: the target's columns and the weight, consolidated (no row twice, no weight 0)
            unless rows are only added.
        inserted: Sum of the positive weights.
        deleted: Sum of the negative weights, as a positive number.
        rows: Distinct rows in the view.
        spreads: What is known of the removed rows' columns, by name.
        query: Gives the rows where Spark has no such view; None: it has.
        contents: Gives all rows that the target has afterwards, where they are in hand.
    """

    view: str
    inserted: int
    deleted: int
    rows: int
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    query: str | None = None
    contents: str | None = None

    @property
    def table(self) -> str:
        """Return the table expression of its rows."""
        return quote(self.view) if self.query is None else f"({self.query})"


MEASURES: Mapping[str, str] = {
    "rows": "count(*)",
    "inserted": f"coalesce(sum(CASE WHEN {WEIGHT} > 0 THEN {WEIGHT} END), 0)",
    "deleted": f"coalesce(-sum(CASE WHEN {WEIGHT} < 0 THEN {WEIGHT} END), 0)",
}
"""The least that `change_of` needs."""


def is_cheap(column: Column) -> bool:
    """Return whether a column is quick to read and to compare: of a fixed, small width."""
    if column.type.startswith("decimal("):
        return int(column.type[8:].split(",")[0].rstrip(")")) <= 18
    return column.type in _CHEAP


def measures(columns: tuple[Column, ...], *, distinct: bool = True) -> dict[str, str]:
    """Return aggregates for `materialize` that `change_of` turns into a measured change.

    They ride on the job that computes the change, and tell by which columns its rows are found fastest.

    Args:
        columns: Those by which rows may be looked for.
        distinct: Count different values, too. Every measure is taken of every row of the change: leave these out where
            it is settled by which columns rows are found.
    """
    wanted = dict(MEASURES)
    for number, column in enumerate(columns[:_MEASURED_COLUMNS]):
        old = f"CASE WHEN {WEIGHT} < 0 THEN {quote(column.name)} END"
        wanted[f"nulls_{number}"] = f"count(CASE WHEN {WEIGHT} < 0 AND {quote(column.name)} IS NULL THEN 1 END)"
        if distinct and is_cheap(column):
            wanted[f"distinct_{number}"] = f"approx_count_distinct({old})"
        if column.type in _ORDERED:
            # a day travels as its number, because Python knows the years from 1 to 9999 only
            value = f"unix_date({old})" if column.type == "date" else old
            wanted[f"low_{number}"], wanted[f"high_{number}"] = f"min({value})", f"max({value})"
    return wanted


def change_of(view: str, measured: Mapping[str, Any], columns: tuple[Column, ...] = ()) -> Change:
    """Return the change in `view`.

    Args:
        view: Its temporary view.
        measured: What `materialize` returned for `MEASURES`, or for `measures(columns)`.
        columns: The columns given to `measures`.
    """
    spreads = {}
    for number, column in enumerate(columns):
        if (nulls := measured.get(f"nulls_{number}")) is not None:
            ends = measured.get(f"low_{number}"), measured.get(f"high_{number}")
            low, high = _bounds(*ends, days=column.type == "date")
            spreads[column.name] = Spread(int(nulls), int(measured.get(f"distinct_{number}") or 0), low, high)
    return Change(view, int(measured["inserted"]), int(measured["deleted"]), int(measured["rows"]), spreads)


def _bounds(low: Any, high: Any, *, days: bool) -> tuple[str | None, str | None]:
    """Return both ends as SQL literals, moved outward to round numbers.

    None for days of years that have no plain literal.

    Spark writes numbers into the code it generates, and Java has to compile that code anew for every new number. Ends
    that are the same from one refresh to the next keep it warm (deleting 3,000 of 6 M rows, 2 cores: 0.9 s against 1.2
    s), and skip the same files, almost.
    """
    if low is None or high is None:
        return None, None
    first, last = int(low), int(high)
    step = 1 << max(0, (last - first).bit_length() - _BOUND_BITS)
    first, last = first - first % step, last + step - 1 - last % step
    if not days:
        return str(max(first, _MOST_NEGATIVE)), str(min(last, -_MOST_NEGATIVE - 1))
    if first < _FIRST_DAY or last > _LAST_DAY:
        return None, None
    return f"DATE'{_EPOCH + datetime.timedelta(first)}'", f"DATE'{_EPOCH + datetime.timedelta(last)}'"


def names(columns: tuple[Column, ...], alias: str | None = None) -> str:
    """Return a select list of columns."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + quote(c.name) for c in columns)


def spread_out(target: Target, change: Change, columns: tuple[Column, ...]) -> str:
    """Return a broadcast hint for removed rows, whose small number Spark may not know.

    Args:
        target: The table in which rows are looked for.
        change: The change.
        columns: What is needed of the removed rows.
    """
    if not target.broadcast:
        return ""
    number = len(columns) == 1 and columns[0].type in _ORDERED
    most = BROADCAST_NUMBERS if number else BROADCAST_ROWS
    return f"/*+ BROADCAST({REMOVED}) */ " if min(change.rows, change.deleted) <= most else ""


def removed_rows(change: Change) -> str:
    """Return the rows a change removes, as a table expression named `REMOVED`."""
    return f"(SELECT * FROM {change.table} WHERE {WEIGHT} < 0) AS {REMOVED}"


def match(change: Change, columns: tuple[Column, ...], *, apart: bool = False) -> str:
    """Return a condition that a row of `STORED` is one of `REMOVED`, by `columns`.

    Bounds let files be skipped. Where no removed row has a NULL, `=` says the same as `<=>` and is a third faster. They
    are counted: a column that could hold none when the query was defined may hold some by now. Rows are looked up by
    one number hashed from their short columns where there are several, and compared afterwards: Spark probes for one
    number faster than for several values (deleting 3,000 of 6 M rows by three columns, 2 cores: 0.9 s against 1.3 s),
    and many rows that share one of the values do no harm.
    """
    known = change.spreads
    sharp = [Column(c.name, c.type, _has_nulls(known.get(c.name))) for c in columns]
    bounds = [
        f"{STORED}.{quote(c.name)} BETWEEN {s.low} AND {s.high}"
        for c in columns
        if (s := known.get(c.name)) is not None and not s.nulls and s.low is not None and s.high is not None
    ]
    hashed = [c for c in sharp if is_cheap(c)]
    if len(hashed) < 2 or not all(is_cheap(c) or c.type in _ORDERABLE for c in sharp):
        return " AND ".join((*bounds, same(sharp, STORED, REMOVED, apart=apart)))
    probe = f"xxhash64({names(tuple(hashed), STORED)}) = xxhash64({names(tuple(hashed), REMOVED)})"
    told = not_apart(sharp, STORED, REMOVED) if apart else ()
    return " AND ".join((*bounds, probe, *map(_ordered_same, sharp), *told))


def _ordered_same(column: Column) -> str:
    """Return equality in a form that Spark does not use as a join key."""
    a, b = f"{STORED}.{quote(column.name)}", f"{REMOVED}.{quote(column.name)}"
    equal = f"{a} >= {b} AND {a} <= {b}"
    return f"({equal} OR ({a} IS NULL AND {b} IS NULL))" if column.nullable else equal


def _has_nulls(spread: Spread | None) -> bool:
    return spread is None or spread.nulls > 0


def delete_sql(target: Target, change: Change, columns: tuple[Column, ...]) -> str:
    """Return the statement that deletes all rows equal to removed ones in `columns`."""
    rows = f"SELECT {spread_out(target, change, columns)}1 FROM {removed_rows(change)}"
    exists = f"EXISTS ({rows} WHERE {match(change, columns, apart=target.apart)})"
    return f"DELETE FROM {target.table.sql} AS {STORED} WHERE {exists}"


def inserted_rows(target: Target, change: Change) -> str:
    """Query for the new rows, each as often as its weight says."""
    source = f"SELECT {names(target.columns)} FROM {change.table}"
    if target.key is not None:
        return f"{source} WHERE {WEIGHT} > 0"
    if change.inserted == change.rows and not change.deleted:  # each once
        return source
    return f"{source} LATERAL VIEW explode(sequence(1, {WEIGHT})) __hr_copies AS __hr_copy WHERE {WEIGHT} > 0"


def append_sql(target: Target, change: Change) -> str:
    """Return the statement that adds the new rows."""
    return f"INSERT INTO {target.table.sql} {inserted_rows(target, change)}"


def replace_sql(target: Target, change: Change) -> str:
    """Return the statement that leaves what is in hand, or else the new rows only, in one file.

    Little more than half of what merging them with the old ones takes (four groups, 2 cores: 0.17 s against 0.29 s).
    """
    known = None if change.contents is None else f"SELECT {names(target.columns)} FROM ({change.contents})"
    rows = known or inserted_rows(target, change)
    return f"INSERT OVERWRITE {target.table.sql} SELECT /*+ COALESCE(1) */ * FROM ({rows})"


def overwrite_sql(target: Target, change: Change) -> str:
    """Return the statement that writes the whole table anew, changed.

    One task reads, merges and writes: a small table needs no second one, and a single task needs no exchange.
    """
    listed, newest = names(target.columns), names(target.columns, "__hr_row")
    stored = f"SELECT {listed}, 1L AS {WEIGHT}, 0 AS __hr_turn FROM {target.table.sql}"
    changed = f"SELECT {listed}, {WEIGHT}, CASE WHEN {WEIGHT} < 0 THEN 1 ELSE 2 END FROM {change.table}"
    both = f"SELECT /*+ COALESCE(1) */ * FROM ({stored} UNION ALL {changed})"
    if target.key is not None:
        keys = ", ".join(e for c in target.identity for e in key_expressions(c))
        last = (
            f"SELECT max_by(struct({listed}), __hr_turn) AS __hr_row FROM ({both}){f' GROUP BY {keys}' if keys else ''}"
        )
        return f"INSERT OVERWRITE {target.table.sql} SELECT {newest} FROM ({last} HAVING max(__hr_turn) <> 1)"
    left = consolidate(both, target.columns, apart=target.apart)
    return (
        f"INSERT OVERWRITE {target.table.sql} SELECT {listed} FROM ({left}) "
        f"LATERAL VIEW explode(sequence(1, {WEIGHT})) __hr_copies AS __hr_copy WHERE {WEIGHT} > 0"
    )
