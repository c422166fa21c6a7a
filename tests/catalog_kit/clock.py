from __future__ import annotations

import datetime as dt

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class ManualClock:
    """A clock that only moves when a test says so."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> dt.datetime:
        return self.moment

    def advance(self, seconds: float) -> None:
        self.moment += dt.timedelta(seconds=seconds)
