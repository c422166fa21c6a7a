"""Decides when a stream table is due: a pure function of its schedule and of its standing."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from headrace.schedule import Kind, Schedule


@dataclass(frozen=True, slots=True)
class Standing:
    """The freshness of a stream table: whether it is loaded, since when it is behind.

    Args:
        loaded: Whether it was ever loaded.
        behind_since: When the oldest change was committed that it does not reflect; None when it reflects all.
        refreshed: When its last refresh began; None when there was none, or it failed and is to be tried again.
        expected: Seconds that refreshing it, and what is refreshed before it, usually takes.
        lined_up: When the look began that lined up its last refresh; its sources were observed then, or after. None
            where that is not known.
    """

    loaded: bool
    behind_since: dt.datetime | None
    refreshed: dt.datetime | None = None
    expected: float = 0.0
    lined_up: dt.datetime | None = None

    def lag(self, now: dt.datetime) -> float:
        """Return seconds that it trails its sources."""
        return max(0.0, (now - self.behind_since).total_seconds()) if self.behind_since else 0.0


def due_at(schedule: Schedule, standing: Standing, now: dt.datetime, *, factor: float = 1.0) -> dt.datetime | None:
    """Return when a table is due by its own schedule; None when it never is.

    Nothing does while it reflects all that its sources hold, nor where the schedule is `MANUAL` or `DOWNSTREAM`.

    Args:
        schedule: The schedule.
        standing: Where it stands.
        now: The time.
        factor: Stretches durations, for tables that matter less.
    """
    if schedule.kind in (Kind.MANUAL, Kind.DOWNSTREAM):
        return None
    if not standing.loaded:
        return now
    if standing.behind_since is None:
        return None
    times = (standing.lined_up, standing.refreshed)
    known = [at for at in times if at is not None and at <= now]  # later ones are of a clock that was ahead
    if schedule.cron is not None:
        return schedule.cron.next_after(min(known, default=standing.behind_since))
    seconds = schedule.seconds * factor
    if schedule.kind is Kind.ON_CHANGE:
        return max(standing.behind_since, max(known, default=standing.behind_since) + dt.timedelta(seconds=seconds))
    return standing.behind_since + dt.timedelta(seconds=_patience(seconds, standing.expected))


def _patience(target: float, expected: float) -> float:
    """Return how long a change may wait before its refresh begins, in seconds.

    The refresh itself must fit into the target, with the same again to spare; but not more than half of the target is
    given to it, or a slow table would be refreshed without end.
    """
    return max(target - 2 * expected, target / 2)
