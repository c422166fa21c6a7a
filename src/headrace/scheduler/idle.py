"""Runs maintenance while nothing is due: one scheduler at a time, interruptible."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable

from headrace.catalog import Catalog
from headrace.clock import Clock
from headrace.errors import HeadraceError
from headrace.events import Events, Notice
from headrace.names import TableName
from headrace.observability.journal import KEPT
from headrace.refresh.held_leases import holding_leases
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.work import Worker

RESOURCE = "maintenance"
"""Its lease; its last sign of life is when maintenance was done last, by whom ever."""

AGAIN_SECONDS = 60.0
"""After it was not this scheduler's turn, or something went wrong, it asks again then."""


class Idle:
    """Maintains stored tables every so often.

    Args:
        catalog: The catalog.
        worker: Does it.
        events: Told when something goes wrong.
        clock: Tells the time.
        every: Seconds between two times; None for never.
        undisturbed: Whether nothing else is to be done at the moment; asked from another thread.
        spark: Told while it is used.
    """

    def __init__(
        self,
        catalog: Catalog,
        worker: Worker,
        events: Events,
        clock: Clock,
        every: float | None,
        undisturbed: Callable[[], bool],
        spark: LostSpark,
    ) -> None:
        self._catalog = catalog
        self._worker = worker
        self._events = events
        self._clock = clock
        self._every = every
        self._undisturbed = undisturbed
        self._spark = spark
        self._ask_after = 0.0
        self._done: set[TableName] = set()
        self._at: TableName | None = None
        self._left = False
        self._thread: threading.Thread | None = None

    def consider(self) -> None:
        """Begin in a thread of its own, if it is time."""
        if self._every is None or time.monotonic() < self._ask_after or not self._undisturbed():
            return
        if self._thread is not None and self._thread.is_alive():
            return
        self._ask_after = time.monotonic() + min(AGAIN_SECONDS, self._every)
        if self._is_time():
            self._thread = threading.Thread(target=self._maintain, name="headrace-maintenance", daemon=True)
            self._thread.start()

    def end(self, patience: Patience) -> None:
        """Wait for what is being maintained; `undisturbed` says no by now.

        What outlasts patience is left alone: it fails with the project's Spark, as if the process had been killed.
        """
        self._left = not patience.wait_for(
            self._thread, "maintenance" if self._at is None else f"the maintenance of {self._at}"
        )

    def _is_time(self) -> bool:
        with self._catalog.reading() as reader:
            lease = next((x for x in reader.leases() if x.resource == RESOURCE), None)
            held = RESOURCE in reader.held_resources()  # whoever died meanwhile has never given it back
        if lease is None or self._done:
            return True
        return not held and self._clock.now() - lease.heartbeat_at >= dt.timedelta(seconds=self._every or 0)

    def _maintain(self) -> None:
        def turn(name: TableName) -> bool:
            if name in self._done or not self._undisturbed():
                return False
            self._done.add(name)
            self._at = name
            return True

        self._at = None
        try:
            with self._spark.using(), holding_leases(self._catalog, [RESOURCE]):
                failed = self._worker.maintain(turn)
            for what in failed:
                self._events.emit(Notice(f"Maintenance left out {what}"))
            if self._at is not None:
                self._spark.found()
            self._catalog.forget_events(self._clock.now() - KEPT)
            if self._undisturbed():
                self._done.clear()  # else the rest comes when it is quiet again
        except HeadraceError as error:
            if error.code != "LEASE_HELD" and not self._left:
                self._events.emit(
                    Notice(f"Maintenance failed, and will be tried again. [{error.code}] {error.message}")
                )
        except Exception:  # the catalog and Spark are closed behind one that was left
            if not self._left:
                raise
