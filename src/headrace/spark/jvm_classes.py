"""Spark's own classes behind PySpark's public API, for the few files that reach there."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Classes:
    """Classes of a JVM; looking one up by its name takes a question for each part of the name."""

    def __init__(self, jvm: Any) -> None:
        sql = jvm.org.apache.spark.sql
        self.sessions = sql.classic.SparkSession
        self.datasets = sql.classic.Dataset
        self.literal = sql.catalyst.plans.logical.LocalRelation
        self.kept = sql.execution.LogicalRDD
        self.estimation = sql.catalyst.plans.logical.statsEstimation.EstimationUtils
        self.no_columns = getattr(self.estimation, "getSizePerRow$default$2")()
        self.preparing = getattr(getattr(sql.execution, "QueryExecution$"), "MODULE$")
        self.metrics = getattr(getattr(sql.execution, "CollectMetricsExec$"), "MODULE$")
        self.python = sql.api.python.PythonSQLUtils
        self.sizes = jvm.org.apache.spark.util.SizeEstimator
        self.arrays = jvm.scala.collection.immutable.ArraySeq
        self.converters = jvm.scala.jdk.javaapi.CollectionConverters
        self.some = jvm.scala.Option.apply
        self.nothing = jvm.scala.Option.empty()


@cache
def classes_of(jvm: Any) -> Classes:
    """Return the classes of a JVM, looked up once."""
    return Classes(jvm)


def frame_of(session: SparkSession, plan: Any) -> DataFrame:
    """Return a plan in the JVM as a frame.

    Args:
        session: A session of Spark in this process.
        plan: A logical plan.
    """
    from pyspark.sql import DataFrame

    java = classes_of(session.sparkContext._jvm)
    return DataFrame(java.datasets.ofRows(session._jsparkSession, plan), session)
