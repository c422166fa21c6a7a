"""Computes the share of time that stream tables were within their target lag.

At every moment a table reflects what its last publication made it reflect. It is late when the oldest change of a root
source that it does not reflect is older than the target. So between two publications it is late from some moment on, or
not at all.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headrace.catalog import Reached
from headrace.catalog.state.reader import Reader
from headrace.frontier import Frontier
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class Stretch:
    """Frontiers and commit times over a stretch of time.

    Args:
        since: When it begins.
        until: When it ends.
        reached: By stream table, what it reflected, oldest first.
        committed: By root source, when versions were committed, oldest first; older ones may be missing.
    """

    since: dt.datetime
    until: dt.datetime
    reached: Mapping[TableName, Sequence[Reached]]
    committed: Mapping[TableName, Sequence[tuple[int, dt.datetime]]]
    _missing: dict[tuple[TableName, int], dt.datetime | None] = field(default_factory=dict)

    def share(self, name: TableName, target: float) -> float | None:
        """Return the share of the time since its first publication in the stretch, 0 to 1.

        None where that is no time.

        Args:
            name: The stream table.
            target: The lag it is to keep, in seconds.
        """
        states = self.reached.get(name, ())
        begin = max(self.since, states[0].at) if states else self.until
        total = (self.until - begin).total_seconds()
        if total <= 0:
            return None
        ends = [state.at for state in states[1:]] + [self.until]
        late = sum(self._late(state, begin, end, target) for state, end in zip(states, ends, strict=True))
        return 1 - late / total

    def peaks(self, name: TableName) -> list[tuple[dt.datetime, float]]:
        """Return when each publication but the first was, and the seconds of lag that it ended."""
        found, states = [], self.reached.get(name, ())
        for state, following in pairwise(states):
            missing = self._oldest(state.frontier)
            lag = 0.0 if missing is None else max(0.0, (following.at - missing).total_seconds())
            found.append((following.at, lag))
        return found

    def _late(self, state: Reached, begin: dt.datetime, end: dt.datetime, target: float) -> float:
        """Return the seconds of a state's validity during which it was too old."""
        missing = self._oldest(state.frontier)
        if missing is None:
            return 0.0
        return max(0.0, (end - max(begin, state.at, missing + dt.timedelta(seconds=target))).total_seconds())

    def _oldest(self, frontier: Frontier) -> dt.datetime | None:
        times = [at for source, version in frontier.items() if (at := self._after(source, version)) is not None]
        return min(times, default=None)

    def _after(self, name: TableName, version: int) -> dt.datetime | None:
        """Return when the oldest change at a root that a version lacks was committed."""
        start = (name, version)
        if start not in self._missing:
            times: list[dt.datetime | None] = []
            waiting = [start]
            for one in waiting:  # each once: members of a cycle reflect each other
                if one in self._missing:
                    times.append(self._missing[one])
                elif one[0] in self.reached:
                    last = next((s for s in reversed(self.reached[one[0]]) if s.version == one[1]), None)
                    waiting += [p for p in (last.frontier.items() if last is not None else ()) if p not in waiting]
                else:
                    times.append(self._next_commit(*one))
            self._missing[start] = min((at for at in times if at is not None), default=None)
        return self._missing[start]

    def _next_commit(self, root: TableName, version: int) -> dt.datetime | None:
        known = self.committed.get(root, ())
        place = bisect_right(known, version, key=lambda one: one[0])
        return known[place][1] if place < len(known) else None


WINDOW = dt.timedelta(days=1)
"""The last period for which it is determined whether tables kept their lag."""

MOST = 5000
"""Refreshes that are looked back at, of all stream tables together, at most."""


def read_stretch(reader: Reader, tables: Collection[TableName], now: dt.datetime) -> Stretch:
    """Read frontiers of the last day, or since the last `MOST` refreshes.

    Args:
        reader: One state of the catalog.
        tables: All stream tables.
        now: The time.
    """
    since = now - WINDOW
    found = reader.reached_since(since, MOST)
    if len(found) == MOST:
        since = max(since, found[0].at)
    reached: dict[TableName, list[Reached]] = {}
    for one in found:
        reached.setdefault(one.stream, []).append(one)
    frontiers, newest = reader.frontiers(), reader.newest_versions()
    for name in tables:
        if name not in reached and name in frontiers and name in newest:  # as it is now it was all the time
            reached[name] = [Reached(name, since, newest[name].version, frontiers[name])]
    committed = {name: [(version.version, version.committed_at)] for name, version in newest.items()}
    return Stretch(since, now, reached, committed | reader.committed_since(since - WINDOW, 4 * MOST))
