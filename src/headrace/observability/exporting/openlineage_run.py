"""Names runs and times as OpenLineage does."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """A run that began: its UUID, and its job's name."""

    id: str
    job: str


def moment(at: int) -> str:
    """Return a time in nanoseconds since 1970 as OpenLineage writes it."""
    return dt.datetime.fromtimestamp(at / 1e9, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
