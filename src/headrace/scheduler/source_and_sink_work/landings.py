"""Lands database sources, each on a thread of its own, so that a slow one delays no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from headrace.catalog import DatabaseSource
from headrace.errors import HeadraceError, InternalError
from headrace.events import Event, Events, Notice, RefreshFailed, RefreshFinished
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.policy.backoff import PASSING
from headrace.scheduler.source_and_sink_work.workers import Workers

GIVE_WAY, LOOK = 1.0, 0.05
"""Seconds that a landing lets refreshes of what was just landed go first, at most; and between two looks at them."""

LAND = "LAND"
"""The mode in a landing's events."""

LANDING_PAUSE = 0.5
BUSY_PAUSE = 0.1
FAILED_PAUSE = 5.0
"""Seconds between two landings of a database source: where there was nothing to land, where there was, and where it
failed."""

AT_ONCE = 64
"""Sources that are landed side by side; a server that does not answer holds a place, and so does a pause."""

WRITES = 4
"""Landings that are written by Spark side by side; each writes several mirrors at once."""


class Land(Protocol):
    """Lands database sources."""

    def due(self) -> Sequence[DatabaseSource]:
        """Return the sources that can be landed."""
        ...

    def land_due(self, name: str, until: threading.Event, using: Callable[[], AbstractContextManager[object]]) -> None:
        """Land one of them.

        Args:
            name: The source.
            until: Set to have it stop as soon as what it has begun is whole.
            using: Entered while Spark is used.
        """
        ...


class Landings(Workers[DatabaseSource]):
    """Lands sources again and again, with a pause of its own for each.

    Args:
        land: Lands.
        events: Told of failures; tells of what was landed.
        spark: Told when Spark is lost: where nothing can be landed, nothing is refreshed that would notice.
        ended: Set where nothing more is to be landed.
        landed: Called when something was landed.
        refreshing: Whether refreshes are under way.
        away: Whether it was told that the catalog is away.
    """

    at_once = AT_ONCE
    things = "database sources"
    doing = "landing"
    broke = "LANDING_BROKE"

    def __init__(
        self,
        land: Land,
        events: Events,
        spark: LostSpark,
        ended: threading.Event,
        landed: Callable[[], None],
        refreshing: Callable[[], bool],
        away: Callable[[], bool],
    ) -> None:
        super().__init__(land.due, events, away)
        self._land = land
        self._spark = spark
        self._ended = ended
        self._landed = landed
        self._refreshing = refreshing
        self._busy: set[str] = set()
        self._said: dict[str, str] = {}
        self._writes = threading.BoundedSemaphore(WRITES)

    def notice(self, event: Event) -> None:
        """Note what landings tell."""
        if isinstance(event, RefreshFailed):
            self._said[event.table] = event.message
        elif isinstance(event, RefreshFinished) and event.mode == LAND:
            self._busy.add(event.table)
            self._spark.found()
            self._landed()

    def work(self, on: DatabaseSource) -> None:
        """Land a source."""
        self._busy.discard(on.name)
        self._land.land_due(on.name, self._ended, self._using)

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._writes, self._spark.using():
            yield

    def there(self, due: Sequence[DatabaseSource]) -> Collection[str]:
        """Return the names of what is due: all sources are, all the time."""
        return {source.name for source in due}

    def expects(self, error: HeadraceError) -> bool:
        """Return whether a failure only says that somebody else was there."""
        return error.code in PASSING

    def words(self, error: HeadraceError) -> str:
        """Return the text that tells of a failure, with its reason unless the landing told it."""
        return words_of(error, told=error.message in list(self._said.values()))

    def rest(self, on: DatabaseSource, failure: HeadraceError | None) -> None:
        """Wait until a source may be landed again; let refreshes of what was just landed go first."""
        busy = on.name in self._busy
        self._ended.wait(FAILED_PAUSE if failure is not None else BUSY_PAUSE if busy else LANDING_PAUSE)
        give_way = time.monotonic() + GIVE_WAY
        while busy and self._refreshing() and not self._ended.is_set() and time.monotonic() < give_way:
            self._ended.wait(LOOK)


@contextmanager
def landing(
    land: Land,
    events: Events,
    spark: LostSpark,
    patience: Callable[[], Patience],
    landed: Callable[[], None] = lambda: None,
    refreshing: Callable[[], bool] = lambda: False,
    away: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Land again and again while the block lasts.

    A server that cannot be reached holds nothing up: mirrors stay at their last cut, and what reads them is as fresh.

    Args:
        land: Lands.
        events: Told of failures.
        spark: Told when Spark is lost: where nothing can be landed, nothing is refreshed that would notice.
        patience: Says how long what is under way at the end is waited for; what outlasts that is left alone.
        landed: Called when something was landed.
        refreshing: Whether refreshes are under way.
        away: Whether it was told that the catalog is away.
    """
    ended = threading.Event()
    landings = Landings(land, events, spark, ended, landed, refreshing, away)

    def keep_landing() -> None:
        while not ended.is_set():
            landings.freed.clear()
            landings.begin()
            landings.freed.wait(LANDING_PAUSE)
            ended.wait(LOOK / 5)  # several sources may be due again at once

    with landings.looking(keep_landing, landings.notice, (ended, landings.freed), patience):
        yield


def land_once(land: Callable[[], HeadraceError | None], events: Events) -> HeadraceError | None:
    """Land everything, and tell of a failure.

    Args:
        land: Lands all database sources; returns the first failure.
        events: Told of a failure.

    Returns:
        The failure; None also for one that only says that somebody else was there.
    """
    said: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, RefreshFailed):
            said.append(event.message)

    unsubscribe = events.subscribe(listen)
    try:
        failure = land()
    except HeadraceError as error:
        failure = error
    except Exception as error:  # schedules run all the same
        failure = InternalError("LANDING_BROKE", f"Landing database sources broke: {error!r}.")
    finally:
        unsubscribe()
    if failure is None or failure.code in PASSING:
        return None
    events.emit(Notice(words_of(failure, told=failure.message in said)))
    return failure


def words_of(failure: HeadraceError, *, told: bool) -> str:
    """Return the text that tells of a landing's failure.

    Args:
        failure: The failure.
        told: Whether its reason was told already.
    """
    reason = "" if told else f" [{failure.code}] {failure.message}"
    return f"A database source was not landed{'; trying again' if failure.retryable else ''}.{reason}"
