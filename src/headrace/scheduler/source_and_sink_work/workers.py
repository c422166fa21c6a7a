"""Works on what is due, each on a thread, so that one that hangs or fails delays no other."""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import ClassVar, Generic, Protocol, TypeVar

from headrace.error_codes.outages import CATALOG_OUTAGES
from headrace.errors import HeadraceError, InternalError
from headrace.events import Event, Events, Notice
from headrace.scheduler.patience import Patience, listed

UNTOLD = 30.0
"""Seconds for which the catalog's outages are left to refreshes, which meet them, too, and tell of them. Where these
have not met one by then, perhaps only what is written here is refused."""

SOON = 0.5
"""Seconds in which a thread that has nothing under way ends, so that nothing need be said of it."""


class Work(Protocol):
    """Something that is worked on by itself."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...


Due = TypeVar("Due", bound=Work)


class Workers(ABC, Generic[Due]):
    """Works on what is due, again and again.

    Args:
        due: Says what is due.
        events: Told of failures that nobody foresaw.
        away: Whether it was told that the catalog is away.

    Attributes:
        at_once: How many are worked on side by side; one that hangs holds a place.
        things: What all of them are called.
        doing: What is done to them.
        broke: Code of an error that nobody foresaw.
        freed: Set when something may be begun again.
    """

    at_once: ClassVar[int]
    things: ClassVar[str]
    doing: ClassVar[str]
    broke: ClassVar[str]

    def __init__(self, due: Callable[[], Sequence[Due]], events: Events, away: Callable[[], bool]) -> None:
        self._due = due
        self._events = events
        self._away = away
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._told: dict[str, str] = {}
        self._failing: dict[str, float] = {}  # since when the catalog is away, by name; not told
        self._left = False
        self._waiting: queue.SimpleQueue[Due | None] = queue.SimpleQueue()  # None: the end
        self._threads: list[threading.Thread] = []
        self.freed = threading.Event()

    def begin(self) -> int:
        """Begin with what is due and is not under way; return how much that was."""
        try:
            due = self._due()
            self._forget_dropped(due)
        except HeadraceError as error:
            self._tell(error)
            return 0
        except Exception as error:  # a thread that died without a word would work on nothing any more
            self._tell(InternalError(self.broke, f"Looking for {self.things} that are due broke: {error!r}."))
            return 0
        started = 0
        for work in due:
            with self._lock:
                if work.name in self._running:
                    continue
                self._running.add(work.name)
                wanted = min(len(self._running), self.at_once)
            self._waiting.put(work)
            started += 1
            if len(self._threads) < wanted:
                name = f"headrace-{self.things.split()[-1]}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._keep_working, name=name, daemon=True))
                self._threads[-1].start()
        return started

    @contextmanager
    def looking(
        self,
        look: Callable[[], None],
        hear: Callable[[Event], None],
        wakes: Sequence[threading.Event],
        patience: Callable[[], Patience],
    ) -> Iterator[None]:
        """Have a thread begin with what is due while the block lasts; wait a while at its end.

        Args:
            look: Begins with what is due, again and again, until it is to end.
            hear: Told of events meanwhile.
            wakes: Set, in this order, to have `look` end.
            patience: Says how long what is under way is waited for.
        """
        unsubscribe = self._events.subscribe(hear)
        thread = threading.Thread(target=look, name=f"headrace-look-at-{self.things.split()[-1]}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            unsubscribe()
            for wake in wakes:
                wake.set()
            patience().wait_for(thread, f"a look at {self.things}", quietly=SOON)
            self.end(patience())

    def end(self, patience: Patience) -> None:
        """Begin nothing more, and wait for what is under way as long as patience lasts."""
        with suppress(queue.Empty):
            while (work := self._waiting.get_nowait()) is not None:
                with self._lock:
                    self._running.discard(work.name)
        self._waiting.put(None)
        for thread in self._threads:
            with self._lock:
                names = sorted(self._running)
            what = f"the {self.doing} of {listed(names) or self.things}"
            self._left |= not patience.wait_for(thread, what, quietly=SOON)

    @abstractmethod
    def work(self, on: Due) -> None:
        """Work on something that is due."""

    @abstractmethod
    def there(self, due: Sequence[Due]) -> Collection[str]:
        """Return the names of all that there is, due or not; asked only after something failed.

        Args:
            due: What is due.
        """

    @abstractmethod
    def expects(self, error: HeadraceError) -> bool:
        """Return whether a failure needs no word here."""

    @abstractmethod
    def words(self, error: HeadraceError) -> str:
        """Return the text that tells of a failure."""

    @abstractmethod
    def rest(self, on: Due, failure: HeadraceError | None) -> None:
        """Wait until something that was worked on may be due again."""

    def _keep_working(self) -> None:
        while (work := self._waiting.get()) is not None:
            try:
                self.rest(work, self._worked(work))
            finally:
                with self._lock:
                    self._running.discard(work.name)
                self.freed.set()
        self._waiting.put(None)  # for the other threads

    def _worked(self, on: Due) -> HeadraceError | None:
        """Work on something; return why that failed, other than somebody expects."""
        try:
            self.work(on)
        except HeadraceError as error:
            if self.expects(error):
                return None
            failure = error
        except Exception as error:  # a thread that died without a word would leave it behind for ever
            failure = InternalError(self.broke, f"The {self.doing} of {on.name} broke: {error!r}.")
        else:
            with self._lock:
                self._well(on.name)
            return None
        self._tell(failure, on.name)
        return failure

    def _well(self, name: str) -> None:
        """Forget that something failed."""
        self._told.pop(name, None)
        self._failing.pop(name, None)

    def _forget_dropped(self, due: Sequence[Due]) -> None:
        """Forget what failed and is not there any more, and that looking for what is due failed."""
        failed = (self._told.keys() | self._failing.keys()) - {""}
        gone = failed.difference(self.there(due)) if failed else ()
        with self._lock:
            for name in ("", *gone):
                self._well(name)

    def _tell(self, failure: HeadraceError, name: str = "") -> None:
        """Tell of a failure once, until what failed goes well.

        Of the catalog's outages only where nobody else does.
        """
        with self._lock:
            if failure.retryable and failure.code in CATALOG_OUTAGES:
                since = self._failing.setdefault(name, time.monotonic())
                if self._away() or time.monotonic() - since < UNTOLD:
                    return
            new = failure.message not in self._told.values()  # an outage is one for all of them
            self._told[name] = failure.message
        if new and not self._left:
            self._events.emit(Notice(self.words(failure)))
