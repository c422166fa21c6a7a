"""The scheduler's loop: reads the state, queues units, starts them on threads.

Everything that one look finds due reads one cut of the sources, however long it takes. Looks go on while units run: a
slow one delays only what reads from it. While nothing moves, a look is three small queries.
"""

from __future__ import annotations

import datetime as dt
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace

from headrace.catalog import Catalog
from headrace.clock import TICK, Clock, SystemClock
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import (
    CyclesTold,
    Events,
    Notice,
    SchedulerLoad,
    SchedulerStarted,
    SchedulerStopped,
    Waiting,
)
from headrace.graph.dag import Dag
from headrace.lake.clock_table import moment_of
from headrace.names import CLOCK, LAKE, TableName
from headrace.observability.journal import Journal
from headrace.refresh.cut.cut import Cut
from headrace.refresh.fuses.fuse import BLOWN
from headrace.refresh.groups.grouping import Grouping
from headrace.refresh.held_leases import new_owner
from headrace.results.refresh_results import Mode, RefreshResult
from headrace.schedule.options import DEPLOY_POOL
from headrace.scheduler.cycle_summary import planned
from headrace.scheduler.deployments import Deployments
from headrace.scheduler.failures import input_failed, not_ended, note_failure, timed_out
from headrace.scheduler.idle import Idle
from headrace.scheduler.lag_reports import LagReports
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.membership import Membership
from headrace.scheduler.outage import Outage
from headrace.scheduler.patience import Patience
from headrace.scheduler.policy.backoff import PASSING
from headrace.scheduler.policy.dispatch import Dispatch
from headrace.scheduler.policy.plan_cycle import Cycle, Hold, plan_cycle, waits
from headrace.scheduler.policy.slot_shares import Slots
from headrace.scheduler.policy.unit_tasks import UnitTasks, unit_tasks
from headrace.scheduler.policy.urgency import own_share_first, task_urgency
from headrace.scheduler.rules import Rules
from headrace.scheduler.scheduler_state import SchedulerState, read_scheduler_state
from headrace.scheduler.user_decisions import Decisions
from headrace.scheduler.work import Planned, RunSummary, Work, Worker

UNREAD_PAUSE = dt.timedelta(seconds=5)
"""Time until sources that could not be read are tried again."""

SPARING = 4
"""After a look the next one waits so many times as long as it took."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """The outcome of a task."""

    unit: TableName
    task: TableName
    results: tuple[RefreshResult, ...] = ()
    error: HeadraceError | None = None


@dataclass(slots=True)
class _Running:
    """A unit under way.

    Args:
        members: Its stream tables.
        tasks: Its tasks, each with its stream tables.
        work: Refreshes it.
        lined_up: When the look began that lined it up; its sources were observed then, or after.
        begun: When it began.
        early: Whether it began before all that it reads was published.
        deadlines: When tasks that run are to be cancelled, where they have a limit.
        late: Tasks that were cancelled as they took too long.
        error: What went wrong with the first task that failed.
        results: Of all members, once they are published.
    """

    members: tuple[TableName, ...]
    tasks: Mapping[TableName, tuple[TableName, ...]]
    work: Work
    lined_up: dt.datetime
    begun: dt.datetime
    early: bool = False
    deadlines: dict[TableName, float] = field(default_factory=dict)
    late: set[TableName] = field(default_factory=set)
    error: HeadraceError | None = None
    results: tuple[RefreshResult, ...] = ()


class Scheduler:
    """Runs schedules of one project.

    Args:
        catalog: The catalog.
        worker: Refreshes units.
        events: Told what happens.
        rules: How to work.
        clock: Tells the time.

    Attributes:
        spark: To be told of a Spark that is lost.
        patience: How long what runs may go on once the run is to end.
    """

    def __init__(
        self, catalog: Catalog, worker: Worker, events: Events, rules: Rules, clock: Clock | None = None
    ) -> None:
        self.catalog = catalog
        self.worker = worker
        self.events = events
        self.rules = rules
        self.clock = clock or SystemClock()
        self.owner = new_owner()
        self._dispatch: Dispatch[TableName] = Dispatch(rules.slots, rules.quotas)
        self._membership = Membership(catalog, self.owner, Slots(rules.slots, rules.quotas), rules.poll)
        self._ended: queue.Queue[_Ended | None] = queue.Queue()  # None: something changed
        self._running: dict[TableName, _Running] = {}
        self._cuts: dict[TableName, tuple[Cut, dt.datetime]] = {}
        self._lined_up: dict[TableName, tuple[dt.datetime, dt.datetime, dt.datetime]] = {}
        self._state: SchedulerState | None = None
        self._grouping: Grouping | None = None
        self._tasks = UnitTasks({}, {}, {}, {})
        self._late_only: set[TableName] = set()
        self._seen: object = None
        self._next: dt.datetime | None = None
        self._told: dict[TableName, Hold] = {}
        self._lags = LagReports(events)
        self._unread: dict[TableName, str] = {}
        self._look_after = 0.0
        self._nudged = False
        self._load: SchedulerLoad | None = None
        self._cycles = CyclesTold(events)
        self.patience = Patience(events, rules.grace)
        self._refreshed = self._failed = 0
        self._once = False
        self._over = threading.Event()
        self.spark = LostSpark(events, worker.restart)
        self._outage = Outage(events)
        self._decisions = Decisions(catalog, events, rules.poll)
        self._deployments = Deployments(catalog, worker, events, rules.poll, self.spark)
        self._idle = Idle(
            catalog, worker, events, self.clock, rules.maintenance, self._undisturbed, self._over, self.spark
        )

    def plan(self) -> tuple[Planned, ...]:
        """Return what would be refreshed now, in order and with reasons, and what waits."""
        state = self._look()
        now = self.clock.now()
        return planned(state, plan_cycle(state, now), now)

    def run(
        self, stopping: threading.Event, *, once: bool = False, at_once: threading.Event | None = None
    ) -> RunSummary:
        """Keep tables fresh until stopped.

        Args:
            stopping: Set to let what runs end, and start nothing more.
            once: Refresh what is due now, and what that pulls along; then end.
            at_once: Set to cancel what runs, after `stopping`.

        Raises:
            UserError: `SCHEDULER_RUNNING`.
            EnvironmentFault: `SPARK_LOST` when a Spark that is not ours is gone for good; why ours does not start.
        """
        self.patience = Patience(self.events, self.rules.grace, at_once)
        self._once = once
        self._membership.join(stopping, self.events)
        self._dispatch.slots = 0  # until it was counted how many there are
        self._decisions.tell()
        results: list[RefreshResult] = []
        notifications = nullcontext() if once else self.catalog.listening(self.wake)
        with notifications, Journal(self.catalog, self.events, self.clock) as self._journal:
            try:
                with ThreadPoolExecutor(self.rules.slots, thread_name_prefix="headrace-refresh") as pool:
                    self._loop(pool, stopping, results)
            finally:
                self._over.set()
                for run in self._running.values():  # there are none, unless the loop broke
                    run.work.abandon()
                self.spark.end()
                self._deployments.end(self.patience)
                self._idle.end(self.patience)
                self._membership.leave()
                self._cycles.note(busy=False)
                self.events.emit(SchedulerStopped(self.owner, self._refreshed, self._failed))
        if self.spark.gone is not None:
            raise self.spark.gone
        return RunSummary(self._refreshed, self._failed, tuple(results))

    def wake(self) -> None:
        """Look around soon: something moved."""
        self._ended.put(None)

    def is_refreshing(self) -> bool:
        """Return whether refreshes are under way, or about to begin."""
        return not self._dispatch.idle

    def is_catalog_away(self) -> bool:
        """Return whether the catalog does not answer, or cannot be written, as was reported."""
        return self._outage.lasts

    # ---- the loop

    def _loop(self, pool: ThreadPoolExecutor, stopping: threading.Event, results: list[RefreshResult]) -> None:
        told = False
        while True:
            if self._beat() or self.spark.gone is not None:
                stopping.set()
            if stopping.is_set():
                self._over.set()
                self._drain()
            elif not (self._once and told):
                told = self._consider(told)
                self._beside()
            self._cycles.note(busy=not self._dispatch.idle)
            for task in self._dispatch.start(self._occupied()) if self._may_start else ():
                self._begin(pool, task)
            self._tell_load()
            if self._dispatch.idle and (self._once or stopping.is_set()):
                if self._once and not stopping.is_set() and self.catalog.has_unattended():
                    self._deployments.step()  # by what was refreshed just now
                    self._decisions.tell(at_once=True)
                return
            self._enforce_timeouts()
            self._journal.write()
            self._decisions.tell()
            for ended in self._wait():
                done = self._settle(ended)
                if self._once:
                    results += done
            self._cycles.note(busy=not self._dispatch.idle)

    @property
    def _may_start(self) -> bool:
        late = self._over.is_set() and self.patience.over
        return not (late or self.spark.away or self._outage.lasts)

    def _occupied(self) -> tuple[str, ...]:
        """Return pools in which a promotion takes a place; it never waits for one itself.

        It may have to be made within a window, or mend what is public: nothing to wait behind a load of hours.
        """
        return (DEPLOY_POOL,) if self.worker.exchanging else ()

    def _consider(self, told: bool) -> bool:
        """Look around and let what is due wait in line; returns whether that was ever possible.

        A catalog that does not answer is asked again, unless this is to happen only once.
        """
        if time.monotonic() < self._look_after:
            return told
        with self.spark.using(wait=False) as there:  # tables in other catalogs are looked at through Spark
            if not there:
                return told
            state = self._look() if self._once and not told else None
            layouts = () if state is None else state.layouts
            if not layouts:
                return self._consider_now(told, state)
        # what is to be loaded for them, is loaded now; it waits for a Spark that was lost, which is not to be used then
        self._deployments.step(layouts)
        with self.spark.using():
            return self._consider_now(told)

    def _consider_now(self, told: bool, state: SchedulerState | None = None) -> bool:
        """Go by a state that was read just now; None to read it."""
        begun = time.monotonic()
        nudged, self._nudged = self._nudged, False
        try:
            # what was told to have changed may not show: it is told by times, and another host's clock may be behind
            if self._quiet() and not nudged:
                self._outage.over()
                self._lags.report_new(self._state, self.clock.now())
                return True
            state = state or self._look()
            if not told:
                self.events.emit(SchedulerStarted(self.owner, len(state.tables)))
            self._line_up(state, plan_cycle(state, self.clock.now()))
            # looking at a big pipeline takes a while, and what ends meanwhile waits: so not all the time
            self._look_after = time.monotonic() + SPARING * (time.monotonic() - begun)
        except HeadraceError as error:
            if not self._outlasts(error):
                raise
            self._seen = None
            return told
        self._outage.over()
        return True

    def _outlasts(self, error: HeadraceError, *, writing: bool = False) -> bool:
        """Leave the catalog alone for a moment, where it may answer after that.

        Returns:
            False where it may not, or there is no time to wait for it.
        """
        if self._once or not error.retryable:
            return False
        self._look_after = time.monotonic() + self._outage.failed(error, writing=writing)
        return True

    def _quiet(self) -> bool:
        """Return whether nothing moved since the last look, and nothing has become due."""
        seen = self._state and self._pulse(self._state)
        quiet = seen is not None and seen == self._seen
        self._seen = seen
        return quiet and (self._next is None or self.clock.now() < self._next)

    def _pulse(self, state: SchedulerState) -> object | None:
        """Return a value that differs when something moved.

        None where a source is in another catalog, of which only Spark could tell.
        """
        if any(base.catalog != LAKE for base in state.bases):
            return None
        pointers = self.catalog.pointers(LAKE, state.bases)
        ticks = moment_of(self.catalog.now()) // round(TICK * 1_000_000) if CLOCK in state.bases else 0
        return ticks, self.catalog.pulse(), tuple(sorted((str(n), p.metadata_location) for n, p in pointers.items()))

    def _look(self) -> SchedulerState:
        self._looked_at = self.catalog.now()
        self._heads = self.worker.heads()
        unread: dict[TableName, HeadraceError] = {}
        rules = self.rules
        state = read_scheduler_state(
            self.catalog, self._heads, rules.defaults, rules.default_schedule, unread.__setitem__
        )
        for name, error in unread.items():
            if self._unread.get(name) != error.message:
                self.events.emit(Notice(f"Source {name} cannot be read. [{error.code}] {error.message}"))
            if error.code == "SPARK_LOST":
                self.spark.lost(error)
        self._unread = {name: error.message for name, error in unread.items()}
        return self._with_time_in_line(state)

    def _with_time_in_line(self, state: SchedulerState) -> SchedulerState:
        """Add when tables by cron were lined up, which may have waited past a point in time."""
        tables = dict(state.tables)
        self._lined_up = {name: times for name, times in self._lined_up.items() if name in tables}
        for name, (lined_up, begun, ended) in self._lined_up.items():
            if (at := tables[name].standing.refreshed) is not None and begun <= at <= ended:
                tables[name] = replace(tables[name], standing=replace(tables[name].standing, lined_up=lined_up))
        return replace(state, tables=tables) if self._lined_up else state

    def _line_up(self, state: SchedulerState, cycle: Cycle) -> None:
        self._state = state
        units = state.grouping.units
        if state.grouping is not self._grouping:
            self._grouping, self._tasks = state.grouping, unit_tasks(state.grouping)
        left = own_share_first(task_urgency(state, self._tasks, self.clock.now()), self._membership.rank)
        outside = self._tasks.outside
        if self._late_only:  # a task that is left out waits for all that its unit reads
            outside = {task: above for task, above in outside.items() if units.unit_of[task] not in self._late_only}
        # another one has refreshed it meanwhile; or it waits for a user, or for what has failed
        leaving = {*cycle.unchanged, *cycle.held}
        for unit in self._dispatch.draw(units.dag, left, self._tasks.pools, self._tasks.inside, outside, leaving):
            self._cuts.pop(unit, None)
        new = [unit for unit in self._own(units.dag, cycle.wanted) if not self._dispatch.knows(unit)]
        self._cuts |= dict.fromkeys(new, (self._heads, self._looked_at))
        self._dispatch.add(new)
        self._next = cycle.next_due
        if self._unread:  # nothing moves when such a table can be read again
            again = self.clock.now() + UNREAD_PAUSE
            self._next = min(self._next or again, again)
        for unit, hold in cycle.held.items():
            if self._told.get(unit) != hold:
                self.events.emit(Waiting(str(unit), str(hold.table), hold.reason))
        self._told = dict(cycle.held)
        self._lags.report(state, self.clock.now())

    def _own(self, dag: Dag[TableName], wanted: Iterable[TableName]) -> Iterator[TableName]:
        """Yield the units that this scheduler may refresh.

        Where its share is none, they are left to the others, with what reads them.
        """
        left: set[TableName] = set()
        for unit in wanted:
            if self._membership.share.admits(self._tasks.pools_of(unit)) and left.isdisjoint(dag.producers(unit)):
                yield unit
            else:
                left.add(unit)

    def _tell_load(self) -> None:
        dispatch = self._dispatch
        running, pools = dispatch.busy
        load = SchedulerLoad(dispatch.slots, running, dispatch.waiting, dict(dispatch.quotas), pools)
        if load != self._load:
            self._load = load
            self.events.emit(load)

    # ---- units

    def _begin(self, pool: ThreadPoolExecutor, task: TableName) -> None:
        assert self._state is not None
        unit = self._dispatch.unit_of(task)
        if unit not in self._running:
            members, tasks = self._state.grouping.units.members[unit], self._tasks.of(unit)
            awaited = [self._running[above].members for above in self._dispatch.awaited(unit)]
            (cut, lined_up), begun = self._cuts.pop(unit), self.catalog.now()
            work = self.worker.begin(members, tasks, cut, awaited)
            self._running[unit] = _Running(members, tasks, work, lined_up, begun, early=bool(awaited))
        run, options = self._running[unit], self._state.grouping.options
        limits = [t for n in run.tasks[task] if n in options and (t := options[n].timeout) is not None]
        if limits:
            run.deadlines[task] = time.monotonic() + max(limits)
        pool.submit(self._work, unit, task, run.work)

    def _work(self, unit: TableName, task: TableName, work: Work) -> None:
        """Refresh in a thread of the pool, and say how it ended, whatever happens."""
        try:
            with self.spark.using():
                results = work.refresh(task)
            self._ended.put(_Ended(unit, task, results or ()))
        except HeadraceError as error:
            self._ended.put(_Ended(unit, task, error=error))
        except BaseException as error:
            defect = EnvironmentFault("REFRESH_BROKE", f"The refresh of {task} broke: {error!r}.", retryable=True)
            self._ended.put(_Ended(unit, task, error=defect))
            raise

    def _wait(self) -> list[_Ended]:
        """Return the units that ended, waiting at most until the next look."""
        found: list[_Ended | None] = []
        soon = self._look_after - time.monotonic()
        patience = self.rules.poll
        if self._nudged and not self.spark.away:  # the look that it was nudged to was put off
            patience = min(max(soon, 0.01), patience)
        with suppress(queue.Empty):
            found.append(self._ended.get(timeout=patience))
            while True:
                found.append(self._ended.get_nowait())
        if None in found:
            self._nudged = True
            self._membership.hasten()  # the next beat also asks whether to drain
        return [ended for ended in found if ended is not None]

    def _settle(self, ended: _Ended) -> tuple[RefreshResult, ...]:
        """Note that a task ended; with the last one of a unit, how that ended."""
        run = self._running[ended.unit]
        run.deadlines.pop(ended.task, None)
        run.results += ended.results
        if ended.error is not None and run.error is None:
            # whatever Spark says of a job that was cancelled
            late = ended.task in run.late and ended.error.code != "SPARK_LOST"
            run.error = timed_out(ended.task) if late else ended.error
        note = self._dispatch.finish if ended.error is None else self._dispatch.fail
        given_up = note(ended.task)
        if self._dispatch.runs(ended.unit):
            return ()
        self._end(ended.unit, given_up)
        if run.error is not None:
            return ()
        self._refreshed += 1
        if any(result.mode is not Mode.NO_CHANGE for result in run.results):
            self.spark.found()
        return run.results

    def _end(self, unit: TableName, given_up: Iterable[TableName]) -> None:
        """Forget a unit whose tasks have all ended; see to what waits for it, and count its failure."""
        run = self._running.pop(unit)
        self._seen = None  # a look between its publication and now passed over what it is to do again
        if run.error is None:
            known = {} if self._state is None else self._state.tables
            by_cron = [name for name in run.members if name in known and known[name].schedule.cron is not None]
            self._lined_up |= dict.fromkeys(by_cron, (run.lined_up, run.begun, self.catalog.now()))
            self._late_only.discard(unit)
            return
        if run.early:  # whatever it was: it may be that it would not have been had it begun later
            self._late_only.add(unit)
        self._give_up(given_up, unit, run.error)
        self._note(run, run.error)

    def _note(self, run: _Running, error: HeadraceError) -> None:
        """Count a failure of a unit, and plan what becomes of it."""
        if error.code in PASSING:
            return
        self._failed += 1
        if error.code == BLOWN:  # noted already, with its evidence; no retry would help, nor is anything broken
            return
        if error.code == "SPARK_LOST" and not self.worker.restartable:
            return
        limit = self.rules.suspend_after
        trouble = note_failure(self.catalog, self.events, run.members, error, self.clock.now(), limit)
        if trouble is not None and not self._outlasts(trouble, writing=True):
            self.events.emit(Notice(f"A failure could not be noted. [{trouble.code}] {trouble.message}"))

    def _give_up(self, units: Iterable[TableName], failed: TableName, error: HeadraceError) -> None:
        """Give up units that wait for a failed one, also such as have begun.

        Tables that need no consistency go on without it.
        """
        assert self._state is not None
        for unit in units:
            under_way = self._dispatch.runs(unit)
            if not waits(self._state, unit):
                self._dispatch.go_on(unit) if under_way else self._dispatch.add([unit])
            elif under_way:
                self._stop(unit, input_failed(failed, error))
            else:
                self._cuts.pop(unit, None)

    def _stop(self, unit: TableName, why: HeadraceError) -> None:
        """Start no further task of a unit under way; what runs of it is cancelled at the next look."""
        run = self._running[unit]
        run.error = run.error or why
        given_up = self._dispatch.stop(unit)
        run.work.abandon(why)
        if not self._dispatch.runs(unit):
            self._end(unit, given_up)

    # ---- beating and ending

    def _beat(self) -> bool:
        """Renew this scheduler's registration when due; return whether it must drain.

        Raises:
            UserError: `SCHEDULER_RUNNING` when it was silent for so long that another one, where there may be only one,
                took its place; `CATALOG_COPIED`.
        """
        if self._outage.lasts:  # a sign of life, too, is tried again when the catalog has been left alone
            if time.monotonic() < self._look_after:
                return False
            self._membership.hasten()
        ending = self._over.is_set()
        try:
            beat = self._membership.beat(Slots(*self._dispatch.busy), ending=ending)
        except UserError:
            raise  # no outage: the database is another one than before, and not the project's own
        except HeadraceError as error:
            self._outlasts(error, writing=True)  # any other is told where the catalog is looked at
            return False
        if beat is None:
            return False
        if beat.room is None:
            self._membership.rejoin()
            return False
        self._outage.written()
        if ending:
            self._outage.over()  # nobody looks around any more, and what is under way may go on
        if beat.moved:
            self._seen = None  # what was left to others may be this one's now
        self._dispatch.slots, self._dispatch.quotas = beat.room.all, dict(beat.room.pools)
        self._decisions.elect(beat.leads)
        return beat.draining

    def _drain(self) -> None:
        """Begin no more units; cancel what outlasts the grace time.

        A unit of which nothing runs just then, as Spark or the catalog is away, has nothing that would be cancelled.
        """
        for unit in self._dispatch.clear():
            self._cuts.pop(unit, None)
        self.patience.begin([str(member) for run in self._running.values() for member in run.members])
        if self.patience.over:
            for run in self._running.values():
                self._cancel(run.members)
            for unit in [unit for unit in self._running if not self._dispatch.active(unit)]:
                if unit in self._running:  # else it was stopped with one that it reads
                    self._stop(unit, not_ended(unit))

    def _cancel(self, tables: Sequence[TableName]) -> None:
        """Again at each look; what cannot be reached to be cancelled is about to fail by itself."""
        with suppress(HeadraceError):
            self.worker.cancel(tables)

    def _undisturbed(self) -> bool:
        return self._dispatch.idle

    def _beside(self) -> None:
        """See to deployments, and maintain while it is quiet, or long overdue."""
        if not self._once:
            with suppress(HeadraceError):  # an outage of the catalog is told where it is looked at
                self._deployments.consider(() if self._state is None else self._state.layouts)
        try:
            self._idle.consider()
        except HeadraceError as error:
            self.events.emit(Notice(f"Maintenance was put off. [{error.code}] {error.message}"))

    def _enforce_timeouts(self) -> None:
        """Cancel what runs for too long, or in vain.

        Again at each look, as jobs that begin in between run on.
        """
        for run in self._running.values():
            if run.error is not None:
                self._cancel(run.members)
            for task, deadline in run.deadlines.items():
                if time.monotonic() > deadline:
                    run.late.add(task)
                    self._cancel(run.tasks[task])
