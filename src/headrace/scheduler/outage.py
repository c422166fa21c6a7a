"""Handles an outage of the catalog: reports its begin and end, retries ever less often."""

from __future__ import annotations

from headrace.errors import HeadraceError
from headrace.events import Events, Notice

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 10.0
"""Pauses while the catalog does not answer: doubling, and short, as nothing else goes on."""


class Outage:
    """Counts how often the catalog did not answer.

    Args:
        events: Told when it begins and when it is over.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._failures = 0
        self._refuses = False

    @property
    def lasts(self) -> bool:
        """Return whether the catalog failed to answer last; nothing may start then."""
        return self._failures > 0

    def failed(self, error: HeadraceError, *, writing: bool = False) -> float:
        """Note that the catalog did not answer; return the seconds to leave it alone.

        Args:
            error: What it said.
            writing: Whether it was to be written; one that refuses that may go on to be read.
        """
        self._refuses = self._refuses or writing
        if not self._failures:
            self._events.emit(Notice(f"The catalog does not answer; trying again. [{error.code}] {error.message}"))
        self._failures += 1
        return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (self._failures - 1))

    def written(self) -> None:
        """Note that the catalog took what was written."""
        self._refuses = False

    def over(self) -> None:
        """Note that the catalog could be read; it may still refuse to be written."""
        if self._failures and not self._refuses:
            self._failures = 0
            self._events.emit(Notice("The catalog answers again."))
