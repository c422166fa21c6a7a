"""Spark accepts each query that `docs/supported.md` counts, with columns of the types that the spec says."""

from __future__ import annotations

from kit.query_kinds import TABLES, by_duckdb, queries
from pyspark.sql.types import StructType

from headrace.spark.runner import SparkRunner


def test_spark_describes_every_query_so(runner: SparkRunner) -> None:
    session = runner.session.newSession()
    for table, columns in TABLES.items():
        declared = StructType.fromDDL(", ".join(f"{each.name} {each.type}" for each in columns))
        session.createDataFrame([], declared).createOrReplaceTempView(table)
    wrong = []
    for query in queries():
        found = session.sql(query.text).schema
        expected = query.columns or by_duckdb(query)(query.text)
        if [(each.name, each.dataType.simpleString()) for each in found] != [(c.name, c.type) for c in expected]:
            wrong.append(f"{query.text}: {found.simpleString()}")
    assert not wrong, "\n".join(wrong)
