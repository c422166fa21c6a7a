"""Spark as the engine: temporary views over literal rows, no lake."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.algebra.schema import Column
from headrace.names import quote
from headrace.spark.type_texts import type_text
from kit.case import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""Option of JVMs in tests: they run much code a few times, and optimising it takes a fifth of the time."""

SHORT_LIVED = f"{QUICK_COMPILER} -XX:-UseParallelGC -XX:+UseSerialGC"
"""The same, and one thread that collects garbage: where two JVMs share two cores, several threads of each would wait
for one another. For Spark's `extraJavaOptions`, which come after ours: Java takes one collector only."""

WITHOUT_CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Options under which Spark writes and compiles no code for queries."""

INTERPRETED = {"spark.sql.adaptive.enabled": "false", **WITHOUT_CODE}
"""Options under which Spark looks at a handful of rows in half the time."""

SHORT_LIVED_OPTIONS = {"spark.sql.shuffle.partitions": "1", "spark.driver.extraJavaOptions": SHORT_LIVED, **INTERPRETED}
"""Options of a Spark that one test starts, for what is committed, leased or restored, and not for plans."""

FOR_COMMANDS = {"SPARK_SUBMIT_OPTS": QUICK_COMPILER}
"""`QUICK_COMPILER` as the environment of commands whose settings are left as users have them."""

FOR_FEW_ROWS = {
    "SPARK_SUBMIT_OPTS": " ".join((QUICK_COMPILER, *(f"-D{name}={at}" for name, at in WITHOUT_CODE.items())))
}
"""As the former, for commands that look at a handful of rows."""

FOR_A_TIER = (
    f"{SHORT_LIVED} -XX:ReservedCodeCacheSize=240m -Xms2g -Xmn1200m -XX:MetaspaceSize=512m -XX:+UseTransparentHugePages"
)
"""The same where one JVM runs hundreds of tests: Java then reserves a fifth of its usual space for compiled code, and
what does not fit is interpreted. Its memory is there from the beginning, most of it for young objects: nearly all die
with their query, and collecting took a tenth of the processor time."""


def as_text(options: Mapping[str, str]) -> str:
    """Return options as HEADRACE_SPARK_OPTIONS takes them."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in options.items())


def heard(spark: SparkSession) -> None:
    """Wait until Spark's listeners have heard of all that has run: who counts jobs learns of them a moment later."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)  # type: ignore[union-attr]


def interpreting(spark: SparkSession) -> SparkSession:
    """A new session that compiles no code for queries; as for what queries mean, it is as any other."""
    session = spark.newSession()
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    return session


class SparkExecutor:
    """Temporary views of a session of its own; see `Executor`.

    Args:
        spark: A session; one shuffle partition makes it fast.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = interpreting(spark)

    def table(self, name: str) -> str:
        return quote(name)

    def define(self, name: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        # rows as literals: Spark then has them in the plan, and starts no Python worker to read them
        names = ", ".join(quote(c.name) for c in columns)
        types = [c.type for c in columns]
        nulls = ", ".join(f"CAST(NULL AS {type_})" for type_ in types)
        if rows:
            text = ", ".join(f"({', '.join(map(_literal, row, types))})" for row in rows)
            query = f"SELECT * FROM VALUES {text} AS v({names})"
        else:
            query = f"SELECT * FROM VALUES ({nulls}) AS v({names}) WHERE false"
        self.spark.sql(query).createOrReplaceTempView(name)

    def keep(self, name: str, sql: str) -> int:
        frame = self.spark.sql(sql)
        columns = [Column(field.name, type_text(field.dataType)) for field in frame.schema.fields]
        rows = [tuple(row) for row in frame.collect()]
        self.define(name, columns, rows)
        return len(rows)

    def rows(self, sql: str) -> list[Row]:
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def describe(self, sql: str) -> tuple[Column, ...]:
        fields = self.spark.sql(sql).schema.fields
        return tuple(Column(field.name, type_text(field.dataType)) for field in fields)


def _literal(value: object, type_: str) -> str:
    if value is None:
        return f"CAST(NULL AS {type_})"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"CAST('{text}' AS {type_})"
