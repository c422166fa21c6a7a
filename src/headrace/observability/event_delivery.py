"""Delivers events on their own thread; slow or failing listeners never block a refresh."""

from __future__ import annotations

import datetime as dt
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from headrace.events import Event, Events, Notice, fields_of, kind_of
from headrace.observability.journal import NOT_KEPT

MOST_WAITING = 1000
"""Events that wait while the other side is down; the oldest are given up first."""

PATIENCE_SECONDS = 5.0
"""At the end, what still waits is given that long."""

Document = dict[str, Any]
"""An event for the outside: `at`, `event` and its fields, as `run --json` prints them."""


class EventDelivery:
    """Listens while it is open; a subclass delivers.

    Args:
        events: What is listened to.
        name: Of the thread.
    """

    def __init__(self, events: Events, name: str) -> None:
        self._events = events
        self._waiting: queue.Queue[Any] = queue.Queue()  # None: the end
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
        self._waiting.put(None)
        if threading.current_thread() is not self._thread:  # who is called may want to be called no more
            self._thread.join(PATIENCE_SECONDS)
        self._ended.set()

    def deliver(self, document: Any) -> None:
        """Hand an event over; called in the thread for it, one after the other."""
        raise NotImplementedError

    def prepared(self, event: Event) -> Any:
        """Return an event as it is delivered, None for one that is not; called where it happens."""
        if isinstance(event, NOT_KEPT):
            return None
        at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        return {"at": at, "event": kind_of(event), **fields_of(event)}

    def given_up(self) -> None:
        """Note that the oldest waiting event is not delivered; called where another one happens."""

    def _note(self, event: Event) -> None:
        document = self.prepared(event)
        if document is None:
            return
        while self._waiting.qsize() >= MOST_WAITING:
            with suppress(queue.Empty):
                self._waiting.get_nowait()
                self.given_up()
        self._waiting.put(document)

    def _carry(self) -> None:
        told = False
        while (document := self._waiting.get()) is not None and not self._ended.is_set():
            try:
                self.deliver(document)
                told = False
            except Exception as error:  # a thread that died without a word would deliver nothing any more
                if not told:
                    told = True
                    self._events.emit(Notice(f"An event was not delivered; going on with the next. {error!r}"))
