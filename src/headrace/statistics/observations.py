"""Observations that refreshes report to `SessionStatistics.observe`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from headrace.catalog import RanAs
from headrace.ivm.program import Key, Need
from headrace.names import TableName
from headrace.semantics import Semantics


class Strategy(Enum):
    """Ways to do less work that may turn out to be more."""

    DELETE_BY_COLUMNS = "find the rows to delete from a stored table by some of its columns"
    READ_ONCE = "keep a semi-join of a source with a change"
    READ_TOGETHER = "keep it for several stream tables"
    READ_CHANGE_ONLY = "ask whether the change has all rows of it, before the source is read"
    LOCAL_ROWS = "take the rows of a step into the driver"
    BROADCAST = "broadcast what comes from a small change"


@dataclass(frozen=True, slots=True)
class RefreshBegan:
    """A refresh of a stream table begins; its failed strategies age by one refresh.

    Args:
        table: The stream table.
    """

    table: TableName


@dataclass(frozen=True, slots=True)
class RefreshRan:
    """The stages of a refresh have run, which warmed the session up.

    Args:
        mode: How it ran.
    """

    mode: RanAs


@dataclass(frozen=True, slots=True)
class StrategyFailed:
    """A strategy cost more than it saved.

    Args:
        strategy: The strategy.
        subject: The table that was read or written.
        names: The columns, or the step, with which it failed.
    """

    strategy: Strategy
    subject: TableName
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepCounted:
    """The rows of a step are known.

    Args:
        table: The stream table.
        step: The step.
        changed: How many rows of the sources had changed.
        rows: How many rows the step had.
    """

    table: TableName
    step: str
    changed: int
    rows: int


@dataclass(frozen=True, slots=True)
class ProgramNeeds:
    """A program is going to run, which reads semi-joins of sources with changes.

    Args:
        table: The stream table.
        semantics: The settings under which it is computed.
        needs: These semi-joins.
    """

    table: TableName
    semantics: Semantics
    needs: Mapping[Key, Need]


Observation = RefreshBegan | RefreshRan | StrategyFailed | StepCounted | ProgramNeeds
