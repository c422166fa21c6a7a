"""Has deployments promoted and taken back that nobody attends, beside the refreshes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from headrace.catalog import Catalog
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Events, Notice
from headrace.names import TableName
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.work import Worker

EVERY_SECONDS = 1.0
"""Time between two looks at deployments, at least."""

AGAIN_SECONDS = 30.0
"""After something went wrong with the catalog or with Spark itself, it is tried again then."""


class Deployments:
    """Sees to deployments in a thread of its own, as a promotion waits for refreshes.

    Args:
        catalog: The catalog.
        worker: Promotes and takes back.
        events: Told when something goes wrong.
        poll: Seconds between two looks.
        spark: Told while it is used.
    """

    def __init__(self, catalog: Catalog, worker: Worker, events: Events, poll: float, spark: LostSpark) -> None:
        self._catalog = catalog
        self._worker = worker
        self._events = events
        self._every = max(poll, EVERY_SECONDS)
        self._spark = spark
        self._ask_after = 0.0
        self._told = ""
        self._thread: threading.Thread | None = None

    def consider(self, layouts: Sequence[TableName]) -> None:
        """Begin if there are deployments to see to; one small query where there are none.

        Args:
            layouts: Stream tables for which deployments are to bring a new stored layout.

        Raises:
            HeadraceError: The catalog does not answer.
        """
        if time.monotonic() < self._ask_after or (self._thread is not None and self._thread.is_alive()):
            return
        self._ask_after = time.monotonic() + self._every
        if layouts or self._catalog.has_unattended():
            self._thread = threading.Thread(target=self.step, args=(layouts,), name="headrace-deployments", daemon=True)
            self._thread.start()

    def step(self, layouts: Sequence[TableName] = ()) -> None:
        """Promote and roll back now; emit each kind of error once.

        Args:
            layouts: As for `consider`.
        """
        try:
            with self._spark.using():
                self._worker.deploy(layouts)
            self._told = ""
        except HeadraceError as error:
            self._leave_alone(error)
        except Exception as defect:
            self._leave_alone(EnvironmentFault("REFRESH_BROKE", f"Promoting broke: {defect!r}.", retryable=True))
            raise

    def _leave_alone(self, error: HeadraceError) -> None:
        self._ask_after = time.monotonic() + AGAIN_SECONDS
        if self._told != error.code:
            self._events.emit(Notice(f"Deployments are left alone for now. [{error.code}] {error.message}"))
        self._told = error.code

    def end(self, patience: Patience) -> None:
        """Wait for the promotion that is being made, as long as there is patience."""
        patience.wait_for(self._thread, "deployments")
