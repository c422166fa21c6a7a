"""Holds a few rows as literal rows of a plan.

A plan that reads them is as small as one over a table, whatever they were computed from; Spark knows how many they are
and sends them along with its tasks, drops joins with none, and does small sums while it plans. Each step of a refresh
would otherwise carry the plans of all before it. PySpark's public API makes such rows from Python objects only, which
loses types, so that this file reaches behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ROWS = 20_000
"""More are left where they were computed: they would be sent anew with every statement that reads them."""


def literal_rows(frame: DataFrame) -> DataFrame:
    """The rows of a computed frame, fetched into the driver, as a frame that reads nothing else.

    Args:
        frame: A frame of Spark in this process (not over Spark Connect), of at most `MOST_ROWS` rows.
    """
    from pyspark.sql import DataFrame

    java: Any = frame._jdf
    jvm: Any = frame.sparkSession.sparkContext._jvm
    execution = java.queryExecution()
    rows = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(execution.executedPlan().executeCollect())
    plans = jvm.org.apache.spark.sql.catalyst.plans.logical
    relation = plans.LocalRelation(execution.analyzed().output(), rows, False, jvm.scala.Option.empty())
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(java.sparkSession(), relation), frame.sparkSession)
