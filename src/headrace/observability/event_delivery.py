"""Delivers events on their own thread; slow or failing listeners never block a refresh."""

from __future__ import annotations

import datetime as dt
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Self

from headrace.events import (
    CycleFinished,
    CycleStarted,
    Event,
    Events,
    GroupPublished,
    Notice,
    RefreshFinished,
    SinkWritten,
    fields_of,
    kind_of,
)
from headrace.observability.journal import NOT_KEPT

MOST_WAITING = 1000
"""Events that wait while the other side is down or slow; the oldest are given up first."""

ROUTINE = (CycleStarted, CycleFinished, RefreshFinished, GroupPublished, SinkWritten)
"""Events of work that went well: a busy source alone has several a second."""

PATIENCE_SECONDS = 5.0
"""At the end, what still waits is given that long."""

Document = dict[str, Any]
"""An event for the outside: `at`, `event` and its fields, as `run --json` prints them."""


class EventDelivery:
    """Listens while it is open; a subclass delivers.

    Args:
        events: What is listened to.
        name: Of the thread.
        receiver: Who they are delivered to, for messages.
        routine: Events that wait while there are others, and that are given up first.
    """

    def __init__(self, events: Events, name: str, receiver: str, routine: tuple[type[Event], ...] = ROUTINE) -> None:
        self._events = events
        self._receiver = receiver
        self._behind = False
        self._gap = False  # whether events before the next one are lost
        self._routine = routine
        self._changed = threading.Condition()
        self._waiting: tuple[deque[Any], deque[Any]] = (deque(), deque())  # the second: of routine
        self._closed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._carry, name=name, daemon=True)
        self._unsubscribe: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        self._unsubscribe = self._events.subscribe(self._note)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop listening and wait a while for pending deliveries; idempotent."""
        if self._ended.is_set():
            return
        self._unsubscribe()
        with self._changed:
            self._closed = True
            self._changed.notify()
        if threading.current_thread() is not self._thread:  # who is called may want to be called no more
            self._thread.join(PATIENCE_SECONDS)
            if self._thread.is_alive():
                self.cut_off()
        self._ended.set()

    def deliver(self, document: Any) -> None:
        """Hand an event over; called in the thread for it, one after the other."""
        raise NotImplementedError

    def missed(self, document: Any) -> None:
        """Note that events before this one are lost; called before it is delivered."""

    def prepared(self, event: Event) -> Any:
        """Return an event as it is delivered, None for one that is not; called where it happens."""
        if isinstance(event, NOT_KEPT):
            return None
        at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        return {"at": at, "event": kind_of(event), **fields_of(event)}

    def given_up(self) -> None:
        """Report, once until all is delivered, that events are lost; called where others happen."""
        if not self._behind:
            self._behind = True
            self._events.emit(
                Notice(
                    f"{self._receiver} takes events slower than they happen: the oldest are lost, first those of work "
                    "that went well."
                )
            )

    def cut_off(self) -> None:
        """Report that events wait still, and may be lost as nobody waits for them any longer."""
        within = f"within {PATIENCE_SECONDS:g} seconds at the end"
        self._events.emit(Notice(f"{self._receiver} did not take all events {within}: the rest may be lost."))

    def _note(self, event: Event) -> None:
        document = self.prepared(event)
        if document is None:
            return
        lost = 0
        with self._changed:
            while sum(map(len, self._waiting)) >= MOST_WAITING:
                self._waiting[bool(self._waiting[1])].popleft()
                lost += 1
                self._gap = True
            self._waiting[isinstance(event, self._routine)].append(document)
            self._changed.notify()
        for _ in range(lost):
            self.given_up()

    def _next(self) -> tuple[Any, bool]:
        """Wait for the next event; return it, None at the end, and whether others are lost."""
        with self._changed:
            self._behind = self._behind and any(self._waiting)
            self._changed.wait_for(lambda: self._closed or any(self._waiting))
            gap, self._gap = self._gap, False
            return next((waiting.popleft() for waiting in self._waiting if waiting), None), gap

    def _carry(self) -> None:
        told = False
        while True:
            document, gap = self._next()
            if document is None or self._ended.is_set():
                return
            try:
                if gap:
                    self.missed(document)
                self.deliver(document)
                told = False
            except Exception as error:  # a thread that died without a word would deliver nothing any more
                if not told:
                    told = True
                    self._events.emit(Notice(f"An event was not delivered; going on with the next. {error!r}"))
