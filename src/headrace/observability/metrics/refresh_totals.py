"""Counts refreshes from the history, whoever ran them, since this process began to look."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.catalog import Catalog, HistoryEntry, Outcome
from headrace.observability.metrics.metric_list import BUCKETS

MOST_READ = 5_000
"""Entries that are read at a time."""


@dataclass(slots=True)
class Durations:
    """A histogram.

    Args:
        counts: By bucket, refreshes that took at most that long, and longer than the bucket before; the last, longer
            than any.
        total: Seconds of all.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Add a refresh."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """Return upper bounds with how many took at most that long, as Prometheus has them."""
        bounds = [*map(str, BUCKETS), "+Inf"]
        return [(bound, float(sum(self.counts[: place + 1]))) for place, bound in enumerate(bounds)]


class RefreshTotals:
    """Sums over the entries of the history that were written since the first look.

    Attributes:
        durations: By table and mode.
        rows: By table and `inserted` or `deleted`.
        failures: By table and error code.
        jobs: By table.
    """

    def __init__(self) -> None:
        self.durations: dict[tuple[str, str], Durations] = {}
        self.rows: Counter[tuple[str, str]] = Counter()
        self.failures: Counter[tuple[str, str]] = Counter()
        self.jobs: Counter[tuple[str]] = Counter()
        self._last: int | None = None
        self._lock = threading.Lock()

    def read(self, catalog: Catalog) -> None:
        """Add the entries that are new; the first call only finds out where to begin."""
        with self._lock:
            while True:
                with catalog.reading() as reader:
                    if self._last is None:
                        self._last = reader.newest_entry()
                    entries = reader.history_after(self._last, MOST_READ)
                self.add(entries)
                if entries:
                    self._last = entries[-1].id
                if len(entries) < MOST_READ:
                    return

    def add(self, entries: Iterable[HistoryEntry]) -> None:
        """Add entries."""
        for entry in entries:
            table = str(entry.stream)
            if entry.outcome is Outcome.FAILED:
                self.failures[table, entry.error_code or "UNKNOWN"] += 1
                continue
            self.durations.setdefault((table, entry.mode.value), Durations()).observe(entry.seconds)
            self.rows[table, "inserted"] += entry.rows_inserted
            self.rows[table, "deleted"] += entry.rows_deleted
            self.jobs[table,] += int(entry.metrics.get("jobs") or 0)
