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
from typing import TYPE_CHECKING, Any

from headrace.spark.jvm_classes import classes_of, frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BYTES_OF_LONG = 8
"""Size of a row of the range whose plan tells Spark how large a checkpoint is."""


def counted(frame: DataFrame, rows: int) -> DataFrame:
    """Return the same checkpoint, known to have so many rows, and nothing else known of them.

    What Spark knows of a plan's values it takes along to a checkpoint, also where it is about columns that the
    checkpoint does not have; the next union over it would then fail in the optimizer (`key not found`).

    Args:
        frame: What `localCheckpoint` returned, of Spark in this process.
        rows: How many rows it has.
    """
    session: Any = frame.sparkSession
    java = classes_of(session.sparkContext._jvm)
    held: Any = frame._jdf.queryExecution().logical()
    size = rows * java.estimation.getSizePerRow(held.output(), java.no_columns)
    # a number of Scala's cannot be made from here; a range of so many bytes has it
    range_ = session._jsparkSession.range(max(size // _BYTES_OF_LONG, 1))
    plan = java.kept(
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
    return frame_of(session, plan)


def checkpoint_on_server(frame: DataFrame) -> DataFrame:
    """Return a checkpoint over Spark Connect, whose rows are computed when it is read first.

    PySpark hands it to the session that this process has begun with, which finds nothing of that name on the server
    where the frame belongs to another one.

    Args:
        frame: What is kept, of a session over Spark Connect.
    """
    checkpoint: Any = frame.localCheckpoint(eager=False)
    if checkpoint.sparkSession is not frame.sparkSession:
        checkpoint._session = checkpoint._plan._spark_session = frame.sparkSession
    kept: DataFrame = checkpoint
    return kept


def free(frame: DataFrame) -> None:
    """Drop a checkpoint's rows; never fails.

    Nothing may read it afterwards. Over Spark Connect it does nothing.

    Args:
        frame: What `localCheckpoint` returned.
    """
    execution: Any = getattr(frame, "_jdf", None)
    if execution is None:
        return
    with suppress(Exception):  # Spark's own cleaner is left to do it
        execution.queryExecution().logical().rdd().unpersist(False)
