"""Rows by which a green is behind, as the change log of a mirror counts them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from catalog_kit.clock import START
from catalog_kit.samples import ORDERS

from headrace.catalog import Version
from headrace.deploy.lag_rows import logged_rows
from headrace.lake.metadata import Snapshot, TableMeta


def log(*appended: int, trimmed: Sequence[int] = ()) -> TableMeta:
    """A change log with a snapshot for each version, and rows that were deleted from it in between."""
    snapshots, parent = {}, None
    for number, rows in enumerate(appended, 1):
        operation = "delete" if number in trimmed else "append"
        snapshots[number] = Snapshot(number, parent, number, operation, 0, 0, {"added-records": str(rows)})
        parent = number
    return TableMeta("m", "u", "l", 3, parent, snapshots, {0: ()}, {0: ()}, 0, {})


def version(number: int) -> Version:
    return Version(ORDERS, number, number, None, START, None, None)


def test_each_version_counts_what_was_appended_for_it() -> None:
    four = log(2, 3, 5, 7)
    assert logged_rows(four, version(0), version(4), version(4)) == 17
    assert logged_rows(four, version(1), version(3), version(4)) == 8
    assert logged_rows(log(2, 3, 9, 5, 7, trimmed=[3]), version(1), version(3), version(4)) == 8


def test_what_has_expired_is_not_known() -> None:
    four = log(2, 3, 5, 7)
    left = dataclasses.replace(four, snapshots={n: s for n, s in four.snapshots.items() if n > 2})
    assert logged_rows(left, version(1), version(4), version(4)) is None
    assert logged_rows(left, version(2), version(4), version(4)) == 12
