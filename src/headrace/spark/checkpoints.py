"""Tells Spark how large a local checkpoint is, and frees what it holds.

A checkpoint has no plan behind it but keeps what Spark guessed of the plan: a join that selects one row in a thousand
counts as large as its inputs multiplied. Told the rows, Spark broadcasts what is small.

Unpersisting a frame does not free its checkpoint: Spark frees the rows when Java has collected the garbage that refers
to them, which in a process that needs little memory is every half an hour. A scheduler would fill its memory, then its
disk, with changes that were applied long ago. PySpark's public API has no name for any of this, so that this file
reaches behind it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_BYTES_OF_LONG = 8


def counted(frame: DataFrame, rows: int) -> DataFrame:
    """The same checkpoint, known to have so many rows, and nothing else known of them.

    What Spark knows of a plan's values it takes along to a checkpoint, also where it is about columns that the
    checkpoint does not have; the next union over it would then fail in the optimizer (`key not found`).

    Args:
        frame: What `localCheckpoint` returned, of Spark in this process.
        rows: How many rows it has.
    """
    from pyspark.sql import DataFrame

    session: Any = frame.sparkSession
    jvm: Any = session.sparkContext._jvm
    java = _classes(jvm)
    held: Any = frame._jdf.queryExecution().logical()
    size = rows * java.estimation.getSizePerRow(held.output(), java.no_columns)
    # a number of Scala's cannot be made from here; a range of so many bytes has it
    range_ = session._jsparkSession.range(max(size // _BYTES_OF_LONG, 1))
    plan = java.relation(
        held.output(),
        held.rdd(),
        held.outputPartitioning(),
        held.outputOrdering(),
        False,
        java.nothing,
        session._jsparkSession,
        java.some(range_.queryExecution().analyzed().stats()),
        java.nothing,
    )
    return DataFrame(java.datasets.ofRows(session._jsparkSession, plan), session)


class _Classes:
    """Classes of a JVM; looking one up by its name takes a question for each part of the name."""

    def __init__(self, jvm: Any) -> None:
        sql = jvm.org.apache.spark.sql
        self.datasets = sql.classic.Dataset
        self.relation = sql.execution.LogicalRDD
        self.estimation = sql.catalyst.plans.logical.statsEstimation.EstimationUtils
        self.no_columns = getattr(self.estimation, "getSizePerRow$default$2")()
        self.some = jvm.scala.Option.apply
        self.nothing = jvm.scala.Option.empty()


@cache
def _classes(jvm: Any) -> _Classes:
    return _Classes(jvm)


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
