"""Pipelines that run themselves, from the outside: signals, settings, Spark; and what groups there are."""

from __future__ import annotations

import dataclasses
import datetime as dt
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace.catalog import Catalog, Gate, resource_of
from headrace.config import MOST_CONCURRENT, Settings, parse_interval
from headrace.errors import UserError
from headrace.events import Events
from headrace.graph.dag import Dag
from headrace.observability.attainment import read_stretch
from headrace.observability.event_hook import Hook, load_hook
from headrace.observability.webhook import Webhook
from headrace.refresh.fuses.fuse import Fuse, evidence_from
from headrace.refresh.groups.grouping import Defaults
from headrace.results.refresh_results import Record, StreamTableInfo
from headrace.schedule import parse_schedule
from headrace.schedule.options import Consistency, Policy, parse_ceiling, parse_factor
from headrace.scheduler.landings import Land, land_once, landing
from headrace.scheduler.loop import Scheduler
from headrace.scheduler.policy.lateness import late_because
from headrace.scheduler.policy.plan_cycle import Hold, holds, not_due_yet
from headrace.scheduler.rules import Rules
from headrace.scheduler.scheduler_state import SchedulerState, patience, read_scene, targets
from headrace.scheduler.work import RunSummary

if TYPE_CHECKING:
    from headrace.names import TableName
    from headrace.ports import Session
    from headrace.refresh.cut.cut import Cut
    from headrace.refresh.definition.create import Creator
    from headrace.results.refresh_results import RefreshResult


@dataclass(frozen=True, slots=True)
class DiamondGroup(Record):
    """Stream tables that are refreshed and published together.

    Args:
        name: The group, called after its last member.
        members: Its stream tables, in the order they are refreshed.
        converge: Those at which diamonds meet.
        policy: `fastest` or `slowest`.
        epoch: How often it was published as a group.
        last_publication: The number of the last one, which `hr.at()` takes; None before the first.
        waits_for: What holds the group up, with the reason: a member, something that a member reads, or members that
            are not due yet where all must be; None for nothing.
        declared: The refresh groups that users declared among them.
        cyclic: Those that read each other in a circle.
    """

    name: str
    members: tuple[str, ...]
    converge: tuple[str, ...]
    policy: str
    epoch: int
    last_publication: int | None
    waits_for: str | None
    declared: tuple[str, ...] = ()
    cyclic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoggedEvent(Record):
    """Something that a scheduler told.

    Args:
        id: Grows.
        at: When.
        event: What happened, such as `refresh_finished`.
        fields: What it is about.
    """

    id: int
    at: dt.datetime
    event: str
    fields: Mapping[str, Any]


class EngineWorker:
    """Refreshes units with the engine; what the scheduler knows of it is the protocol `Worker`."""

    def __init__(self, creator: Creator, session: Session) -> None:
        self._creator = creator
        self._session = session

    def heads(self) -> Cut:
        """A new cut."""
        return self._creator.refresher.heads()

    def refresh(self, members: Sequence[TableName], heads: Cut) -> tuple[RefreshResult, ...]:
        """Refresh stream tables that belong together."""
        return self._creator.refresh_group(members, heads)

    def maintain(self, wanted: Callable[[TableName], bool]) -> None:
        """Maintain stored tables with the ages that `headrace maintain` has by default."""
        from headrace.refresh.maintenance import maintain

        refresher = self._creator.refresher
        maintain(
            refresher.catalog,
            self._session,
            older_than=dt.timedelta(days=7),
            orphans_older_than=dt.timedelta(days=3),
            dry_run=False,
            wanted=wanted,
            defaults=refresher.defaults,
        )

    def cancel(self, members: Sequence[TableName]) -> None:
        """Stop the Spark jobs that run for these tables; there are none before Spark was started."""
        if self._session.started:
            for name in members:
                self._session.runner().cancel_all(f"refresh {name}")

    @property
    def restartable(self) -> bool:
        """Whether this project started Spark."""
        return self._session.restartable

    def restart(self) -> bool:
        """Start Spark anew, if this project started it; what was kept in the lost one is forgotten."""
        if not self._session.restartable:
            return False
        self._session.restart()  # first: a lost one may hang, and with it whoever asks it to forget something
        self._creator.refresher.changes.clear()
        return True


def defaults_of(settings: Settings) -> Defaults:
    """What the project wants of diamonds."""
    fuse = Fuse(parse_ceiling(settings.fuse_ceiling), parse_factor(settings.fuse_factor))
    return Defaults(
        Consistency(settings.diamond_consistency),
        Policy(settings.diamond_schedule_policy),
        fuse,
        settings.allow_cycles,
        settings.max_cycle_rounds,
    )


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
    land: Land,
) -> RunSummary:
    """Run schedules; see `Headrace.run`."""
    slots = settings.max_concurrent_refreshes if max_concurrent is None else max_concurrent
    if not 1 <= slots <= MOST_CONCURRENT:
        raise UserError(
            "INVALID_OPTION", f"{slots} refreshes at once are not possible.", hint=f"Use 1 to {MOST_CONCURRENT}."
        )
    rules = Rules(
        slots=slots,
        default_schedule=parse_schedule(settings.default_schedule),
        quotas=settings.pools,
        defaults=defaults_of(settings),
        grace=grace.total_seconds(),
        suspend_after=settings.suspend_after,
        maintenance=None if once else parse_interval(settings.maintenance_every),
    )
    scheduler = Scheduler(catalog, EngineWorker(creator, session), events, rules)
    if dry_run:
        return RunSummary(planned=scheduler.plan())
    told_to_stop = stopping or threading.Event()
    with _telling(settings, events):
        if not once:
            with (
                _signals(told_to_stop),
                landing(land, events, scheduler.spark, scheduler.wake, scheduler.is_refreshing),
            ):
                return scheduler.run(told_to_stop)
        failure = land_once(land, events)  # Ctrl-C still interrupts: there is nothing yet that could end with grace
        with _signals(told_to_stop):
            return dataclasses.replace(scheduler.run(told_to_stop, once=True), landed=failure is None)


@contextmanager
def _telling(settings: Settings, events: Events) -> Iterator[None]:
    """Whoever is to be told by the settings."""
    with ExitStack() as open_:
        if settings.on_event:
            open_.enter_context(Hook(load_hook(settings.on_event, settings.root), events))
        if settings.webhook:
            open_.enter_context(Webhook(settings.webhook, events))
        yield


@contextmanager
def _signals(stopping: threading.Event) -> Iterator[None]:
    """SIGTERM and the first SIGINT end the run with grace; a second SIGINT interrupts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    former = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def scene_of(settings: Settings, catalog: Catalog, heads: Cut) -> SchedulerState:
    """What schedulers would decide from; sources that cannot be read are taken not to have moved."""
    default = parse_schedule(settings.default_schedule)
    return read_scene(catalog, heads, defaults_of(settings), default, lambda *_: None)


def diamond_groups(catalog: Catalog, scene: SchedulerState, now: dt.datetime) -> tuple[DiamondGroup, ...]:
    """The groups there are; see `Headrace.diamond_groups`."""
    epochs, held, cut = catalog.epochs(), holds(scene, now), scene.grouping
    found = []
    for unit in cut.units.dag.order():
        name, members = cut.group(unit), cut.units.members[unit]
        if name is None:
            continue
        epoch = epochs.get(name)
        found.append(
            DiamondGroup(
                name=name,
                members=tuple(str(m) for m in members),
                converge=tuple(str(b) for b in cut.bottoms(unit)),
                policy=cut.policy(unit).value,
                epoch=epoch.epoch if epoch else 0,
                last_publication=epoch.publication.id if epoch else None,
                waits_for=_waits_for(scene, unit, held.get(unit), now),
                declared=cut.declared(unit),
                cyclic=tuple(str(m) for m in members if cut.graph.component(m)),
            )
        )
    return tuple(found)


def _waits_for(scene: SchedulerState, unit: TableName, hold: Hold | None, now: dt.datetime) -> str | None:
    if hold is not None:
        return f"{hold.table} is {hold.reason}"
    late = not_due_yet(scene, unit, now)
    return f"{', '.join(map(str, late))}, not due yet" if late else None


def declare_group(catalog: Catalog, name: str, members: Sequence[TableName]) -> None:
    """Declare a refresh group; see `Headrace.create_refresh_group`."""
    tables = {t.name: t for t in catalog.stream_tables()}
    if any(t.options.get("refresh_group") == name for t in tables.values()):
        raise UserError(
            "GROUP_EXISTS", f"There is a refresh group {name} already.", hint=f"DROP REFRESH GROUP {name} first."
        )
    for member in members:
        other = catalog.stream_table(member).options.get("refresh_group")
        if other:
            raise UserError(
                "GROUP_MEMBER_TAKEN",
                f"{member} is in refresh group {other} already.",
                hint=f"DROP REFRESH GROUP {other} first, or declare one group of all of them.",
            )
    for member in members:
        catalog.alter_stream_table(member, options={**tables[member].options, "refresh_group": name})


def drop_group(catalog: Catalog, name: str, *, if_exists: bool) -> tuple[TableName, ...]:
    """Drop a refresh group; see `Headrace.drop_refresh_group`."""
    members = [t for t in catalog.stream_tables() if t.options.get("refresh_group") == name]
    if not members and not if_exists:
        raise UserError(
            "GROUP_NOT_FOUND", f"There is no refresh group {name}.", hint="`headrace diamonds` shows groups."
        )
    for table in members:
        kept = {key: value for key, value in table.options.items() if key != "refresh_group"}
        catalog.alter_stream_table(table.name, options=kept)
    return tuple(table.name for table in members)


def with_schedules(
    infos: Sequence[StreamTableInfo], settings: Settings, catalog: Catalog, heads: Cut
) -> tuple[StreamTableInfo, ...]:
    """What `status` says of tables, with what schedulers make of them."""
    scene = read_scene(catalog, heads, defaults_of(settings), parse_schedule(settings.default_schedule))
    now = dt.datetime.now(dt.UTC)
    wanted, found = targets(scene), holds(scene, now)
    by_text = {str(name): name for name in scene.tables}
    infos = [_scheduled(info, scene, by_text.get(info.name), wanted, found, now) for info in infos]
    infos = _punctual(infos, scene, catalog, wanted, now)
    return tuple(_gated(infos, scene.grouping.graph, catalog.gates()))


def _punctual(
    infos: Sequence[StreamTableInfo],
    scene: SchedulerState,
    catalog: Catalog,
    wanted: Mapping[TableName, int],
    now: dt.datetime,
) -> list[StreamTableInfo]:
    """The same with how well tables keep their targets, and what holds up those that are late.

    What is refreshed on change has no target, and is late when it lacks a change for longer than it pauses.
    """
    with catalog.reading() as reader:
        stretch = read_stretch(reader, scene.tables, now)
        held = {lease.resource for lease in reader.leases() if lease.owner is not None and lease.expires_at > now}
    running = {name for name in scene.tables if resource_of(name) in held}
    scheduled = bool(catalog.schedulers())
    by_text = {str(name): (name, target) for name, target in patience(scene).items()}
    done = []
    for info in infos:
        if info.name in by_text:
            name, target = by_text[info.name]
            share = stretch.share(name, wanted[name]) if name in wanted else None
            why = late_because(scene, name, target, now, scheduled=scheduled, running=running)
            info = dataclasses.replace(info, within_target=share, late_because=None if info.held_up else why)
        done.append(info)
    return done


def _gated(
    infos: Sequence[StreamTableInfo], graph: Dag[TableName], gates: Mapping[TableName, Gate]
) -> Sequence[StreamTableInfo]:
    """The same with the gates that hold tables back."""
    below: dict[str, list[str]] = {}
    for source in (n for n in gates if n in graph):
        for name in graph.downstream(source):
            below.setdefault(str(name), []).append(str(source))
    return [dataclasses.replace(i, gated=tuple(below[i.name])) if i.name in below else i for i in infos]


def _scheduled(
    info: StreamTableInfo,
    scene: SchedulerState,
    name: TableName | None,
    wanted: Mapping[TableName, int],
    found: Mapping[TableName, Hold],
    now: dt.datetime,
) -> StreamTableInfo:
    if name is None:  # dropped meanwhile
        return info
    table, hold = scene.tables[name], found.get(scene.grouping.units.unit_of[name])
    return dataclasses.replace(
        info,
        effective_schedule=table.schedule.text,
        lag=table.standing.lag(now) if table.standing.loaded else None,
        target=wanted.get(name),
        held_up=None if hold is None else hold.reason if hold.table == name else f"{hold.table} is {hold.reason}",
        fuse=None if table.care.fuse is None else evidence_from(table.care.fuse).sentence,
        skipped_rows=table.care.skipped_rows,
        skipped_since=table.care.skipped_at,
        trails={str(source): versions for source, versions in table.trails.items()},
    )


def event_log(catalog: Catalog, after: int | None, limit: int) -> tuple[LoggedEvent, ...]:
    """What schedulers told; see `Headrace.event_log`."""
    return tuple(LoggedEvent(e.id, e.at, e.kind, e.fields) for e in catalog.events(after, limit))
