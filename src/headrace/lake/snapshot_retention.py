"""Chooses which snapshots of a table written all the time are kept.

Iceberg writes all snapshots of a table anew with every commit, and whoever reads the table reads all of them. Of a
mirror that follows its source by the second there would be half a million after a week. So the past is kept more and
more coarsely: every published state of the last minutes, then what was published last in each minute, then in each
hour. All tables keep the same ends of minutes and hours, so that these can be read together.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass

from headrace.lake.metadata import TableMeta

EVERY = 128
"""After so many commits it is looked whether snapshots can go."""


@dataclass(frozen=True, slots=True)
class Density:
    """Limits on kept snapshots, by age.

    Args:
        few: So many snapshots are no burden, and all kept.
        whole: All published states that were replaced later than so long ago.
        minutes: Those with which a minute ended, so long.
    """

    few: int = 500
    whole: dt.timedelta = dt.timedelta(minutes=15)
    minutes: dt.timedelta = dt.timedelta(hours=4)


def is_time(before: TableMeta, now: TableMeta) -> bool:
    """Return whether it is time to look, after what was committed between two states of a table."""
    return _commits(before) // EVERY != _commits(now) // EVERY


def _commits(meta: TableMeta) -> int:
    return 0 if meta.current is None else meta.current.sequence_number


def superfluous(
    meta: TableMeta,
    *,
    shown: int | None,
    published: Mapping[int, dt.datetime],
    needed: Set[int],
    now: dt.datetime,
    density: Density,
    busy_since: dt.datetime | None = None,
) -> tuple[int, ...]:
    """Return the snapshots that can go, oldest first.

    Those that were never published are steps from one published state to the next; nobody knows of them.

    Args:
        meta: The table.
        shown: The snapshot that readers see; it stays, and so does what was committed after it.
        published: When snapshots were published.
        needed: Snapshots that must stay.
        now: The time.
        density: How much of the past is kept.
        busy_since: Somebody works with what the table was after this time.
    """
    if len(meta.snapshots) <= density.few or shown is None or shown not in meta.snapshots:
        return ()
    whole = min(now - density.whole, busy_since or now)
    last, kept = meta.snapshots[shown].sequence_number, {*needed, *meta.refs.values(), shown}
    states = sorted((at, s) for s, at in published.items() if s in meta.snapshots)
    for place, (at, snapshot) in enumerate(states):
        replaced = states[place + 1][0] if place + 1 < len(states) else now
        step = dt.timedelta(minutes=1) if now - replaced < density.minutes else dt.timedelta(hours=1)
        if replaced >= whole or _turn(at, step) != _turn(replaced, step):
            kept.add(snapshot)
    old = (s for s in meta.snapshots.values() if s.sequence_number < last and s.id not in kept)
    return tuple(s.id for s in sorted(old, key=lambda s: s.sequence_number))


def _turn(time: dt.datetime, step: dt.timedelta) -> int:
    """Return the number of the first full minute or hour that is not before a time."""
    return math.ceil(time.timestamp() / step.total_seconds())
