"""Time, injectable so that leases and schedules can be tested without waiting."""

from __future__ import annotations

import datetime as dt
from typing import Protocol

TICK = 60.0
"""Seconds after which schedulers see that time has moved what moving filters keep."""

APART = dt.timedelta(minutes=1)
"""Clocks of hosts may differ by so much; a time that is later than now by more is of a clock that was wrong."""


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> dt.datetime:
        """Return the current time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> dt.datetime:
        """Return the current time, aware, in UTC."""
        return dt.datetime.now(dt.UTC)
