"""How many rows a change log received, by its metadata alone."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from headrace.lake.change_logs import logged_rows
from headrace.lake.metadata import Snapshot, TableMeta

Commit = tuple[int, str, int, int]
"""Second, operation, rows added, rows in the log then."""

LANDINGS = (
    (10, "append", 5, 5),
    (20, "append", 1_000_000, 1_000_005),  # one version in three parts
    (22, "append", 1_000_000, 2_000_005),
    (24, "append", 3, 2_000_008),
    (30, "append", 7, 2_000_015),
    (35, "replace", 2_000_015, 2_000_015),  # compaction
    (40, "append", 2, 2_000_017),
)
STATES = {1: 9, 2: 25, 3: 30, 4: 40}
"""When each version of the table was committed; that of second 30 before its log by less than a second."""


def log_of(commits: Collection[Commit]) -> TableMeta:
    snapshots, parent = {}, None
    for second, operation, added, total in LANDINGS:
        summary = {"added-records": str(added), "total-records": str(total)}
        if (second, operation, added, total) in commits:
            made = second * 1000 + (500 if second == 30 else -100)
            snapshots[second] = Snapshot(second, parent, second, operation, made, 0, summary)
        parent = second
    return TableMeta("", "", "", 3, parent, snapshots, {0: ()}, {0: ()}, 0, {})


def at(version: int) -> Snapshot:
    return Snapshot(version, None, version, "append", STATES[version] * 1000, 0, {})


@pytest.mark.parametrize(
    ("old", "new", "rows"), [(1, 2, 2_000_003), (2, 3, 7), (3, 4, 2), (2, 4, 9), (1, 4, 2_000_012)]
)
def test_a_version_may_be_several_snapshots(old: int, new: int, rows: int) -> None:
    held_back = 4 - new
    log, until = log_of(LANDINGS), at(new) if held_back else None
    assert logged_rows(log, new - old, held_back, at(old), until) == rows


def test_snapshots_that_are_not_kept_are_told_by_the_totals() -> None:
    log = log_of([commit for commit in LANDINGS if commit[0] not in (22, 24, 30)])
    assert logged_rows(log, 3, 0, at(1), None) == 2_000_012


def test_where_the_tables_own_snapshot_is_not_known_it_is_no_fewer() -> None:
    assert logged_rows(log_of(LANDINGS), 1, 0, None, None) == 2
    log = log_of([commit for commit in LANDINGS if commit[0] > 35])
    assert logged_rows(log, 3, 0, None, None) == 2_000_017
