"""Tells from a change log's metadata how far back it goes, and how many rows it got."""

from __future__ import annotations

from itertools import islice

from headrace.lake.metadata import Snapshot, TableMeta
from headrace.lake.tables import COMPLETE_AFTER

TOGETHER_MS = 1000
"""A table and its log are committed side by side, the log up to so many milliseconds later."""


def complete_after(log: TableMeta) -> int:
    """Return the version after which a change log has all changes."""
    return int(log.properties.get(COMPLETE_AFTER, 0))


def logged_rows(log: TableMeta, versions: int, newer: int, since: Snapshot | None, until: Snapshot | None) -> int:
    """Return about how many rows a log received with some versions; rather more than fewer.

    A version is one snapshot of the log as a rule, but a large landing is several, and of old snapshots only some may
    be kept. So the rows are counted by versions and by time, and the larger number holds.

    Args:
        log: The log.
        versions: How many versions.
        newer: How many versions there are after these.
        since: The table's snapshot at the version before these; None where it is not known.
        until: The table's snapshot at the last of these; None where it is not known.
    """
    line = tuple(log.ancestors(log.current_snapshot_id))
    appended = [s for s in line if s.operation == "append"]
    by_version = sum(s.count("added-records") for s in islice(appended, newer, newer + versions))
    if since is not None:
        return max(by_version, _received(log, since.timestamp_ms, until.timestamp_ms if until is not None else None))
    whole = not line or line[-1].parent_id is None or len(appended) >= newer + versions
    return by_version if whole or log.current is None else log.current.count("total-records")


def _received(log: TableMeta, since: int, until: int | None) -> int:
    """Return rows received between two commits; totals tell of snapshots that are not kept."""
    rows, total = 0, None
    for snapshot in sorted(log.snapshots.values(), key=lambda each: each.sequence_number):
        late = snapshot.timestamp_ms - TOGETHER_MS
        added = snapshot.count("added-records") if snapshot.operation == "append" else 0
        now = snapshot.count("total-records")
        if late > since and (until is None or late <= until):
            rows += max(added, 0 if total is None else now - total)
        total = now
    return rows
