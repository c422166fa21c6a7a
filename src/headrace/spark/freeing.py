"""Frees what a local checkpoint holds.

Unpersisting its frame does not: Spark frees the rows when Java has collected the garbage that refers to them, which in
a process that needs little memory is every half an hour. A scheduler would fill its memory, then its disk, with changes
that were applied long ago. PySpark's public API has no name for these rows, so that this file reaches behind it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def free(frame: DataFrame) -> None:
    """Drop the rows of a checkpoint; nothing may read it afterwards. Never fails, and does nothing over Spark Connect.

    Args:
        frame: What `localCheckpoint` returned.
    """
    execution: Any = getattr(frame, "_jdf", None)
    if execution is None:
        return
    with suppress(Exception):  # Spark's own cleaner is left to do it
        execution.queryExecution().logical().rdd().unpersist(False)
