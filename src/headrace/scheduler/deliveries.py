"""Writes sinks on threads of their own: a target that is away delays nobody else."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from headrace.errors import HeadraceError
from headrace.events import Event, Events, GroupPublished, Notice, RefreshFinished, SinkWritten
from headrace.scheduler.patience import Patience, listed
from headrace.scheduler.policy.backoff import PASSING

LOOK, LONGEST = 0.25, 2.0
"""Seconds between two looks at what is due; they grow to the longest while nothing is, until this process publishes."""

SOON = 0.5
"""Seconds in which a thread that has nothing under way ends, so that nothing need be said of it."""

AT_ONCE = 8
"""Batches that are written side by side; one to a server that does not answer holds a place for some seconds."""


class Work(Protocol):
    """Sinks that are written at once."""

    @property
    def name(self) -> str:
        """Return the names of its sinks."""
        ...


Due = TypeVar("Due", bound=Work)


class Deliveries(Generic[Due]):
    """Writes what is due, again and again.

    Args:
        due: Says what is due.
        write: Writes it; a failure is remembered, with when to try again, by whoever writes.
        events: Told of failures that nobody foresaw.
    """

    def __init__(self, due: Callable[[], Sequence[Due]], write: Callable[[Due], None], events: Events) -> None:
        self._due = due
        self._write = write
        self._events = events
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._told: dict[str, str] = {}
        self._left = False
        self._waiting: queue.SimpleQueue[Due | None] = queue.SimpleQueue()  # None: the end
        self._threads = [
            threading.Thread(target=self._keep_writing, name=f"headrace-sink-{number}", daemon=True)
            for number in range(AT_ONCE)
        ]

    def begin(self) -> int:
        """Start to write what is due and is not being written; return how much that was."""
        try:
            due = self._due()
        except HeadraceError as error:  # an outage of the catalog is told where refreshes look at it
            if not error.retryable:
                self._tell(error.code, error.message)
            return 0
        except Exception as error:  # a thread that died without a word would write no sink any more
            self._tell("SINK_BROKE", f"Looking for sinks that are due broke: {error!r}.")
            return 0
        self._told.pop("", None)
        started = 0
        for work in due:
            with self._lock:
                if work.name in self._running:
                    continue
                self._running.add(work.name)
            self._waiting.put(work)
            started += 1
        for thread in self._threads[: self._at_once] if started else ():
            if thread.ident is None:
                thread.start()
        return started

    def end(self, patience: Patience) -> None:
        """Begin nothing more, and wait for what is being written as long as patience lasts."""
        with suppress(queue.Empty):
            while (work := self._waiting.get_nowait()) is not None:
                with self._lock:
                    self._running.discard(work.name)
        for _ in self._threads:
            self._waiting.put(None)
        for thread in [thread for thread in self._threads if thread.ident is not None]:
            with self._lock:
                names = sorted(self._running)
            self._left |= not patience.wait_for(thread, f"the writing of {listed(names) or 'sinks'}", quietly=SOON)

    @property
    def _at_once(self) -> int:
        with self._lock:
            return len(self._running)

    def _keep_writing(self) -> None:
        while (work := self._waiting.get()) is not None:
            self._run(work)

    def _run(self, work: Due) -> None:
        try:
            self._write(work)
            self._told.pop(work.name, None)
        except HeadraceError as error:
            if error.code not in PASSING and not error.code.startswith("SINK_"):
                self._tell(error.code, error.message, work.name)
        except Exception as error:  # a thread that died without a word would leave sinks behind for ever
            self._tell("SINK_BROKE", f"Writing {work.name} broke: {error!r}.", work.name)
            time.sleep(1)
        finally:
            with self._lock:
                self._running.discard(work.name)

    def _tell(self, code: str, message: str, name: str = "") -> None:
        """Tell of a failure once, until what failed goes well."""
        new = message not in self._told.values()  # an outage is one for all sinks
        self._told[name] = message
        if new and not self._left:
            self._events.emit(Notice(f"A sink was not written; trying again. [{code}] {message}"))


@contextmanager
def delivering(
    due: Callable[[], Sequence[Due]],
    write: Callable[[Due], None],
    events: Events,
    patience: Callable[[], Patience],
) -> Iterator[None]:
    """Write sinks as they are due while the block lasts; wait a while at its end.

    Args:
        due: Says what is due.
        write: Writes it.
        events: Told what nobody foresaw.
        patience: Says how long that is waited for.
    """
    ended, moved = threading.Event(), threading.Event()
    deliveries = Deliveries(due, write, events)

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

    unsubscribe = events.subscribe(heard)
    thread = threading.Thread(target=keep_delivering, name="headrace-sinks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        unsubscribe()
        ended.set()
        moved.set()
        patience().wait_for(thread, "a look at the sinks", quietly=SOON)
        deliveries.end(patience())
