"""Refreshes one group in threads of its own, as schedulers do, for those who ask by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from headrace.graph.critical import remaining
from headrace.graph.dag import Dag
from headrace.names import TableName
from headrace.refresh.groups.side_by_side import Results, SideBySide, Together
from headrace.scheduler.policy.dispatch import Dispatch
from headrace.scheduler.policy.unit_tasks import UnitTasks

CANCEL_SECONDS = 0.2
"""Time between two tries to cancel what runs in vain; jobs that begin in between run on."""


def refresh_together(
    begin: Callable[[], Together],
    unit: TableName,
    work: UnitTasks,
    *,
    slots: int,
    quotas: Mapping[str, int],
    cancel: Callable[[Sequence[TableName]], None],
) -> Results:
    """Refresh a group, members that do not depend on each other side by side.

    Args:
        begin: Makes the refresh.
        unit: The group.
        work: The tasks of all units.
        slots: How many tasks run at once.
        quotas: How many of a pool run at once.
        cancel: Stops what runs for stream tables.

    Returns:
        The results of all members.

    Raises:
        HeadraceError: What went wrong with the first that failed; nothing was published then.
    """
    tasks, inside = work.of(unit), work.inside[unit]
    together = SideBySide(begin, tasks)
    dispatch: Dispatch[TableName] = Dispatch(slots, quotas)
    dispatch.draw(Dag({unit: ()}), remaining(inside, dict.fromkeys(tasks, 1.0)), work.pools, work.inside)
    dispatch.add([unit])
    running: dict[Future[Results | None], TableName] = {}
    results: Results = ()
    error: BaseException | None = None
    with ThreadPoolExecutor(slots, thread_name_prefix="headrace-refresh") as pool:
        try:
            while not dispatch.idle:
                running |= {pool.submit(together.refresh, task): task for task in dispatch.start()}
                if error is not None:
                    cancel([name for task in running.values() for name in tasks[task]])
                ended, _ = wait(running, None if error is None else CANCEL_SECONDS, FIRST_COMPLETED)
                for future in ended:
                    error = error or future.exception()
                    note = dispatch.fail if future.exception() else dispatch.finish
                    note(running.pop(future))
                    results = results if future.exception() else future.result() or results
        except BaseException:  # an interrupt
            together.abandon()
            while wait(running, CANCEL_SECONDS).not_done:
                cancel([name for task in running.values() for name in tasks[task]])
            raise
    if error is not None:
        raise error
    return results
