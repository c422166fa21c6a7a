"""Computes a few rows, and holds them as literal rows of a plan.

A plan that reads them is as small as one over a table, whatever they were computed from; Spark knows how many they are
and sends them along with its tasks, drops joins with none, and does small sums while it plans. Each step of a refresh
would otherwise carry the plans of all before it. PySpark's public API makes such rows from Python objects only, which
loses types, so that this file reaches behind it.

What gives few rows in one process is run as planned, not adapted to what its parts turn out to be: waiting for each of
them and planning the rest anew took 8 % of the 12 queries of TPC-H with the most steps, at scale 1 with 0.1 % changed,
and made one of them faster, within noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.spark.jvm_classes import Classes, classes_of, frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_ROWS, MOST_BYTES = 20_000, 16 * 2**20
"""More are left to Spark: they would be sent anew with every statement that reads them."""

PARTITIONS = "spark.sql.limit.initialNumPartitions"
"""Spark's option for how many partitions it reads first for the first rows of a query.

By default one, then four times more.
"""


@dataclass(frozen=True, slots=True)
class LiteralRows:
    """Rows that are part of the plans that read them.

    Args:
        frame: The rows.
        count: How many they are.
        observed: What the computed frame observed, if it did and Spark kept it: a plan that is known to give nothing is
            replaced, and the metric goes with it.
    """

    frame: DataFrame
    count: int
    observed: dict[str, Any] | None = None


def literal_rows(frame: DataFrame) -> LiteralRows | None:
    """Compute a frame into the driver as literal rows; None if they are too many.

    Args:
        frame: A frame of Spark in this process (not over Spark Connect).
    """
    from py4j.protocol import Py4JJavaError  # pyspark-client comes without Py4J, and imports this module
    from pyspark.serializers import CPickleSerializer

    session, java = frame.sparkSession, classes_of(frame.sparkSession.sparkContext._jvm)
    execution: Any = frame._jdf.queryExecution()
    try:
        with _configured(session, java):
            rules = java.preparing.preparations(session._jsparkSession, java.nothing, False)
            plan = java.preparing.prepareForExecution(rules, execution.sparkPlan())
            rows = plan.executeTake(MOST_ROWS + 1)
    except Py4JJavaError as error:  # as which PySpark leaves what its own classes have no name for
        if "spark.driver.maxResultSize" in str(error):
            return None
        raise
    if len(rows) > MOST_ROWS or java.sizes.estimate(rows) > MOST_BYTES:
        return None
    literal = _frame_of(session, java, execution.analyzed().output(), java.arrays.unsafeWrapArray(rows))
    unpickled: Any = CPickleSerializer()
    observed = java.metrics.collect(plan)
    if observed.isEmpty():  # asked first: PySpark takes 20 ms to learn that an iterator has no more
        return LiteralRows(literal, len(rows))
    row = observed.head()._2()
    return LiteralRows(literal, len(rows), unpickled.loads(java.python.toPyRow(row)).asDict())


def planned_rows(frame: DataFrame, session: SparkSession) -> tuple[LiteralRows, int] | None:
    """Return literal rows of a frame whose rows are known after planning, else None.

    And about how many bytes they take.

    So it is with projections, filters and unions of literal rows.

    Args:
        frame: A frame of Spark in this process.
        session: The session of the application that is to read them.

    Returns:
        None where something has to be computed, or the rows are many.
    """
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    parts = [plan.children().apply(i) for i in range(plan.children().size())] if plan.nodeName() == "Union" else [plan]
    if any(part.nodeName() != "LocalRelation" for part in parts):
        return None
    rows = parts[0].data()
    for part in parts[1:]:
        rows = rows.concat(part.data())
    if rows.size() > MOST_ROWS:
        return None
    java = classes_of(session.sparkContext._jvm)
    size = int(java.sizes.estimate(rows))
    if size > MOST_BYTES:
        return None
    return LiteralRows(_frame_of(session, java, plan.output(), rows), rows.size()), size


def _frame_of(session: SparkSession, java: Classes, output: Any, rows: Any) -> DataFrame:
    """Return rows in the JVM as a frame."""
    return frame_of(session, java.literal(output, rows, False, java.nothing))


@contextmanager
def _configured(session: SparkSession, java: Classes) -> Iterator[None]:
    """Make the session's options visible to planning and tasks, as Spark's actions do."""
    context: Any = session.sparkContext._jsc.sc()
    own, active = context.getLocalProperties(), java.sessions.getActiveSession()
    told = own.clone()
    told.putAll(java.converters.asJava(session._jsparkSession.sessionState().conf().getAllConfs()))
    context.setLocalProperties(told)
    java.sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        java.sessions.setActiveSession(active.get()) if active.isDefined() else java.sessions.clearActiveSession()
        context.setLocalProperties(own)
