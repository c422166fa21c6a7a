"""Runs schedules, groups stream tables and reports events."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.api.project_handle import Names, ProjectHandle
from headrace.errors import UserError
from headrace.events import Event, Paused, Resumed
from headrace.names import TableName

if TYPE_CHECKING:
    from headrace.api.schedules.event_log import LoggedEvent
    from headrace.api.schedules.groups import DiamondGroup
    from headrace.scheduler.work import RunSummary


class ScheduleVerbs(ProjectHandle):
    """Verbs about pipelines that run themselves."""

    def run(
        self,
        *,
        once: bool = False,
        dry_run: bool = False,
        max_concurrent: int | None = None,
        stopping: threading.Event | None = None,
        grace: dt.timedelta = dt.timedelta(seconds=60),
    ) -> RunSummary:
        """Keep stream tables fresh by their schedules until stopped.

        It ends at SIGTERM, SIGINT, `drain`, or when `stopping` is set; at a second SIGINT by `KeyboardInterrupt`.

        Args:
            once: Refresh what is due now, and what that pulls along; then return.
            dry_run: Only say what would be refreshed now; starts no Spark.
            max_concurrent: Refreshes at once, 1 to 32; `max_concurrent_refreshes` of the settings when None.
            stopping: Set from another thread to let what runs end, start nothing more, and return.
            grace: What runs when it is to stop is given that long, then it is cancelled.

        Raises:
            UserError: `SCHEDULER_RUNNING`: with SQLite one process runs schedules at a time. `INVALID_OPTION`,
                `CATALOG_COPIED`.
        """
        from headrace.api.schedules.run_schedules import run

        self._lazy.adopt()
        return run(
            self.settings,
            self._catalog,
            self._engine().creator,
            self._lazy,
            self.events,
            once=once,
            dry_run=dry_run,
            max_concurrent=max_concurrent,
            stopping=stopping,
            grace=grace,
            sources=self.sources,
            sinks=self.sinks,
        )

    def pause(self, names: str | Names | None = None) -> tuple[str, ...]:
        """Exclude stream tables (None: all) from schedules; return their names.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`; then none is paused.
        """
        wanted = self._several(names)
        self._catalog.pause(wanted)
        return self._told(Paused, wanted)

    def resume(self, names: str | Names | None = None) -> tuple[str, ...]:
        """Refresh stream tables by their schedules again.

        Ends pauses, suspensions and waits for a retry; they are due at once.

        What is published together has failed together: that ends for the whole group, pauses of the others stay.

        Returns:
            Their names, and those of others that had failed with them.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`; then none is resumed.
        """
        wanted, grouping, scheduling = self._several(names), self._grouping(), self._catalog.scheduling_states()
        together = dict.fromkeys(m for name in wanted if name in grouping.options for m in grouping.members(name))
        failed = [m for m in together if m not in wanted and m in scheduling and scheduling[m].failures]
        self._catalog.unpause(wanted, failed)
        return self._told(Resumed, [*wanted, *failed])

    def _told(self, kind: Callable[[tuple[str, ...]], Event], tables: Sequence[TableName]) -> tuple[str, ...]:
        names = tuple(str(n) for n in tables)
        if names:
            self._decided(kind(names))
        return names

    def drain(self) -> tuple[str, ...]:
        """Have every `run` of this project finish and end; return the owners asked."""
        return tuple(s.owner for s in self._catalog.drain())

    def diamond_groups(self) -> tuple[DiamondGroup, ...]:
        """Return the groups of stream tables that are refreshed and published together.

        Starts no Spark.
        """
        from headrace.api.schedules.groups import diamond_groups
        from headrace.api.schedules.project_defaults import scheduler_state_of
        from headrace.refresh.cut.cut import Cut

        state = scheduler_state_of(self.settings, self._catalog, Cut(self._catalog, lambda _: None))
        return diamond_groups(self._catalog, state, dt.datetime.now(dt.UTC))

    def create_refresh_group(self, name: str, members: Names) -> None:
        """Refresh and publish stream tables together, although no diamond asks for it.

        What lies on a way between two members belongs to the group, too.

        Args:
            name: The group.
            members: Its stream tables, two or more.

        Raises:
            UserError: `GROUP_EXISTS`, `GROUP_MEMBER_TAKEN`, `STREAM_TABLE_NOT_FOUND`, `INVALID_OPTION`; then nothing
                changes.
        """
        from headrace.api.schedules.groups import declare_group

        if not name.strip() or len(set(members)) < 2:
            raise UserError("INVALID_OPTION", "A refresh group has a name and two or more stream tables.")
        declare_group(self._catalog, name.strip(), self._names(dict.fromkeys(members)))

    def drop_refresh_group(self, name: str, *, if_exists: bool = False) -> tuple[str, ...]:
        """Let the members of a declared group go their own ways again; returns their names.

        Raises:
            UserError: `GROUP_NOT_FOUND`.
        """
        from headrace.api.schedules.groups import drop_group

        return tuple(str(n) for n in drop_group(self._catalog, name.strip(), if_exists=if_exists))

    def on_event(self, call: Callable[[dict[str, Any]], Any]) -> Callable[[], None]:
        """Have a function called with what happens, until the project is closed.

        It is called in a thread of its own, one event after the other: whether it is slow, hangs or raises is no
        refresh's business. When more than 1,000 events wait for it, the oldest are given up.

        Args:
            call: Receives a dict: `at`, `event`, and what it is about, as `headrace run --json` prints them.

        Returns:
            A function that ends it, after what has happened so far was delivered (in five seconds at most).
        """
        from headrace.observability.event_hook import Hook

        hook = self._hooks.enter_context(Hook(call, self.events))
        return hook.end

    def event_log(self, after: int | None = None, limit: int = 100) -> tuple[LoggedEvent, ...]:
        """Return schedulers' events, oldest first; the catalog keeps them for a week.

        Args:
            after: Only events later than the one of this id; None for the newest ones.
            limit: How many at most.
        """
        from headrace.api.schedules.event_log import event_log

        return event_log(self._catalog, after, limit)
