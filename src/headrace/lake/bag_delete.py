"""Deletes rows from a bag, where equal rows are several and only some must go.

Measured on 6 M rows of 13 columns, 2 cores, deleting 60,000: by two columns 1.0 s, by four 1.4 s, by all 13 3.1 s,
by a MERGE that numbers the copies of every row 10 s. Of 6 M rows of 9 columns, finding 6,000 by one column that is a
number of its own takes 0.25 s, by two hashed columns 0.41 s, by three 0.50 s. So few columns are tried first, chosen to
be nearly unique; then all of them; and copies are only counted once it has turned out that there are some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.algebra.schema import Column
from headrace.lake.compare import row_key
from headrace.lake.measured_change import (
    REMOVED,
    STORED,
    Change,
    Spread,
    Target,
    delete_sql,
    inserted_rows,
    is_cheap,
    match,
    names,
    removed_rows,
    spread_out,
)
from headrace.lake.metadata import TableMeta
from headrace.names import WEIGHT, TableName, quote

LOCATOR_COLUMNS = 4
"""Columns that are compared first, at most: those that tell rows apart best."""

SPARE = 10
"""Columns tell rows apart when they could tell so many times more rows than there are."""

LOCATOR_ROWS = 500_000
"""In a smaller table comparing all columns is quick enough."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A delete that removes all copies of the rows it matches.

    Args:
        columns: What it compares.
        sql: The statement.
    """

    columns: tuple[str, ...]
    sql: str


@dataclass(frozen=True, slots=True)
class BagDelete:
    """Ways to delete a change's old rows from a bag.

    Args:
        attempts: Deletes, cheapest first; the last compares whole rows.
        by_position: Deletes exactly as many copies as the weights say.
        target: The table.
        change: The change.
    """

    attempts: tuple[Attempt, ...]
    by_position: str
    target: Target
    change: Change

    def reappend(self, before: int) -> str:
        """Return the statement that adds new rows and the copies that must stay.

        Args:
            before: The snapshot that still has them.
        """
        target, change = self.target, self.change
        grouping = ", ".join(row_key(target.columns, STORED, apart=target.apart))
        shown = ", ".join(f"any_value({STORED}.{quote(c.name)}) AS {quote(c.name)}" for c in target.columns)
        hint = spread_out(target, change, target.columns)
        counted = (
            f"SELECT {hint}{shown}, count(*) + any_value({REMOVED}.{WEIGHT}) AS __hr_left "
            f"FROM (SELECT * FROM {target.table.sql} VERSION AS OF {before}) AS {STORED} "
            f"JOIN {removed_rows(change)} ON {match(change, target.columns, apart=target.apart)} GROUP BY {grouping}"
        )
        kept = (
            f"SELECT {names(target.columns)} FROM ({counted}) "
            f"LATERAL VIEW explode(sequence(1L, __hr_left)) __hr_copies AS __hr_copy WHERE __hr_left > 0"
        )
        return f"INSERT INTO {target.table.sql} {kept} UNION ALL {inserted_rows(target, change)}"


def plan_bag(target: Target, change: Change) -> BagDelete:
    """Plan deleting from a bag."""
    ways = (_key(target), sole(target, change), locator(target, change))
    tried = {names_of(w): w for w in ways if w is not None and names_of(w) not in target.barred}
    tried[names_of(target.columns)] = target.columns
    attempts = tuple(Attempt(n, delete_sql(target, change, columns)) for n, columns in tried.items())
    return BagDelete(attempts, by_position_sql(target, change), target, change)


def names_of(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the names of columns."""
    return tuple(c.name for c in columns)


def _key(target: Target) -> tuple[Column, ...] | None:
    """Return the columns of a key, where one is known that is quick to read."""
    by_name = {c.name.lower(): c for c in target.columns}
    keys = (tuple(by_name[name.lower()] for name in key) for key in target.unique)
    return min((key for key in keys if all(map(is_cheap, key))), key=len, default=None)


def sole(target: Target, change: Change) -> tuple[Column, ...] | None:
    """Return one numeric column, selective enough to delete by it alone, else None.

    That is a guess: it takes the numbers in use to lie close together, as those of a sequence do. What a delete removed
    tells whether it was right.
    """
    if target.rows is None or target.rows < LOCATOR_ROWS:
        return None
    known, rows = change.spreads, target.rows
    numbers = [c for c in target.columns if c.name in known and _may_do(known[c.name], rows, change.deleted)]
    return (max(numbers, key=lambda c: known[c.name].distinct),) if numbers else None


def _may_do(spread: Spread, rows: int, deleted: int) -> bool:
    if spread.nulls or not spread.distinct or not spread.width:
        return False
    return spread.distinct * rows <= deleted * spread.width


def locator(target: Target, change: Change) -> tuple[Column, ...] | None:
    """Return a few cheap columns that probably identify the removed rows, else None.

    None when comparing all is better.
    """
    if target.rows is not None and target.rows < LOCATOR_ROWS:
        return None
    known = change.spreads
    cheap = [c for c in target.columns if c.name in known and is_cheap(c) and known[c.name].distinct > 1]
    cheap.sort(key=lambda c: (known[c.name].nulls > 0, -known[c.name].distinct))
    chosen = tuple(cheap[: _telling(cheap, known, target.rows)])
    return chosen if 0 < len(chosen) < len(target.columns) else None


def _telling(columns: Sequence[Column], known: Mapping[str, Spread], rows: int | None) -> int:
    """Return how many columns, best first, are enough to identify rows."""
    combinations = 1
    for number, column in enumerate(columns[:LOCATOR_COLUMNS], start=1):
        combinations *= known[column.name].distinct
        if rows is not None and combinations >= SPARE * rows:
            return number
    return LOCATOR_COLUMNS


def by_position_sql(target: Target, change: Change) -> str:
    """Return the statement that deletes copies of rows by file and position."""
    keys = ", ".join(row_key(target.columns, STORED, apart=target.apart))
    met = match(change, target.columns, apart=target.apart)
    copies = (
        f"SELECT {spread_out(target, change, target.columns)}{STORED}._file AS __hr_file, {STORED}._pos AS __hr_pos, "
        f"{REMOVED}.{WEIGHT} AS __hr_n, "
        f"row_number() OVER (PARTITION BY {keys} ORDER BY {STORED}._file, {STORED}._pos) AS __hr_i "
        f"FROM {target.table.sql} AS {STORED} JOIN {removed_rows(change)} ON {met}"
    )
    return (
        f"MERGE INTO {target.table.sql} AS __hr_t "
        f"USING (SELECT __hr_file, __hr_pos FROM ({copies}) WHERE __hr_i <= -__hr_n) AS __hr_v "
        f"ON __hr_t._file = __hr_v.__hr_file AND __hr_t._pos = __hr_v.__hr_pos WHEN MATCHED THEN DELETE"
    )


def rollback_sql(table: TableName, to: TableMeta) -> str:
    """Return the statement that takes a table back to an earlier state."""
    name = ".".join(map(quote, table.parts[1:])).replace("'", "\\'")
    return f"CALL {quote(table.catalog)}.system.rollback_to_snapshot('{name}', {to.current_snapshot_id})"
