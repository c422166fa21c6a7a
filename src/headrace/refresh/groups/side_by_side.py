"""Has several threads refresh one group; the last to end publishes, or puts all back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from headrace.errors import HeadraceError
from headrace.names import TableName
from headrace.results.refresh_results import RefreshResult

Results = tuple[RefreshResult, ...]


class Together(Protocol):
    """A refresh of stream tables that are published together, such as `GroupRefresh`."""

    @property
    def reordered(self) -> bool:
        """Return whether members that are defined anew read other members than before."""
        ...

    @property
    def parts(self) -> Sequence[tuple[TableName, ...]]:
        """Return the members in order, those of a cycle in one part; known once it has begun."""
        ...

    def begin(self) -> Results | None:
        """Take the leases; return the results where nothing is to be done."""
        ...

    def prepare(self, part: tuple[TableName, ...]) -> None:
        """Run the refresh of a part up to publishing; several threads do that at once."""
        ...

    def publish(self) -> Results:
        """Publish all members in one transaction, and end."""
        ...

    def give_up(self, error: BaseException) -> None:
        """Put back everything that was written, and end."""
        ...


class SideBySide:
    """The refresh of one group by tasks in threads; a task starts after those it reads.

    Args:
        begin: Makes the refresh; called by the first task.
        tasks: The tasks, each with its stream tables.
    """

    def __init__(self, begin: Callable[[], Together], tasks: Mapping[TableName, Sequence[TableName]]) -> None:
        self._begin = begin
        self._tasks = tasks
        self._left = set(tasks)
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._active = 0
        self._group: Together | None = None
        self._opened = self._ready = self._whole = False
        self._unchanged: Results | None = None
        self._error: BaseException | None = None
        self._over = False

    def refresh(self, task: TableName) -> Results | None:
        """Run a task; return the results of all members where it was the last one to end.

        Raises:
            HeadraceError: What went wrong with the first that failed, or with publishing. Tasks that end after that, or
                begin, return None.
        """
        with self._lock:
            if self._error is not None:
                return None
            self._active += 1
        error: BaseException | None = None
        try:
            self._run(task)
        except BaseException as raised:
            error = raised
        with self._lock:
            self._active -= 1
            self._left.discard(task)
            first = error is not None and self._error is None
            if first:
                self._error = error
            last = not self._over and not self._active and (self._error is not None or not self._left)
            self._over = self._over or last
        results = self._end() if last else None
        if first and error is not None:
            raise error
        return results

    def abandon(self, why: HeadraceError | None = None) -> None:
        """Put everything back, with the last task that runs, or at once where none does.

        Args:
            why: For history: why the refresh is given up.
        """
        with self._lock:
            idle = not self._active and not self._over
            if self._error is None:
                self._error = why or InterruptedError("The refresh was given up.")
            self._over = self._over or idle
        if idle and self._group is not None:
            self._group.give_up(self._error)

    def _run(self, task: TableName) -> None:
        """Prepare a task's tables.

        Where members read others than before, as their definitions are new, the first task prepares all tables.
        """
        with self._opening:
            first = not self._opened
            if first:
                self._opened = True
                self._group = self._begin()
                self._unchanged = self._group.begin()
                self._whole = self._group.reordered
                self._ready = self._unchanged is None
        if self._group is None or not self._ready or (self._whole and not first):
            return
        for part in self._group.parts if self._whole else (tuple(self._tasks[task]),):
            self._group.prepare(part)

    def _end(self) -> Results | None:
        if self._error is None and self._unchanged is not None:
            return self._unchanged
        if self._group is None:
            return None
        if self._error is None:
            try:
                return self._group.publish()
            except BaseException as error:
                self._group.give_up(error)
                raise
        self._group.give_up(self._error)
        return None
