"""Holds a few rows as literal rows of a plan.

A plan that reads them is as small as one over a table, whatever they were computed from; Spark knows how many they are
and sends them along with its tasks, drops joins with none, and does small sums while it plans. Each step of a refresh
would otherwise carry the plans of all before it. PySpark's public API makes such rows from Python objects only, which
loses types, so that this file reaches behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.names import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ROWS, MOST_BYTES = 20_000, 16 * 2**20
"""More are left where they were computed: they would be sent anew with every statement that reads them."""


_LONG = {"string": "{}", "char": "{}", "varchar": "{}", "binary": "{}", "variant": "to_json({})"}
_LONG |= dict.fromkeys(("array", "map", "struct"), "CAST({} AS STRING)")
"""Types whose values can be long, and what their length is taken of."""


def bytes_of(frame: DataFrame) -> str:
    """About how many bytes the long values of a frame take, as an aggregate expression over it."""
    texts = [_LONG[f.dataType.typeName()].format(quote(f.name)) for f in frame.schema if f.dataType.typeName() in _LONG]
    lengths = " + ".join(f"coalesce(octet_length({text}), 0)" for text in texts)
    return f"coalesce(sum({lengths}), 0)" if lengths else "0"


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
