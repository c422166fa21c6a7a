"""Stages of a refresh, as data: planned, run and explained as the same objects.

Stages hold relations, not SQL; `plan_sql` writes that when a stage runs or is printed. Exceptions are statements that
other rooms own: the change of a source (`sources`), the user's own text, and how a change is applied (`lake`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from headrace.algebra.relations import Relation
from headrace.ivm.program import Key
from headrace.names import TableName
from headrace.physical.facts import Common
from headrace.physical.leaves import Leaves
from headrace.physical.scan_reduction import NO_REDUCTION, ScanReduction

NOTHING_ELSE: Leaves = {}


class Policy(StrEnum):
    """The way in which the rows of a stage reach the stages that read it."""

    MATERIALIZE = "MATERIALIZE"
    """Computed once, and kept in Spark's memory."""
    LOCAL = "LOCAL"
    """Materialised, and few: held by the driver as literal rows of the plans that read it. Decided at run time."""
    INLINE = "INLINE"
    """A subquery of each statement that reads it."""
    IF_NONEMPTY = "IF_NONEMPTY"
    """A subquery of the one statement that reads it, and of that only where its condition has rows."""
    STORED = "STORED"
    """Written to a stored table."""


@dataclass(frozen=True, slots=True)
class ReadChange:
    """Makes the change of one source readable under a temporary name.

    Args:
        source: The source.
        view: Temporary view.
        sql: Rows that changed, with weights, as the source's reader has it.
        policy: MATERIALIZE where it is read more than once, else INLINE.
        common: How it is kept for other stream tables as well.
        depends_on: Views of the stages that it reads.
    """

    source: TableName
    view: str
    sql: str
    policy: Policy = Policy.INLINE
    common: Common | None = None
    depends_on: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """Return the text that is shown while the stage runs."""
        return f"read change of {self.source}"


@dataclass(frozen=True, slots=True)
class Compute:
    """Computes a relation for the stages after it.

    Args:
        name: The step.
        view: Temporary view it is read as.
        relation: What it computes.
        depends_on: Views of the stages that it reads.
        policy: MATERIALIZE, INLINE, or IF_NONEMPTY.
        only_if: While this relation has no row, the step need not be computed and is empty. None: always needed.
        measures: Pairs (name, SQL aggregate over its columns) that are asked for in the same pass.
        semijoin: Of a semi-join of a source with a change: the source, and its columns that have the keys.
        common: How these are kept for other stream tables as well.
        reduction: What may have it read less of the source.
        leaves: Leaves that are read from elsewhere than those of the refresh.
        hints: Whether Spark is asked to broadcast the sides of joins that are small.
    """

    name: str
    view: str
    relation: Relation
    depends_on: frozenset[str] = frozenset()
    policy: Policy = Policy.MATERIALIZE
    only_if: Relation | None = None
    measures: tuple[tuple[str, str], ...] = ()
    semijoin: Key | None = None
    common: Common | None = None
    reduction: ScanReduction = NO_REDUCTION
    leaves: Leaves = field(default_factory=lambda: NOTHING_ELSE)
    hints: bool = False

    @property
    def title(self) -> str:
        """Return the text that is shown while the stage runs."""
        if self.common is not None and self.semijoin is not None:
            source, columns = self.semijoin
            return f"collect {source} near changes by {', '.join(columns)}"
        return f"compute {self.name}"

    @property
    def materialized(self) -> bool:
        """Return whether its rows are computed in a job of their own and kept."""
        return self.policy is Policy.MATERIALIZE


OVERWRITE = "overwrite"
"""The strategy of a table that is written whole."""


@dataclass(frozen=True, slots=True)
class Write:
    """Writes a stored table in `staging`.

    Args:
        table: The stored table.
        strategy: A method of `lake.apply_change.Method` in lower case, `overwrite` or `log`.
        sqls: The statements, in order; empty before the size of a change is known.
        depends_on: Views of the stages that it reads.
    """

    table: TableName
    strategy: str
    sqls: tuple[str, ...]
    depends_on: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """Return the text that is shown while the stage runs."""
        return f"{self.strategy} {self.table}"


@dataclass(frozen=True, slots=True)
class Publish:
    """Makes everything written visible in one transaction.

    Args:
        tables: The stored tables whose pointers move.
    """

    tables: tuple[TableName, ...]

    @property
    def title(self) -> str:
        """Return the text that is shown while the stage runs."""
        return "publish"


SparkStage = ReadChange | Compute | Write
"""A stage that Spark runs."""

Stage = SparkStage | Publish
