"""Refreshes units by hand, in threads of its own, in the order of the schedulers' dispatch.

A unit is a stream table, or a group. Unlike with schedulers a group does not begin before all that it reads has ended:
so a unit that fails, or is tried once more, never holds up one that is under way already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from headrace.errors import HeadraceError
from headrace.graph.critical import remaining_of_tasks
from headrace.graph.dag import Dag
from headrace.names import TableName
from headrace.refresh.groups.side_by_side import Results, SideBySide, Together
from headrace.results.refresh_results import RefreshResult
from headrace.scheduler.policy.dispatch import Dispatch
from headrace.scheduler.policy.unit_tasks import UnitTasks

POLL_SECONDS = 0.2
"""Time between two looks around. What runs in vain is cancelled at each, as jobs that begin in between run on; and an
interrupt that is raised in a thread which is not the main one comes no sooner."""

Begin = Callable[[], Together]
"""Makes the refresh of a unit, in the thread of its first task; raises what speaks against it."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results and errors of units that were run.

    Args:
        results: Of all members of those that were refreshed, in order of dependency.
        errors: By unit, what went wrong, in the same order; those that read such a unit were left alone.
    """

    results: tuple[RefreshResult, ...]
    errors: Mapping[TableName, HeadraceError]


@dataclass(slots=True)
class _UnderWay:
    work: SideBySide
    error: HeadraceError | None = None
    results: Results = ()


class UnitsRefresh:
    """The refresh of some units, those that do not read each other side by side.

    Args:
        units: How each begins, in order of dependency.
        dag: Which of all units reads which.
        work: The tasks of all units.
        slots: How many tasks run at once. One at a time run in this order, in the caller's thread.
        quotas: How many of a pool run at once.
        cancel: Stops what runs for stream tables, and nothing else.
        again: How a unit that failed is begun once more; None where its failure stands.
        abandoned: Set when an interrupt, or a defect, ends all of it: what is begun need not wait for others any more.
    """

    def __init__(
        self,
        units: Mapping[TableName, Begin],
        dag: Dag[TableName],
        work: UnitTasks,
        *,
        slots: int,
        quotas: Mapping[str, int],
        cancel: Callable[[Sequence[TableName]], None],
        again: Callable[[TableName, HeadraceError], Begin | None] = lambda *_: None,
        abandoned: threading.Event | None = None,
    ) -> None:
        self._abandoned = abandoned or threading.Event()
        self._begin = dict(units)
        self._order = tuple(units)
        self._work = work
        self._cancel = cancel
        self._again = again
        self._tried_again: set[TableName] = set()
        self._under_way: dict[TableName, _UnderWay] = {}
        self._running: dict[Future[Results | None], TableName] = {}
        self._results: dict[TableName, Results] = {}
        self._errors: dict[TableName, HeadraceError] = {}
        tasks = [task for unit in units for task in work.of(unit)]
        self._threads = min(slots, len(tasks))
        if self._threads > 1:
            left = remaining_of_tasks(dag, work.inside, dict.fromkeys(tasks, 1.0))
        else:
            left = {task: -float(place) for place, task in enumerate(tasks)}
        self._dispatch: Dispatch[TableName] = Dispatch(slots, quotas)
        self._dispatch.draw(dag, left, work.pools, work.inside)
        self._dispatch.add(units)

    def run(self) -> Outcome:
        """Refresh all of them, save what reads one that fails.

        An interrupt cancels what runs, and publishes nothing of it.
        """
        with ThreadPoolExecutor(self._threads, "headrace-refresh") if self._threads > 1 else _CallersThread() as pool:
            try:
                while not self._dispatch.idle:
                    for task in self._dispatch.start():
                        self._running[pool.submit(self._begun(task).refresh, task)] = task
                    ended, _ = wait(self._running, POLL_SECONDS, FIRST_COMPLETED)
                    for future in ended:
                        self._settle(self._running.pop(future), future)
                    self._stop(unit for unit, one in self._under_way.items() if one.error is not None)
            except BaseException:  # an interrupt, or a defect
                self._abandon()
                raise
        results = (result for unit in self._order for result in self._results.get(unit, ()))
        return Outcome(tuple(results), {unit: self._errors[unit] for unit in self._order if unit in self._errors})

    def _begun(self, task: TableName) -> SideBySide:
        """Return the refresh of a task's unit, which begins with the first of its tasks."""
        unit = self._dispatch.unit_of(task)
        if unit not in self._under_way:
            self._under_way[unit] = _UnderWay(SideBySide(self._begin[unit], self._work.of(unit)))
        return self._under_way[unit].work

    def _settle(self, task: TableName, future: Future[Results | None]) -> None:
        """Note how a task ended; with the last one of a unit, how that ended."""
        unit, error = self._dispatch.unit_of(task), future.exception()
        if error is not None and not isinstance(error, HeadraceError):
            raise error
        one = self._under_way[unit]
        one.error = one.error or error
        one.results = one.results if error is not None else future.result() or one.results
        given_up = self._dispatch.finish(task) if error is None else self._dispatch.fail(task)
        if not self._dispatch.runs(unit):
            self._end(unit, given_up)

    def _end(self, unit: TableName, given_up: Sequence[TableName]) -> None:
        """Note how a unit ended; what waits for one that is tried again goes on waiting."""
        one = self._under_way.pop(unit)
        if one.error is None:
            self._results[unit] = one.results
            return
        again = None if unit in self._tried_again else self._again(unit, one.error)
        if again is None:
            self._errors[unit] = one.error
            return
        self._tried_again.add(unit)
        self._begin[unit] = again
        self._dispatch.add((unit, *given_up))

    def _stop(self, units: Iterable[TableName]) -> None:
        """Cancel the tasks that run for units.

        Where Spark cannot be reached for that, they are about to fail by themselves.
        """
        wanted = set(units)
        tasks = [task for task in self._dispatch.running if self._dispatch.unit_of(task) in wanted]
        if tasks:
            with suppress(HeadraceError):
                self._cancel([name for task in tasks for name in self._work.tables[task]])

    def _abandon(self) -> None:
        """Put everything under way back, and return when nothing runs any more."""
        self._abandoned.set()
        for one in self._under_way.values():
            one.work.abandon()
        while wait(self._running, POLL_SECONDS).not_done:
            self._stop(self._under_way)


class _CallersThread(Executor):
    """Runs what it is given at once, in the thread that gives it.

    So Ctrl-C, tracebacks and Spark's thread-local properties are the caller's.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function; what is no designed error goes straight to the caller."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except HeadraceError as error:
            future.set_exception(error)
        return future
