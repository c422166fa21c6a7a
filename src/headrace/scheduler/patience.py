"""Decides how long what runs may go on once a run is to end, and says what it waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from headrace.events import Events, Notice

LOOK_SECONDS = 0.1
"""Between two looks whether a thread that is waited for must be left."""

NAMED = 3
"""Most names that are listed of those that are waited for."""


class Patience:
    """Runs out a while after a run was to end, or as soon as somebody is in a hurry.

    Args:
        events: Told what is waited for.
        grace: Seconds.
        at_once: Set where nobody waits any longer.
    """

    def __init__(self, events: Events, grace: float, at_once: threading.Event | None = None) -> None:
        self._events = events
        self._grace = grace
        self._at_once = at_once or threading.Event()
        self._since: float | None = None

    @property
    def over(self) -> bool:
        """Return whether what still runs is to be stopped."""
        late = self._since is not None and time.monotonic() - self._since > self._grace
        return late or self._at_once.is_set()

    def begin(self, running: Sequence[str]) -> None:
        """Note that the run is to end, where that is new, and say what it waits for.

        Args:
            running: Stream tables that are being refreshed.
        """
        if self._since is None:
            self._since = time.monotonic()
            if running and not self.over:
                self._tell(f"the refresh of {listed(running)}")

    def wait_for(self, thread: threading.Thread | None, doing: str, *, quietly: float = 0.0) -> bool:
        """Wait until a thread has ended, or patience is over; return whether it has ended.

        Args:
            thread: The thread.
            doing: What it does, for those who wait.
            quietly: Seconds before that is said.
        """
        if thread is None or not thread.is_alive():
            return True
        self.begin(())
        silent, told = time.monotonic() + quietly, False
        while thread.is_alive() and not self.over:
            if not told and time.monotonic() >= silent:
                told = True
                self._tell(doing)
            thread.join(LOOK_SECONDS)
        return not thread.is_alive()

    def _tell(self, what: str) -> None:
        left = max(0.0, self._grace - (time.monotonic() - (self._since or 0.0)))
        self._events.emit(Notice(f"Stopping; waiting up to {left:.0f} s for {what}. Press Ctrl-C to stop at once."))


def listed(names: Sequence[str]) -> str:
    """Return some names as text, and how many more there are."""
    shown = ", ".join(names[:NAMED])
    return f"{shown}{f' and {len(names) - NAMED} others' if len(names) > NAMED else ''}"
