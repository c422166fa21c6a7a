"""Spark as the engine: temporary views over local rows, no lake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.algebra.schema import Column
from headrace.names import quote
from kit.case import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkExecutor:
    """Temporary views of a session; see `Executor`.

    Args:
        spark: The session; one shuffle partition makes it fast.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def table(self, name: str) -> str:
        return quote(name)

    def define(self, name: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        schema = ", ".join(f"{quote(c.name)} {c.type}" for c in columns)
        self.spark.createDataFrame([tuple(row) for row in rows], schema).createOrReplaceTempView(name)

    def keep(self, name: str, sql: str) -> None:
        frame = self.spark.sql(sql)
        # collected: the view must not read the one it replaces
        self.spark.createDataFrame(frame.collect(), frame.schema).createOrReplaceTempView(name)

    def rows(self, sql: str) -> list[Row]:
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def describe(self, sql: str) -> tuple[Column, ...]:
        fields = self.spark.sql(sql).schema.fields
        return tuple(Column(field.name, field.dataType.simpleString()) for field in fields)
