"""Emits events for decisions that users make while schedules run (pauses, gates, fuses).

Who decides is another process, as a rule, and leaves a line in the log of events. Of several schedulers the one that
began first reads it out, so that a webhook hears of it once.
"""

from __future__ import annotations

import time
from contextlib import suppress

from headrace.catalog import Catalog
from headrace.errors import HeadraceError
from headrace.events import DECISIONS, Events, event_of

MOST = 1000
"""Decisions read from the log at once, at most."""


class Decisions:
    """Tells what is decided from when it is made.

    Args:
        catalog: Has the log.
        events: Told.
        every: Seconds between two looks at the log.

    Attributes:
        reads_out: Whether it is this scheduler that tells. One that does not goes on from where it was when it last
            heard that it is not, so that nothing is lost when the one before it ends.
    """

    def __init__(self, catalog: Catalog, events: Events, every: float) -> None:
        self._catalog = catalog
        self._events = events
        self._every = every
        self._after: int | None = None
        self._look_after = 0.0
        self.reads_out = True

    def elect(self, chosen: bool) -> None:
        """Note whether this scheduler is the one that reports decisions."""
        self.reads_out = chosen
        if not chosen:
            before, self._after = self._after, None
            self.tell()
            if self._after is None:  # the log could not be read: better to tell some twice than to lose some
                self._after = before

    def tell(self, *, at_once: bool = False) -> None:
        """Emit the decisions since the last call; an outage is reported elsewhere.

        Args:
            at_once: Also when the log was looked at just now.
        """
        soon = time.monotonic() < self._look_after and not at_once
        if self._after is not None and (not self.reads_out or soon):
            return
        with suppress(HeadraceError):
            if self._after is None:
                self._after = max((e.id for e in self._catalog.events(limit=1)), default=0)
                return
            self._look_after = time.monotonic() + self._every
            for record in self._catalog.events(self._after, MOST, tuple(DECISIONS)):
                self._after = record.id
                if (event := event_of(record.kind, record.fields)) is not None:
                    self._events.emit(event)
