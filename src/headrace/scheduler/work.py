"""Protocols of the scheduler's workers; it depends on neither Spark nor refreshing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.errors import HeadraceError
from headrace.names import TableName
from headrace.refresh.cut.cut import Cut
from headrace.results.refresh_results import Record, RefreshResult


class Work(Protocol):
    """The refresh of one unit, under way; called from several threads at once."""

    def refresh(self, task: TableName) -> tuple[RefreshResult, ...] | None:
        """Run a task, after those it reads; the last to end publishes and returns results.

        Raises:
            HeadraceError: What went wrong with the first that failed; nothing was published then.
        """
        ...

    def abandon(self, why: HeadraceError | None = None) -> None:
        """Put everything back, with the last task that runs, or at once where none does.

        Args:
            why: For history: why the refresh is given up.
        """
        ...


class Worker(Protocol):
    """Refreshes units; called from several threads at once."""

    def heads(self) -> Cut:
        """Return a new cut."""
        ...

    def begin(
        self,
        members: Sequence[TableName],
        tasks: Mapping[TableName, Sequence[TableName]],
        heads: Cut,
        awaited: Sequence[Sequence[TableName]] = (),
    ) -> Work:
        """Return the refresh of stream tables that are published at once; nothing has begun yet.

        Args:
            members: The stream tables, producers first.
            tasks: The tasks that it consists of, each with its stream tables.
            heads: The cut.
            awaited: The members of each unit that the tables read and that is not published yet; tasks that read one
                start when it is.
        """
        ...

    def maintain(self, wanted: Callable[[TableName], bool], waits: Callable[[], bool]) -> Sequence[str]:
        """Expire, compact and trim stored tables; check `wanted` before each.

        While `waits` says so, a table that somebody else works on is waited for; else it is left out.

        Returns:
            The tables that could not be maintained, and why, while others were.

        Raises:
            HeadraceError: What went wrong with all of them.
        """
        ...

    def deploy(self, layouts: Sequence[TableName]) -> None:
        """Promote deployments whose conditions hold; roll back watched ones that fail.

        Args:
            layouts: Stream tables for which deployments are to bring a new stored layout.

        Raises:
            HeadraceError: What went wrong with the catalog, or with Spark itself.
        """
        ...

    @property
    def exchanging(self) -> bool:
        """Return whether `deploy` exchanges generations just now; it may also only look around."""
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
        written: With `once`, whether all sinks that were due were written after.
    """

    refreshed: int = 0
    failed: int = 0
    results: tuple[RefreshResult, ...] = ()
    planned: tuple[Planned, ...] = field(default=())
    landed: bool = True
    written: bool = True
