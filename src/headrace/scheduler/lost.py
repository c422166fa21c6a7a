"""A Spark that is lost: no fault of the tables that were being refreshed, and tried again for a while only."""

from __future__ import annotations

import threading
import time

from headrace.errors import HeadraceError
from headrace.events import Events, Notice

PATIENCE_SECONDS = 30.0
"""Without a refresh that ends well in that time, Spark is taken for gone: a driver that died does not come back."""

PAUSE_SECONDS = 2.0


class LostSpark:
    """Counts time, not failures: when Spark goes, everything that runs fails at once. Threads may share it.

    Args:
        events: Told when it is lost, and when that is given up.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._since: float | None = None
        self._lock = threading.Lock()
        self.gone: HeadraceError | None = None

    def lost(self, error: HeadraceError) -> float:
        """A refresh or a landing failed because Spark was lost; returns how many seconds to leave it alone."""
        now = time.monotonic()
        with self._lock:
            if self._since is None:
                self._since = now
                self._events.emit(Notice(f"Spark was lost; trying again. [{error.code}] {error.message}"))
            elif now - self._since > PATIENCE_SECONDS and self.gone is None:
                self.gone = error
                self._events.emit(Notice("Spark does not come back; the run ends, so that it can be started again."))
        return PAUSE_SECONDS

    def found(self) -> None:
        """A refresh ended well."""
        self._since = None
