"""Writes sinks on threads of their own: a target that is away delays nobody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from headrace.errors import HeadraceError
from headrace.events import Event, Events, GroupPublished, RefreshFinished, SinkWritten
from headrace.scheduler.patience import Patience
from headrace.scheduler.policy.backoff import PASSING
from headrace.scheduler.source_and_sink_work.workers import Due, Workers

LOOK, LONGEST = 0.25, 2.0
"""Seconds between two looks at what is due; they grow to the longest while nothing is, until this process publishes."""

AT_ONCE = 8
"""Batches that are written side by side; one to a server that does not answer holds a place for some seconds."""


class Deliveries(Workers[Due]):
    """Writes the sinks that are due, again and again.

    Args:
        due: Says what is due.
        write: Writes it; a failure is remembered, with when to try again, by whoever writes.
        events: Told of failures that nobody foresaw.
        batches: Gives all that there is, due or not.
        away: Whether it was told that the catalog is away.
    """

    at_once = AT_ONCE
    things = "sinks"
    doing = "writing"
    broke = "SINK_BROKE"

    def __init__(
        self,
        due: Callable[[], Sequence[Due]],
        write: Callable[[Due], None],
        events: Events,
        batches: Callable[[], Sequence[Due]],
        away: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(due, events, away)
        self._write = write
        self._batches = batches

    def work(self, on: Due) -> None:
        """Write sinks."""
        self._write(on)

    def there(self, due: Sequence[Due]) -> Collection[str]:
        """Return the names of all batches; none that wait for another try are due."""
        return {batch.name for batch in self._batches()}

    def expects(self, error: HeadraceError) -> bool:
        """Return whether a failure needs no word here: whoever writes tells of those of sinks."""
        return error.code in PASSING or error.code.startswith("SINK_")

    def words(self, error: HeadraceError) -> str:
        """Return the text that tells of a failure."""
        return f"A sink was not written; trying again. [{error.code}] {error.message}"

    def rest(self, on: Due, failure: HeadraceError | None) -> None:
        """Wait a moment where nobody foresaw the failure, and so nobody has noted when to try again."""
        if failure is not None and failure.code == self.broke:
            time.sleep(1)


@contextmanager
def delivering(
    due: Callable[[], Sequence[Due]],
    write: Callable[[Due], None],
    events: Events,
    patience: Callable[[], Patience],
    batches: Callable[[], Sequence[Due]],
    away: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Write sinks as they are due while the block lasts; wait a while at its end.

    Args:
        due: Says what is due.
        write: Writes it.
        events: Told what nobody foresaw.
        patience: Says how long that is waited for.
        batches: Gives all that there is, due or not.
        away: Whether it was told that the catalog is away.
    """
    ended, moved = threading.Event(), threading.Event()
    deliveries = Deliveries(due, write, events, batches, away)

    def heard(event: Event) -> None:
        if isinstance(event, RefreshFinished | GroupPublished | SinkWritten):
            moved.set()

    def keep_delivering() -> None:
        pause = LOOK
        while not ended.is_set():
            started = deliveries.begin()
            if moved.wait(pause):
                moved.clear()
                ended.wait(LOOK / 5)  # several stream tables may be published at once
            pause = LOOK if started else min(2 * pause, LONGEST)

    with deliveries.looking(keep_delivering, heard, (ended, moved), patience):
        yield
