"""A Spark that is lost: waits until nothing uses it any more, and has it started again.

Where the session is not ours to start (the caller's own, a Spark Connect server's), it is tried again for a while
only: a driver that died does not come back by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Events, Notice

PATIENCE_SECONDS = 30.0
"""A session that is not ours is taken for gone after that time without anything that uses it and ends well."""

PAUSE_SECONDS = 2.0
"""Before the second try to start Spark; each further pause is twice as long."""

TRIES = 5
"""Spark is started anew so often before it is given up."""


class LostSpark:
    """Threads share it.

    Args:
        events: Told when Spark is lost, when it is back, and when that is given up.
        restart: Starts Spark anew; returns False where that is not ours to do.

    Attributes:
        gone: Why Spark was given up; None while it was not.
    """

    def __init__(self, events: Events, restart: Callable[[], bool] = lambda: False) -> None:
        self._events = events
        self._restart = restart
        self._changed = threading.Condition()
        self._users = 0
        self._since: float | None = None
        self._mending: threading.Thread | None = None
        self._ended = threading.Event()
        self.gone: HeadraceError | None = None

    @property
    def away(self) -> bool:
        """Return whether Spark is being started anew, so that what needs it cannot begin."""
        return self._mending is not None

    @contextmanager
    def using(self, *, wait: bool = True) -> Iterator[bool]:
        """Keep Spark from being restarted during the block; note a `SPARK_LOST` leaving it.

        Args:
            wait: Wait while it is being started; otherwise the block is told that it must do without.

        Yields:
            Whether Spark may be used.
        """
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: not self.away)
            there = not self.away
            self._users += there
        try:
            yield there
        except HeadraceError as error:
            if error.code == "SPARK_LOST":
                self.lost(error)
            raise
        finally:
            with self._changed:
                self._users -= there
                self._changed.notify_all()

    def lost(self, error: HeadraceError) -> None:
        """Note that Spark was found lost; does not wait."""
        with self._changed:
            if self.away or self.gone is not None or self._ended.is_set():
                return
            if self._since is None:
                self._since = time.monotonic()
                self._tell(f"Spark was lost; trying again. [{error.code}] {error.message}")
            self._mending = threading.Thread(target=self._mend, args=(error,), name="headrace-spark", daemon=True)
            self._mending.start()

    def found(self) -> None:
        """Note that something that used it ended well: a refresh, a landing, maintenance."""
        self._since = None

    def end(self) -> None:
        """Start Spark no more; waits until what was begun is over."""
        self._ended.set()
        with self._changed:
            self._changed.notify_all()
            mending = self._mending
        if mending is not None:
            mending.join()

    def _mend(self, error: HeadraceError) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended.is_set() or not self._users)
        gone = self._started(error)
        with self._changed:
            self.gone, self._mending = gone, None
            self._changed.notify_all()

    def _started(self, error: HeadraceError) -> HeadraceError | None:
        """Start Spark; returns the error when that is hopeless."""
        for tried in range(TRIES):
            if self._ended.is_set():
                return None
            try:
                if not self._restart():
                    return self._waited(error)
                self._tell("Spark was started again.")
                return None
            except Exception as trouble:  # whatever it is: everybody waits for this thread
                error = trouble if isinstance(trouble, HeadraceError) else _unavailable(trouble)
                self._tell(f"Spark does not start; trying again. [{error.code}] {error.message}")
            self._ended.wait(PAUSE_SECONDS * 2**tried)
        self._tell("Spark does not start; the run ends, so that it can be started again.")
        return error

    def _waited(self, error: HeadraceError) -> HeadraceError | None:
        self._ended.wait(PAUSE_SECONDS)
        if self._since is None or time.monotonic() - self._since <= PATIENCE_SECONDS:
            return None
        self._tell("Spark does not come back; the run ends, so that it can be started again.")
        return error

    def _tell(self, message: str) -> None:
        self._events.emit(Notice(message))


def _unavailable(trouble: Exception) -> EnvironmentFault:
    return EnvironmentFault(
        "SPARK_UNAVAILABLE",
        "Spark cannot be started.",
        detail=f"{type(trouble).__name__}: {trouble}",
        hint="Run `headrace doctor`.",
    )
