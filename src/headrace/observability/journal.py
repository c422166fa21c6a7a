"""Stores a scheduler's events in the catalog: collected at once, written between looks."""

from __future__ import annotations

import datetime as dt
import queue
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from headrace.catalog import Catalog
from headrace.clock import Clock
from headrace.errors import HeadraceError
from headrace.events import DECISIONS, PASSING, Event, Events, RefreshStarted, fields_of, kind_of

Row = tuple[dt.datetime, str, dict[str, Any]]
"""Time of an event, its kind and its fields."""

KEPT = dt.timedelta(days=7)
"""Events older than that are forgotten when schedules start, and with maintenance."""

MOST_UNWRITTEN = 1_000
"""Events that wait for a catalog that cannot be written, at most; the oldest go."""

NOT_KEPT: tuple[type[Event], ...] = (RefreshStarted, *PASSING)
"""Events that are not kept; of a refresh its end is, and is delivered to others."""


class Journal:
    """Listens while it is open.

    Args:
        catalog: Where events are kept.
        events: What is listened to.
        clock: Tells the time.
    """

    def __init__(self, catalog: Catalog, events: Events, clock: Clock) -> None:
        self._catalog = catalog
        self._events = events
        self._clock = clock
        self._heard: queue.SimpleQueue[Row] = queue.SimpleQueue()
        self._unwritten: list[Row] = []

    def __enter__(self) -> Self:
        self._unsubscribe = self._events.subscribe(self._note)
        with suppress(HeadraceError):  # what is too old is forgotten another time
            self._catalog.forget_events(self._clock.now() - KEPT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._unsubscribe()
        self.write()

    def write(self) -> None:
        """Write the events that are not written yet; failures never hold a refresh up."""
        while not self._heard.empty():
            self._unwritten.append(self._heard.get())
        if self._unwritten:
            with suppress(HeadraceError):
                self._catalog.write_events(self._unwritten)
                self._unwritten = []
            del self._unwritten[:-MOST_UNWRITTEN]

    def _note(self, event: Event) -> None:
        if not isinstance(event, (*NOT_KEPT, *DECISIONS.values())):  # decisions are in the catalog already
            self._heard.put((self._clock.now(), kind_of(event), fields_of(event)))
