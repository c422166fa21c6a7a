"""Protocols of the scheduler's workers; it depends on neither Spark nor refreshing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.names import TableName
from headrace.refresh.cut.cut import Cut
from headrace.results.refresh_results import Record, RefreshResult


class Worker(Protocol):
    """Refreshes units; called from several threads at once."""

    def heads(self) -> Cut:
        """Return a new cut."""
        ...

    def refresh(self, members: Sequence[TableName], heads: Cut) -> tuple[RefreshResult, ...]:
        """Refresh stream tables that belong together, and publish them at once.

        Raises:
            HeadraceError: What went wrong; nothing was published then.
        """
        ...

    def maintain(self, wanted: Callable[[TableName], bool]) -> None:
        """Expire, compact and trim stored tables; check `wanted` before each.

        Raises:
            HeadraceError: What went wrong.
        """
        ...

    def cancel(self, members: Sequence[TableName]) -> None:
        """Stop what runs for these tables; their refresh fails soon."""
        ...

    @property
    def restartable(self) -> bool:
        """Return whether Spark is ours to start again."""
        ...

    def restart(self) -> bool:
        """Restart Spark while nothing uses it; return False for a session not ours.

        Raises:
            HeadraceError: It does not start.
        """
        ...


@dataclass(frozen=True, slots=True)
class Planned(Record):
    """A unit that a scheduler would refresh now, or that waits.

    Args:
        tables: Its stream tables, in the order they are refreshed; several are published together.
        why: Why it is refreshed, or for whom it waits.
        waits: Whether it waits.
        seconds: How long it will take, by its last refresh.
    """

    tables: tuple[str, ...]
    why: str
    waits: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunSummary(Record):
    """Counts and results of one run of a scheduler.

    Args:
        refreshed: Units that were refreshed.
        failed: Units that failed.
        results: With `once`, what was refreshed, in the order it was published; else nothing.
        planned: Of a dry run, what would be refreshed, and what waits.
        landed: With `once`, whether everything that databases had committed was landed before.
    """

    refreshed: int = 0
    failed: int = 0
    results: tuple[RefreshResult, ...] = ()
    planned: tuple[Planned, ...] = field(default=())
    landed: bool = True
