"""Lands what databases commit while schedules run, in a thread of its own: a slow server holds no refresh up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.errors import HeadraceError, InternalError
from headrace.events import Events, Notice
from headrace.scheduler.backoff import PASSING
from headrace.scheduler.lost import LostSpark

Land = Callable[[threading.Event], HeadraceError | None]
"""Lands all database sources until the event is set; returns the first failure."""

LANDING_PAUSE = 0.5
FAILED_PAUSE = 5.0
"""Seconds between two landings of database sources; and after one that failed."""


@contextmanager
def landing(land: Land, events: Events, spark: LostSpark) -> Iterator[None]:
    """Land again and again while the block lasts.

    A server that cannot be reached holds nothing up: mirrors stay at their last cut, and what reads them is as fresh.

    Args:
        land: Lands.
        events: Told of failures.
        spark: Told when Spark is lost: where nothing can be landed, nothing is refreshed that would notice.
    """
    ended = threading.Event()

    def keep_landing() -> None:
        told: HeadraceError | None = None
        while not ended.is_set():
            with spark.using():
                told = land_once(land, events, told, ended)
                if told is not None and told.code == "SPARK_LOST":
                    spark.lost(told)
            ended.wait(LANDING_PAUSE if told is None else FAILED_PAUSE)

    thread = threading.Thread(target=keep_landing, name="headrace-landing")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def land_once(
    land: Land, events: Events, told: HeadraceError | None = None, ended: threading.Event | None = None
) -> HeadraceError | None:
    """Land everything; tell a failure unless it is the one that was told last.

    Args:
        land: Lands.
        events: Told of a failure.
        told: The failure that was told last.
        ended: Set to have it stop as soon as what it has begun is whole.

    Returns:
        The failure; None also for one that only says that somebody else was there.
    """
    try:
        failure = land(ended or threading.Event())
    except HeadraceError as error:
        failure = error
    except Exception as error:  # a thread that died without a word would leave mirrors behind for ever
        failure = InternalError("LANDING_BROKE", f"Landing database sources broke: {error!r}.")
    if failure is None or failure.code in PASSING:
        return None
    if told is None or told.message != failure.message:
        events.emit(Notice(f"A database source was not landed; trying again. [{failure.code}] {failure.message}"))
    return failure
