"""Decides when a failed refresh is tried again: a pure policy."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable

from headrace.error_codes.outages import OUTAGES
from headrace.errors import HeadraceError

FIRST = 2.0
LONGEST = 300.0
"""Seconds until a failed refresh is tried again: doubling from the first to the longest."""

MOST = dt.timedelta(seconds=1.5 * LONGEST)
"""No retry is planned later; one that seems to be was planned by a clock that was ahead."""

PASSING = frozenset(
    {
        "LEASE_HELD",
        "LEASE_LOST",
        "CUT_OVERTAKEN",
        "DEFINITION_CHANGED",
        "STREAM_TABLE_NOT_FOUND",
        "LAYOUT_AWAITED",
        "LAYOUT_TOO_NEW",
        "INPUT_NOT_READY",
    }
)
"""Errors that only say that somebody else was there, is newer, is to come first, or has failed: not counted."""


def pause(failures: int, luck: float) -> float:
    """Return the seconds until the next try: doubling, with random jitter of up to a half.

    Args:
        failures: How many there were in a row, at least 1.
        luck: From 0 to 1.
    """
    return float(min(LONGEST, FIRST * 2 ** (failures - 1))) * (1 + luck / 2)


SOON = 5
"""Failures that lengthen the pause in an outage, at most: it ends for all tables at once. Spark keeps connections to
the catalog, and notices that one is dead only by failing."""


def retry_policy(error: HeadraceError, now: dt.datetime, limit: int) -> Callable[[int], dt.datetime | None]:
    """Return when to try again, from the number of failures in a row; None to suspend.

    Args:
        error: What went wrong; one that cannot go away by itself suspends at once.
        now: The time.
        limit: After so many failures in a row a table is suspended.
    """
    outage = error.code in OUTAGES

    def at(failures: int) -> dt.datetime | None:
        if not error.retryable or (failures >= limit and not outage):
            return None
        return now + dt.timedelta(seconds=pause(min(failures, SOON) if outage else failures, random.random()))

    return at
