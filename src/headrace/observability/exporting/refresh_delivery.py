"""Follows refreshes from event to event, on the thread that delivers what they did."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from importlib import metadata

from headrace.events import (
    CycleFinished,
    CycleStarted,
    Event,
    Events,
    Notice,
    RefreshFailed,
    RefreshFinished,
    RefreshGivenUp,
    RefreshStarted,
    SinkFailed,
    SinkWritten,
    StageFinished,
    StageStarted,
)
from headrace.observability.event_delivery import PATIENCE_SECONDS, EventDelivery

FOLLOWED = (
    CycleStarted,
    CycleFinished,
    RefreshStarted,
    StageStarted,
    StageFinished,
    RefreshFinished,
    RefreshFailed,
    RefreshGivenUp,
    SinkWritten,
    SinkFailed,
)


@dataclass(frozen=True, slots=True)
class Heard:
    """An event, and when it happened, in nanoseconds since 1970."""

    at: int
    event: Event


@dataclass(slots=True)
class Stage:
    """A stage of a refresh.

    Args:
        title: What it does.
        start: When it began.
        end: When it ended; None while it runs.
    """

    title: str
    start: int
    end: int | None = None


@dataclass(slots=True)
class Refresh:
    """A refresh, as known from events.

    Args:
        table: The stream table, or the source that is landed.
        start: When it began.
        mode: How it is refreshed; "" where it failed before that was chosen.
        reason: Why it is FULL; None for another mode.
        stages: What it did.
        end: When it ended; None while it runs.
        rows_inserted: Rows that came.
        rows_deleted: Rows that left.
        code: Why it failed; "" where it did not.
        message: The same in a sentence.
        abandoned: Whether it came to nothing without having failed, such as where another member of its group did.
    """

    table: str
    start: int
    mode: str = ""
    reason: str | None = None
    stages: list[Stage] = field(default_factory=list)
    end: int | None = None
    rows_inserted: int = 0
    rows_deleted: int = 0
    code: str = ""
    message: str = ""
    abandoned: bool = False


class RefreshDelivery(EventDelivery):
    """Delivers refreshes while it is open; a subclass says what is sent.

    Whatever goes wrong is told once, until something arrives again.

    Args:
        events: What is listened to.
        name: Of the thread.
        what: What is sent, for people: `OpenLineage's run events`.
    """

    def __init__(self, events: Events, name: str, what: str) -> None:
        super().__init__(events, name, what, routine=())
        self._what = what
        self._told = False
        self._cycles = 0
        self._refreshes: dict[str, Refresh] = {}

    def cycle_began(self, at: int, by: str) -> None:
        """Send that a cycle began."""

    def cycle_ended(self, at: int) -> None:
        """Send that a cycle has ended."""

    def began(self, refresh: Refresh) -> None:
        """Send that a refresh began."""

    def ended(self, refresh: Refresh) -> None:
        """Send that a refresh has ended, or came to nothing."""

    def wrote(self, sink: SinkWritten | SinkFailed, at: int) -> None:
        """Send that a sink was written, or was not."""

    def prepared(self, event: Event) -> Heard | None:
        """Return the event with the time, for what is followed."""
        return Heard(time.time_ns(), event) if isinstance(event, FOLLOWED) else None

    def given_up(self) -> None:
        """Tell once that events are lost."""
        self._trouble("they are slower to arrive than to happen")

    def cut_off(self) -> None:
        """Tell once that what waits at the end is lost."""
        self._trouble(f"what was left took longer than {PATIENCE_SECONDS:g} seconds")

    def missed(self, document: Heard) -> None:
        """End what is under way, as its own end may be among what is lost."""
        self._cycles = 0
        try:
            self._end_cycle(document.at)
        except Exception as error:
            self._trouble(_in_a_line(error))

    def deliver(self, document: Heard) -> None:
        """Follow an event, and send what follows from it."""
        try:
            self._follow(document.at, document.event)
        except Exception as error:
            self._trouble(_in_a_line(error))

    def arrived(self) -> None:
        """Note that something arrived, so that the next trouble is news."""
        self._told = False

    def _trouble(self, why: str) -> None:
        if not self._told and not self._ended.is_set():
            self._told = True
            self._events.emit(Notice(f"{self._what} do not arrive: {why}. They are lost."))

    def _follow(self, at: int, event: Event) -> None:
        match event:
            case CycleStarted():
                self._cycles += 1
                if self._cycles == 1:
                    self.cycle_began(at, event.by)
            case CycleFinished() if self._cycles:
                self._cycles -= 1
                if not self._cycles:
                    self._end_cycle(at)
            case RefreshStarted() if event.table in self._refreshes:  # it goes on in another way
                found = self._refreshes[event.table]
                found.mode, found.reason = event.mode, event.reason
            case RefreshStarted():
                found = self._refreshes[event.table] = Refresh(event.table, at, event.mode, event.reason)
                self.began(found)
            case StageStarted() if event.table in self._refreshes:
                self._refreshes[event.table].stages.append(Stage(event.stage, at))
            case StageFinished() if event.table in self._refreshes:
                self._end_stage(self._refreshes[event.table], event.stage, at)
            case RefreshFinished():
                found = self._known(event.table, at - _ns(event.seconds))
                found.start = min(found.start, at - _ns(event.seconds))
                found.mode, found.end = event.mode, at
                found.rows_inserted, found.rows_deleted = event.rows_inserted, event.rows_deleted
                self.ended(found)
            case RefreshFailed():
                found = self._known(event.table, at)
                found.end, found.code, found.message = at, event.code, event.message
                self.ended(found)
            case RefreshGivenUp() if event.table in self._refreshes:
                self._abandon(self._refreshes.pop(event.table), at)
            case SinkWritten() | SinkFailed():
                self.wrote(event, at)

    def _known(self, table: str, start: int) -> Refresh:
        """Return a refresh that is over; one that is not known began at a given time."""
        return self._refreshes.pop(table) if table in self._refreshes else Refresh(table, start)

    def _end_stage(self, refresh: Refresh, title: str, at: int) -> None:
        for stage in reversed(refresh.stages):
            if stage.title == title and stage.end is None:
                stage.end = at
                return

    def _abandon(self, refresh: Refresh, at: int) -> None:
        """End what has come to nothing."""
        refresh.end, refresh.abandoned = at, True
        self.ended(refresh)

    def _end_cycle(self, at: int) -> None:
        """End what has not ended by itself, then the cycle."""
        left, self._refreshes = list(self._refreshes.values()), {}
        try:
            for refresh in left:
                self._abandon(refresh, at)
        finally:
            self.cycle_ended(at)


def own_version() -> str:
    """Return Headrace's version."""
    try:
        return metadata.version("headrace")
    except metadata.PackageNotFoundError:  # it is run from a folder
        return "unknown"


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _in_a_line(error: Exception) -> str:
    """Return what went wrong, with hosts in place of addresses, which may contain a secret."""
    text = (str(error) or type(error).__name__).strip().splitlines()[0]
    return re.sub(r"https?://(?:[^/\s]*@)?([^/\s:]+)\S*", r"\1", text)[:300].rstrip(". ")
