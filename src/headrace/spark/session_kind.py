"""Tells local sessions, clusters and Spark Connect apart.

| Session | Few rows of a step | More rows of a step |
|---|---|---|
| `local[…]` | literal rows of the plans that read them | local checkpoints, in this process |
| a cluster | the same: the driver holds them, and no executor can take them along | local checkpoints, on executors |
| Spark Connect | Spark's cache | Spark's cache |

An executor that is lost takes its part of the checkpoints along. Whoever reads them is told `EXECUTOR_LOST`, and the
refresh is computed again.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SessionKind(StrEnum):
    """The kind of a session, by where its driver and its tasks run."""

    LOCAL = "one process"
    CLUSTER = "a cluster"
    CONNECT = "Spark Connect"

    @property
    def keeps(self) -> str:
        """Return how the rows of a refresh's steps are kept, for people."""
        return _KEEPS[self]


_KEEPS = {
    SessionKind.LOCAL: "few rows of a step are literal rows, more are checkpoints in this process",
    SessionKind.CLUSTER: "few rows of a step are held by the driver, more are checkpoints on executors; a refresh that "
    "loses an executor's is computed again",
    SessionKind.CONNECT: "rows of steps are in Spark's cache",
}


def is_local(master: str) -> bool:
    """Return whether a master means one process, as `local[2]` does, but no `local-cluster[…]`."""
    return re.match(r"local(\[|$)", master) is not None


def kind_of(session: SparkSession) -> SessionKind:
    """Return what a session is."""
    if not hasattr(session, "_jsc"):
        return SessionKind.CONNECT
    return SessionKind.LOCAL if is_local(str(session.sparkContext.master)) else SessionKind.CLUSTER
