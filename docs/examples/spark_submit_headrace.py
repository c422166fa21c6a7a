"""Runs a project's schedules in a Spark session that `spark-submit` has started.

    spark-submit --master yarn --jars iceberg-spark-runtime-4.1_2.13-1.12.0.jar,postgresql-42.7.14.jar \\
        spark_submit_headrace.py /srv/shop [once]
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import headrace
from headrace import config
from headrace.spark.session import EXTENSIONS, catalog_options


def main(project: str, *words: str) -> None:
    """Refresh what is due, once or until the process is told to end."""
    builder = SparkSession.builder.appName("headrace")
    options = {
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.defaultCatalog": "lake",
        "spark.sql.session.timeZone": "UTC",
        **catalog_options(config.load(project)),
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    with headrace.open(project, spark=builder.getOrCreate()) as hr:
        hr.run(once="once" in words)


if __name__ == "__main__":
    main(*sys.argv[1:])
