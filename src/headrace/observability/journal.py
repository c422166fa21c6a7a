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

KEPT = dt.timedelta(days=7)
"""Events older than that are forgotten when schedules start, and with maintenance."""

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
        self._heard: queue.SimpleQueue[tuple[dt.datetime, str, dict[str, Any]]] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._unsubscribe = self._events.subscribe(self._note)
        with suppress(HeadraceError):  # what is too old is forgotten another time
            self._catalog.forget_events(self._clock.now() - KEPT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._unsubscribe()
        self.write()

    def write(self) -> None:
        """Write the events since the last call; failures never hold a refresh up."""
        rows = []
        while not self._heard.empty():
            rows.append(self._heard.get())
        if rows:
            with suppress(HeadraceError):
                self._catalog.write_events(rows)

    def _note(self, event: Event) -> None:
        if not isinstance(event, (*NOT_KEPT, *DECISIONS.values())):  # decisions are in the catalog already
            self._heard.put((self._clock.now(), kind_of(event), fields_of(event)))
