"""Asks database sources' servers how they stand, on a thread, while somebody wants to know.

A server that does not answer takes its time, and counting what waits takes it a moment of work: so neither may hold up
whoever scrapes, nor happen more often than that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from headrace.results.source_results import SourceHealth

PAUSE_SECONDS = 30.0
"""Time between two looks at a server."""

Figures = Mapping[str, object]


class SourceLooks:
    """The last answers of sources' servers."""

    def __init__(self) -> None:
        self._figures: dict[str, Figures | None] = {}
        self._asked_at = -PAUSE_SECONDS
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def figures(self, ask: Callable[[str], SourceHealth], names: Sequence[str]) -> Mapping[str, Figures | None]:
        """Return figures by source, and have old ones renewed; None where a server did not answer.

        Args:
            ask: Asks the server of a source.
            names: The sources.
        """
        running = self._thread is not None and self._thread.is_alive()
        if names and not running and not self._over.is_set() and time.monotonic() - self._asked_at >= PAUSE_SECONDS:
            self._asked_at = time.monotonic()
            self._thread = threading.Thread(target=self._look, args=(ask, tuple(names)), daemon=True)
            self._thread.start()
        return {name: self._figures[name] for name in names if name in self._figures}

    def close(self) -> None:
        """Ask no more."""
        self._over.set()

    def _look(self, ask: Callable[[str], SourceHealth], names: Sequence[str]) -> None:
        for name in names:
            if self._over.is_set():
                return
            try:
                self._figures[name] = dict(ask(name).figures)
            except Exception:  # whatever a driver raises: the others are to be asked, too
                self._figures[name] = None
