"""Events that the core emits while it works.

The core emits; who listens (a terminal, a log, a metrics endpoint) is not its business. A listener that raises
would make observability a source of failures, so its exception is dropped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; subclasses say what."""


@dataclass(frozen=True, slots=True)
class CycleStarted(Event):
    """Refreshes that belong together begin.

    They are those of a call, or of a scheduler until nothing is left to do.

    `by` is `refresh` or `schedule`.
    """

    by: str


@dataclass(frozen=True, slots=True)
class CycleFinished(Event):
    """The refreshes of a cycle have ended."""

    by: str


@dataclass(frozen=True, slots=True)
class RefreshStarted(Event):
    """A refresh (or the landing of a database source) began.

    `mode` is FULL, DIFFERENTIAL, NO_CHANGE, or for a source LAND or SNAPSHOT; `reason` a `FullReason` or None.
    """

    table: str
    mode: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class StageStarted(Event):
    """A stage of a refresh began."""

    table: str
    stage: str


@dataclass(frozen=True, slots=True)
class StageFinished(Event):
    """A stage of a refresh ended, after `seconds`."""

    table: str
    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class StageProgressed(Event):
    """The progress of the running stage of a landing: `copy: 1,200,000 rows`."""

    table: str
    stage: str
    progress: str


@dataclass(frozen=True, slots=True)
class RefreshFinished(Event):
    """A refresh was published (or found nothing to do)."""

    table: str
    mode: str
    rows_inserted: int
    rows_deleted: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RefreshFailed(Event):
    """A refresh failed; what was published before stays."""

    table: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RefreshGivenUp(Event):
    """A refresh came to nothing, as what it was to be published with failed."""

    table: str


@dataclass(frozen=True, slots=True)
class GroupPublished(Event):
    """Stream tables were published together in one transaction; `tables` are those that moved."""

    group: str
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suspended(Event):
    """A stream table failed so often that it is not tried any more."""

    table: str
    failures: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Paused(Event):
    """Somebody has schedules leave stream tables alone."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """Schedules refresh stream tables again.

    Pauses, suspensions and waits for a retry are over.
    """

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FuseBlown(Event):
    """A change is larger than a stream table's fuse allows.

    It is not applied until somebody decides.

    `rows` changed, `limit` are allowed by the property `rule`; `evidence` says it in words, by source.
    """

    table: str
    rows: int
    limit: int
    rule: str
    evidence: str


@dataclass(frozen=True, slots=True)
class FuseResolved(Event):
    """Somebody decided about a blown fuse: `apply`, `skip` or `reinitialize`.

    The refresh that does so is published.

    `redefine` when somebody gave the table a new definition meanwhile.
    """

    table: str
    resolution: str


@dataclass(frozen=True, slots=True)
class Promoted(Event):
    """Greens of a deployment have taken the place of public stream tables.

    `automatic` where a scheduler promoted them, as its conditions held.
    """

    deployment: str
    tables: tuple[str, ...]
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class PromotionRefused(Event):
    """A deployment that was to promote itself was refused; told once for each reason."""

    deployment: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class RolledBack(Event):
    """A promotion was taken back: former generations are public again.

    `reason` where a scheduler took it back: what went wrong while it was watched.
    """

    deployment: str
    tables: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WatchFailed(Event):
    """Something went wrong with what was promoted, within its watch, and it was not taken back.

    `refused` says why not; it is "" where the watch was only to tell.
    """

    deployment: str
    tables: tuple[str, ...]
    reason: str
    refused: str = ""


@dataclass(frozen=True, slots=True)
class GateClosed(Event):
    """Somebody holds sources back at what they are: nothing that reads them goes past that."""

    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateOpened(Event):
    """Sources are held back no longer."""

    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WatermarkAdvanced(Event):
    """Somebody says that a source is complete up to a moment, in ISO format."""

    source: str
    moment: str


@dataclass(frozen=True, slots=True)
class RetryPlanned(Event):
    """A failed refresh will be tried again in `seconds`."""

    table: str
    failures: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """A stream table is due and waits for another one."""

    table: str
    for_table: str
    reason: str


@dataclass(frozen=True, slots=True)
class LagExceeded(Event):
    """A stream table is beyond its target lag; both in seconds.

    Emitted once until it has caught up.
    """

    table: str
    lag: float
    target: int


@dataclass(frozen=True, slots=True)
class SlotRunningOut(Event):
    """A source's replication slot, and changes with it, will be lost soon unless landed.

    `left` bytes of log until then (None without a limit), `seconds` at the rate of the last minutes (None where that is
    not known); `reason` in words. With neither, the server keeps log for it without a limit. Told once until the slot
    is well again.
    """

    source: str
    slot: str
    left: int | None
    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class SinkWritten(Event):
    """A sink's target has a version of its stream table from now on.

    `inserted` and `deleted` count rows that came and left.
    """

    sink: str
    version: int
    inserted: int
    deleted: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SinkFailed(Event):
    """A sink was not written; it is tried again, or stopped.

    Told once until it is written again.
    """

    sink: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SchedulerStarted(Event):
    """Schedules are being run from now on."""

    owner: str
    tables: int


@dataclass(frozen=True, slots=True)
class SchedulerStopped(Event):
    """Schedules are no longer run by this process; `refreshed` and `failed` count units."""

    owner: str
    refreshed: int
    failed: int


@dataclass(frozen=True, slots=True)
class SchedulerLoad(Event):
    """The load of a scheduler of this process; emitted when it changes, and not stored.

    `slots` and `quotas` (by pool) are what it may run now, `running` and `pools` what it runs, `queued` the tables that
    wait for a slot or for each other.
    """

    slots: int
    running: int
    queued: int
    quotas: Mapping[str, int]
    pools: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SparkStarting(Event):
    """Spark is being started, which takes some seconds."""


@dataclass(frozen=True, slots=True)
class SparkStarted(Event):
    """Spark is up, or its start has failed."""


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """A message for the person at the terminal, such as a migration or a recovery."""

    message: str


def kind_of(event: Event | type[Event]) -> str:
    """Return an event's kind in snake case: `refresh_finished`."""
    kind = event if isinstance(event, type) else type(event)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def fields_of(event: Event) -> dict[str, object]:
    """Return an event's fields as JSON values."""
    values = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


PASSING: tuple[type[Event], ...] = (
    CycleStarted,
    CycleFinished,
    StageStarted,
    StageProgressed,
    StageFinished,
    RefreshGivenUp,
    SchedulerLoad,
    SparkStarting,
    SparkStarted,
)
"""Of interest only while they happen: shown, and neither printed as lines nor kept."""

DECISIONS: Mapping[str, type[Event]] = {
    kind_of(kind): kind
    for kind in (
        Paused,
        Resumed,
        FuseResolved,
        Promoted,
        PromotionRefused,
        RolledBack,
        WatchFailed,
        GateClosed,
        GateOpened,
        WatermarkAdvanced,
    )
}
"""Events of decisions that users make, or one scheduler for all, by kind.

Whoever decides writes them to the log of events, in whatever process.
"""


def logged_event(kind: str, fields: Mapping[str, object]) -> Event | None:
    """Return any event as it was written to the log of events; None as for `event_of`."""
    return _read({kind_of(each): each for each in Event.__subclasses__()}, kind, fields)


def event_of(kind: str, fields: Mapping[str, object]) -> Event | None:
    """Return a decision as it was written to the log of events.

    None for another version's that is not understood.
    """
    return _read(DECISIONS, kind, fields)


def _read(known: Mapping[str, type[Event]], kind: str, fields: Mapping[str, object]) -> Event | None:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    try:
        return known[kind](**values)
    except (KeyError, TypeError):
        return None


Listener = Callable[[Event], None]


class Events:
    """Delivers events to listeners, in the emitting thread."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._unheard: list[Notice] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function removes it.

        The first one also hears the notices from before, such as that of a migration while the catalog was opened.
        """
        self._listeners.append(listener)
        unheard, self._unheard = self._unheard, []
        for notice in unheard:
            self.emit(notice)
        return lambda: self._listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Tell every listener."""
        if not self._listeners and isinstance(event, Notice):
            self._unheard.append(event)
        for listener in list(self._listeners):
            with contextlib.suppress(Exception):
                listener(event)


@contextlib.contextmanager
def cycle_told(events: Events, by: str) -> Iterator[None]:
    """Tell that refreshes begin which belong together, and that they have ended.

    Args:
        events: Where that is told.
        by: Who has them run.
    """
    events.emit(CycleStarted(by))
    try:
        yield
    finally:
        events.emit(CycleFinished(by))


@contextlib.contextmanager
def stage_told(events: Events, table: str, stage: str) -> Iterator[None]:
    """Tell that a stage begins, and that it has ended; where it fails, the refresh ends with it.

    Args:
        events: Where that is told.
        table: The stream table, or the source that is landed.
        stage: What is done.
    """
    events.emit(StageStarted(table, stage))
    begin = time.perf_counter()
    yield
    events.emit(StageFinished(table, stage, time.perf_counter() - begin))


class StagesTold:
    """Tells stages of which each ends where the next one begins, the last with the block.

    Several threads may tell them.

    Args:
        events: Where that is told.
        table: The stream table, or the source that is landed.
    """

    def __init__(self, events: Events, table: str) -> None:
        self._events = events
        self._table = table
        self._stage = ""
        self._running = contextlib.ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> StagesTold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._running.__exit__(kind, error, trace)

    def tell(self, text: str) -> None:
        """Tell what is being done.

        Args:
            text: The stage, and behind a colon how far it is.
        """
        stage, _, progress = text.partition(":")
        with self._lock:
            if stage != self._stage:
                self._running.close()
                self._running.enter_context(stage_told(self._events, self._table, stage))
                self._stage = stage
            if progress:
                self._events.emit(StageProgressed(self._table, stage, text))


class CyclesTold:
    """Tells the cycles of a scheduler: from the first work to when nothing is left.

    Args:
        events: Where that is told.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._busy = False

    def note(self, *, busy: bool) -> None:
        """Say whether anything is running, or waits for its turn."""
        if busy is not self._busy:
            self._busy = busy
            self._events.emit(CycleStarted("schedule") if busy else CycleFinished("schedule"))
