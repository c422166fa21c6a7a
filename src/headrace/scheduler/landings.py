"""Lands database sources on a thread of its own; a slow server delays no refresh."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.errors import HeadraceError, InternalError
from headrace.events import Event, Events, Notice, RefreshFailed, RefreshFinished
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.policy.backoff import PASSING

Land = Callable[[threading.Event], HeadraceError | None]
"""Lands all database sources until the event is set; returns the first failure."""

GIVE_WAY, LOOK = 1.0, 0.05
"""Seconds that a landing lets refreshes of what was just landed go first, at most; and between two looks at them."""

SOON = 0.5
"""Seconds in which a thread that lands nothing ends, so that nothing need be said of it."""

LAND = "LAND"
"""The mode in a landing's events."""

LANDING_PAUSE = 0.5
BUSY_PAUSE = 0.1
FAILED_PAUSE = 5.0
"""Seconds between two landings of database sources: where there was nothing to land, where there was, and where one
failed."""


@contextmanager
def landing(
    land: Land,
    events: Events,
    spark: LostSpark,
    patience: Callable[[], Patience],
    landed: Callable[[], None] = lambda: None,
    refreshing: Callable[[], bool] = lambda: False,
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
    """
    ended, busy = threading.Event(), threading.Event()

    def notice(event: Event) -> None:
        if isinstance(event, RefreshFinished) and event.mode == LAND:
            busy.set()
            spark.found()
            landed()

    def keep_landing() -> None:
        told: HeadraceError | None = None
        while not ended.is_set():
            busy.clear()
            with spark.using():
                told = land_once(land, events, told, ended)
                if told is not None and told.code == "SPARK_LOST":
                    spark.lost(told)
            pause = BUSY_PAUSE if busy.is_set() else LANDING_PAUSE
            ended.wait(pause if told is None else FAILED_PAUSE)
            give_way = time.monotonic() + GIVE_WAY
            while busy.is_set() and refreshing() and not ended.is_set() and time.monotonic() < give_way:
                ended.wait(LOOK)

    thread = threading.Thread(target=keep_landing, name="headrace-landing", daemon=True)
    unsubscribe = events.subscribe(notice)
    thread.start()
    try:
        yield
    finally:
        unsubscribe()
        ended.set()
        patience().wait_for(thread, "the landing of database sources", quietly=SOON)


def land_once(
    land: Land, events: Events, told: HeadraceError | None = None, ended: threading.Event | None = None
) -> HeadraceError | None:
    """Land everything; report a failure unless it is the one reported last.

    Args:
        land: Lands.
        events: Told of a failure.
        told: The failure that was told last.
        ended: Set to have it stop as soon as what it has begun is whole.

    Returns:
        The failure; None also for one that only says that somebody else was there.
    """
    said: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, RefreshFailed):
            said.append(event.message)

    unsubscribe = events.subscribe(listen)
    try:
        failure = land(ended or threading.Event())
    except HeadraceError as error:
        failure = error
    except Exception as error:  # a thread that died without a word would leave mirrors behind for ever
        failure = InternalError("LANDING_BROKE", f"Landing database sources broke: {error!r}.")
    finally:
        unsubscribe()
    if failure is None or failure.code in PASSING:
        return None
    if told is None or told.message != failure.message:
        reason = "" if failure.message in said else f" [{failure.code}] {failure.message}"
        events.emit(Notice(f"A database source was not landed; trying again.{reason}"))
    return failure
