"""Runs schedules in this process: signals, listeners, and the worker that refreshes."""

from __future__ import annotations

import dataclasses
import datetime as dt
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from headrace.api.schedules.maintenance_ages import ORPHAN_AGE, SNAPSHOT_AGE
from headrace.api.schedules.project_defaults import defaults_of, quotas_of, slots_of
from headrace.catalog import Catalog
from headrace.clock import TICK, SystemClock
from headrace.config import Settings, parse_interval, parse_keep_history
from headrace.deploy.load_journal import noting_loads
from headrace.errors import HeadraceError
from headrace.events import Events, Notice
from headrace.observability.event_hook import Hook, load_hook
from headrace.observability.webhook import Webhook
from headrace.schedule import parse_schedule
from headrace.scheduler.loop import Scheduler
from headrace.scheduler.patience import Patience
from headrace.scheduler.policy.backoff import PASSING
from headrace.scheduler.rules import Rules
from headrace.scheduler.source_and_sink_work.deliveries import delivering
from headrace.scheduler.source_and_sink_work.landings import land_once, landing
from headrace.scheduler.work import RunSummary

if TYPE_CHECKING:
    from headrace.api.database_sinks import Sinks
    from headrace.api.database_sources import Sources
    from headrace.deploy.unattended.deployer import Deployer
    from headrace.deploy.unattended.layout_upgrades import LayoutUpgrades
    from headrace.names import TableName
    from headrace.ports import Session
    from headrace.refresh.cut.cut import Cut
    from headrace.refresh.definition.create import Creator
    from headrace.refresh.groups.side_by_side import SideBySide


class EngineWorker:
    """Refreshes units with the engine, as the scheduler's protocol `Worker`."""

    def __init__(self, creator: Creator, session: Session, keep_history: dt.timedelta | None = None) -> None:
        self._creator = creator
        self._session = session
        self._keep_history = keep_history
        self._deploying: tuple[Deployer, LayoutUpgrades] | None = None

    def heads(self) -> Cut:
        """Return a new cut."""
        return self._creator.refresher.heads(TICK)

    def begin(
        self,
        members: Sequence[TableName],
        tasks: Mapping[TableName, Sequence[TableName]],
        heads: Cut,
        awaited: Sequence[Sequence[TableName]] = (),
    ) -> SideBySide:
        """Return the refresh of stream tables that are published at once."""
        from headrace.refresh.groups.side_by_side import SideBySide

        return SideBySide(lambda: self._creator.plan_group(members, heads, awaited=awaited), tasks)

    def maintain(self, wanted: Callable[[TableName], bool], waits: Callable[[], bool]) -> list[str]:
        """Maintain stored tables with the ages that `headrace maintain` has by default."""
        from headrace.deploy.expired_generations import drop_expired
        from headrace.refresh.maintenance import maintain

        refresher = self._creator.refresher
        drop_expired(refresher.catalog, self._creator, refresher.clock.now())
        results = maintain(
            refresher.catalog,
            self._session,
            older_than=SNAPSHOT_AGE,
            orphans_older_than=ORPHAN_AGE,
            dry_run=False,
            keep_history=self._keep_history,
            wanted=wanted,
            waits=waits,
            defaults=refresher.defaults,
        )
        return [f"{result.name}: {result.detail}" for result in results if result.failed]

    def deploy(self, layouts: Sequence[TableName]) -> None:
        """Promote deployments whose conditions hold; roll back watched ones that fail."""
        from headrace.api.deploying.promoting import deployer_of, layout_upgrades_of

        if self._deploying is None:
            args = (self._creator, self._session)
            self._deploying = (deployer_of(*args), layout_upgrades_of(*args))
        deployer, upgrades = self._deploying
        upgrades.begin(layouts)
        deployer.step()
        upgrades.end()

    @property
    def exchanging(self) -> bool:
        """Return whether `deploy` exchanges generations just now."""
        return self._deploying is not None and self._deploying[0].exchanging

    def cancel(self, members: Sequence[TableName]) -> None:
        """Stop the Spark jobs that run for these tables; there are none before Spark was started."""
        if self._session.started:
            for name in members:
                self._session.runner().cancel_all(f"refresh {name}")

    @property
    def restartable(self) -> bool:
        """Return whether this project started Spark."""
        return self._session.restartable

    def restart(self) -> bool:
        """Start Spark anew, if this project started it; what was kept in the lost one is forgotten."""
        if not self._session.restartable:
            return False
        self._session.restart()  # first: a lost one may hang, and with it whoever asks it to forget something
        self._creator.refresher.changes.clear()
        return True


def run(
    settings: Settings,
    catalog: Catalog,
    creator: Creator,
    session: Session,
    events: Events,
    *,
    once: bool,
    dry_run: bool,
    max_concurrent: int | None,
    stopping: threading.Event | None,
    grace: dt.timedelta,
    sources: Sources,
    sinks: Sinks,
) -> RunSummary:
    """Run schedules; see `Headrace.run`."""
    rules = Rules(
        slots=slots_of(settings, max_concurrent),
        default_schedule=parse_schedule(settings.default_schedule),
        quotas=quotas_of(settings),
        defaults=defaults_of(settings),
        grace=grace.total_seconds(),
        suspend_after=settings.suspend_after,
        maintenance=None if once else parse_interval(settings.maintenance_every),
    )
    worker = EngineWorker(creator, session, parse_keep_history(settings.keep_history))
    scheduler = Scheduler(catalog, worker, events, rules)
    if dry_run:
        return RunSummary(planned=scheduler.plan())
    catalog.refuse_copy()
    stop_requested, at_once = stopping or threading.Event(), threading.Event()

    away = scheduler.is_catalog_away

    def patience() -> Patience:
        return scheduler.patience  # that of its run: what it has waited is not waited again

    with _telling(settings, events), noting_loads(catalog, events, SystemClock()):
        if not once:
            with (
                _signals(stop_requested, at_once),
                landing(sources, events, scheduler.spark, patience, scheduler.wake, scheduler.is_refreshing, away),
                delivering(sinks.due, sinks.write_batch, events, patience, sinks.batches, away),
            ):
                return _run(scheduler, stop_requested, at_once)
        # Ctrl-C still interrupts: there is nothing yet that could end with grace
        failure = land_once(lambda: sources.land_for(None, until=threading.Event()), events)
        with _signals(stop_requested, at_once):
            summary = _run(scheduler, stop_requested, at_once, once=True)
        written = _deliver_once(sinks, events)
        return dataclasses.replace(summary, landed=failure is None, written=written)


def _run(
    scheduler: Scheduler, stopping: threading.Event, at_once: threading.Event, *, once: bool = False
) -> RunSummary:
    """Run schedules; raise what a second Ctrl-C is when they have ended by it."""
    summary = scheduler.run(stopping, once=once, at_once=at_once)
    if at_once.is_set():
        raise KeyboardInterrupt
    return summary


def _deliver_once(sinks: Sinks, events: Events) -> bool:
    """Write the sinks that are due; return whether all of them could be."""
    written = True
    for batch in sinks.due():
        try:
            sinks.write_batch(batch)
        except HeadraceError as error:
            if error.code not in PASSING:
                written = False
                events.emit(Notice(f"{batch.name}: not written. [{error.code}] {error.message}"))
    return written


@contextmanager
def _telling(settings: Settings, events: Events) -> Iterator[None]:
    """Deliver events to the configured hook and webhook while the block runs."""
    with ExitStack() as open_:
        if settings.on_event:
            open_.enter_context(Hook(load_hook(settings.on_event, settings.root), events))
        if settings.webhook:
            open_.enter_context(Webhook(settings.webhook, events))
        yield


@contextmanager
def _signals(stopping: threading.Event, at_once: threading.Event) -> Iterator[None]:
    """End the run gracefully on SIGTERM and the first SIGINT, at once on the second.

    A third interrupts even that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and at_once.is_set():
            raise KeyboardInterrupt
        if number == signal.SIGINT and stopping.is_set():
            at_once.set()
        stopping.set()

    former = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
