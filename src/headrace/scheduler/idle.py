"""Runs maintenance while nothing is due: one scheduler at a time, interruptible.

Where something always is due, files and snapshots would pile up. So maintenance that has waited for a moment of quiet
for as long as there is between two times is done beside refreshes, under the leases of its tables.

That a table's turn begins is noted before it does: where the process ends within it, whoever comes next goes on with
the other tables, and this one comes last.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable

from headrace.catalog import Catalog
from headrace.clock import APART, Clock
from headrace.errors import HeadraceError
from headrace.events import Events, Notice
from headrace.names import TableName
from headrace.observability.journal import KEPT
from headrace.refresh.held_leases import holding_leases
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.work import Worker

RESOURCE = "maintenance"
"""Its lease."""

AGAIN_SECONDS, MOST_SECONDS = 60.0, 3600.0
"""After it was not this scheduler's turn, or something went wrong, it asks again then; after more and more time where
it goes wrong again."""

WAIT_SECONDS = 600.0
"""Maintenance that is overdue waits for so long for a table that is being refreshed."""


class Idle:
    """Maintains stored tables every so often.

    Args:
        catalog: The catalog.
        worker: Does it.
        events: Told when something goes wrong.
        clock: Tells the time.
        every: Seconds between two times; None for never.
        quiet: Whether nothing else is to be done at the moment; asked from another thread.
        over: Set when nothing more is to be begun.
        spark: Told while it is used.
    """

    def __init__(
        self,
        catalog: Catalog,
        worker: Worker,
        events: Events,
        clock: Clock,
        every: float | None,
        quiet: Callable[[], bool],
        over: threading.Event,
        spark: LostSpark,
    ) -> None:
        self._catalog = catalog
        self._worker = worker
        self._events = events
        self._clock = clock
        self._every = every
        self._quiet = quiet
        self._over = over
        self._spark = spark
        self._ask_after = self._ask_busy_after = 0.0
        self._since: dt.datetime | None = None
        self._overdue = False
        self._turns: dict[TableName | None, dt.datetime] = {}
        self._failures = 0
        self._at: TableName | None = None
        self._left = False
        self._thread: threading.Thread | None = None

    def consider(self) -> None:
        """Begin in a thread of its own, if it is time."""
        if self._every is None or self._over.is_set() or (self._thread is not None and self._thread.is_alive()):
            return
        quiet, now = self._quiet(), time.monotonic()
        if now < (self._ask_after if quiet else self._ask_busy_after):
            return
        self._ask_busy_after = now + min(AGAIN_SECONDS, self._every)
        if quiet:
            self._ask_after = self._ask_busy_after
        self._since = self._due_since(self._every)
        self._overdue = self._since is not None and self._clock.now() - self._since >= dt.timedelta(seconds=self._every)
        if self._since is not None and (quiet or self._overdue):
            self._thread = threading.Thread(target=self._maintain, name="headrace-maintenance", daemon=True)
            self._thread.start()

    def end(self, patience: Patience) -> None:
        """Wait for what is being maintained; `over` is set by now.

        What outlasts patience is left alone: it fails with the project's Spark, as if the process had been killed.
        """
        self._left = not patience.wait_for(
            self._thread, "maintenance" if self._at is None else f"the maintenance of {self._at}"
        )

    def _due_since(self, every: float) -> dt.datetime | None:
        """Return since when it is time; None while it is not, or while somebody is at it."""
        with self._catalog.reading() as reader:
            held = RESOURCE in reader.held_resources()  # whoever died meanwhile has never given it back
        now = self._clock.now()
        self._turns = {n: at for n, at in self._catalog.maintenance_turns().items() if at <= now + APART}
        if held:
            return None
        if None not in self._turns:
            return self._since or now
        due = self._turns[None] + dt.timedelta(seconds=every)
        return None if due > now else due

    def _goes_on(self) -> bool:
        return not self._over.is_set() and (self._overdue or self._quiet())

    def _maintain(self) -> None:
        assert self._every is not None
        until = 0.0
        period = dt.timedelta(seconds=self._every)
        # those who had their turn since then were given it in this pass, by this process or a former one
        since = self._turns[None] + period if None in self._turns else self._clock.now() - period

        def waits() -> bool:
            return self._overdue and not self._over.is_set() and time.monotonic() < until

        def turn(name: TableName) -> bool:
            nonlocal until
            if (name in self._turns and self._turns[name] >= since) or not self._goes_on():
                return False
            until = time.monotonic() + WAIT_SECONDS
            self._turns[name] = self._clock.now()
            self._catalog.note_maintenance_turn(name, self._turns[name])
            self._at = name
            return True

        self._at = None
        try:
            with self._spark.using(), holding_leases(self._catalog, [RESOURCE]):
                failed = self._worker.maintain(turn, waits)
            for what in failed:
                self._events.emit(Notice(f"Maintenance left out {what}"))
            if self._at is not None:
                self._spark.found()
            self._catalog.forget_events(self._clock.now() - KEPT)
            if self._goes_on():  # else the rest comes when it is quiet again
                self._since = None
                self._catalog.end_maintenance(self._clock.now(), since)
            self._failures = 0
        except HeadraceError as error:
            if error.code != "LEASE_HELD" and not self._left:
                self._put_off(error)
        except Exception:  # the catalog and Spark are closed behind one that was left
            if not self._left:
                raise

    def _put_off(self, error: HeadraceError) -> None:
        """Try again later, and say so the first time."""
        if not self._failures:
            self._events.emit(Notice(f"Maintenance failed, and will be tried again. [{error.code}] {error.message}"))
        self._failures += 1
        again = time.monotonic() + min(AGAIN_SECONDS * 2 ** (self._failures - 1), MOST_SECONDS)
        self._ask_after, self._ask_busy_after = max(self._ask_after, again), max(self._ask_busy_after, again)
