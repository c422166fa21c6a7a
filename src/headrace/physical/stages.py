"""The stages of a refresh, as data: `stage_planner` builds them, `execution` runs them, `explain` prints them."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.ivm.program import Key
from headrace.names import TableName
from headrace.physical.facts import Common
from headrace.physical.scan_reduction import ScanReduction


@dataclass(frozen=True, slots=True)
class ReadChange:
    """Makes the change of one source readable under a temporary name.

    Args:
        source: The source.
        view: Temporary view.
        sql: Rows that changed, with weights.
        shared: Whether it is read more than once, so that it is worth keeping in memory.
        common: How it is kept for other stream tables as well.
    """

    source: TableName
    view: str
    sql: str
    shared: bool = False
    common: Common | None = None

    @property
    def title(self) -> str:
        """What a person sees while it runs."""
        return f"read change of {self.source}"

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL it runs."""
        return (self.sql,)


@dataclass(frozen=True, slots=True)
class Compute:
    """Computes an intermediate result once and keeps it for the stages after it.

    Args:
        name: The step.
        view: Temporary view it is kept as.
        sql: The statement.
        only_if: A query; while it returns no row, the step need not be computed and is empty.
        measures: Pairs (name, SQL aggregate over its columns) that are asked for in the same pass.
        kept: False for what follows cheaply from other results, or is seldom needed: whoever reads it computes it.
        near: The source and the columns by whose values its rows are collected, where that is what it does.
        common: How these are kept for other stream tables as well.
        sparing: What may make that read less.
    """

    name: str
    view: str
    sql: str
    only_if: str | None = None
    measures: tuple[tuple[str, str], ...] = ()
    kept: bool = True
    near: Key | None = None
    common: Common | None = None
    sparing: ScanReduction = field(default_factory=ScanReduction)

    @property
    def title(self) -> str:
        """What a person sees while it runs."""
        if self.common is not None and self.near is not None:
            source, columns = self.near
            return f"collect {source} near changes by {', '.join(columns)}"
        return f"compute {self.name}"

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL it runs."""
        return (self.sql,)


@dataclass(frozen=True, slots=True)
class Write:
    """Writes a stored table in `staging`.

    Args:
        table: The stored table.
        strategy: A method of `lake.apply_change.Method` in lower case, or `log`.
        sqls: The statements, in order.
        rows_change: By how much the number of rows must change, or None when it is not known beforehand.
    """

    table: TableName
    strategy: str
    sqls: tuple[str, ...]
    rows_change: int | None = None

    @property
    def title(self) -> str:
        """What a person sees while it runs."""
        return f"{self.strategy} {self.table}"

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL it runs."""
        return self.sqls


@dataclass(frozen=True, slots=True)
class Publish:
    """Makes everything written visible in one transaction.

    Args:
        tables: The stored tables whose pointers move.
    """

    tables: tuple[TableName, ...]

    @property
    def title(self) -> str:
        """What a person sees while it runs."""
        return "publish"

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL it runs: none in Spark."""
        return ()


Stage = ReadChange | Compute | Write | Publish
