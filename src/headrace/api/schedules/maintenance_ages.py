"""Default ages that snapshots and files must have before maintenance removes them."""

from __future__ import annotations

import datetime as dt

SNAPSHOT_AGE = dt.timedelta(days=7)
"""Snapshots younger than this stay."""

ORPHAN_AGE = dt.timedelta(days=3)
"""Files that no table refers to and that are younger than this stay."""
