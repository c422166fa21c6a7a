"""A lakehouse source: any Iceberg table, written by anyone.

It answers four questions: its head (`TableMeta.current_snapshot_id`), its changes between two snapshots
(`plan_changes`, `changes_sql`), its rows at a snapshot (`rows_sql`), and its schema (`TableMeta.columns`).
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.lake.metadata import TableMeta
from headrace.names import TableName
from headrace.reasons import FullReason


@dataclass(frozen=True, slots=True)
class AllRows:
    """Every row of a snapshot, with one weight: a table that was empty before, or is afterwards."""

    snapshot: int
    weight: int


@dataclass(frozen=True, slots=True)
class AppendRange:
    """Rows of the data files appended in (start, end]; no snapshot between them deletes anything."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChangelogRange:
    """Iceberg's changelog over (start, end]: rows of the data files added and removed (copy-on-write)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PositionDiff:
    """The difference of two snapshots by file and position; `linear` when nothing can have been undeleted."""

    before: int
    after: int
    linear: bool


Part = AllRows | AppendRange | ChangelogRange | PositionDiff


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """How to read the changes between two snapshots: the sum of `parts`.

    Args:
        parts: May be empty: nothing changed.
        rows: Estimate of the weighted rows the parts read, from snapshot counters.
    """

    parts: tuple[Part, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class NotIncremental:
    """Why changes cannot be read; the reader must recompute."""

    reason: FullReason
    detail: str


def plan_changes(
    meta: TableMeta, start: int | None, end: int | None, *, uuid: str | None = None
) -> ChangePlan | NotIncremental:
    """Plan the reading of the changes in (start, end].

    Args:
        meta: The table's metadata, at or after `end`.
        start: Snapshot the reader has seen; None for a table that had none.
        end: Snapshot to move to; None for a table that has none.
        uuid: The table's identity when `start` was read; None skips that check.
    """
    raise NotImplementedError


def changes_sql(table: TableName, meta: TableMeta, plan: ChangePlan, columns: tuple[str, ...]) -> str | None:
    """One query giving `columns` and the weight, rows not consolidated; None when the plan has no parts."""
    raise NotImplementedError


def rows_sql(table: TableName, meta: TableMeta, snapshot: int | None) -> str:
    """A table reference that reads the rows at a snapshot, with the columns the table has now.

    A plain `name VERSION AS OF id` where the snapshot has the current schema (an alias may follow either form), else a
    parenthesized query, which needs an alias.
    """
    raise NotImplementedError
