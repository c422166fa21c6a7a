"""Runs a small Spark session whose Java writes the archive of the classes it loaded.

Run by `headrace.spark.class_archive` in a process of its own, because the archive is written when that Java ends.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from headrace.config import default_settings
from headrace.spark.end_session import await_end
from headrace.spark.session import open_session

TRAINING = (
    "CREATE NAMESPACE lake.w",
    "CREATE TABLE lake.w.t (k BIGINT, g STRING, v DECIMAL(12,2), d DATE)",
    "INSERT INTO lake.w.t SELECT id, concat('g', id % 7), id * 1.5, DATE'2026-01-01' FROM range(1000)",
    "UPDATE lake.w.t SET v = v + 1 WHERE k < 5",
    "DELETE FROM lake.w.t AS s WHERE EXISTS (SELECT 1 FROM (SELECT id FROM range(9)) AS c WHERE c.id <=> s.k)",
    "MERGE INTO lake.w.t USING (SELECT 10L AS id) AS c ON c.id = k WHEN MATCHED THEN DELETE",
    "SELECT a.g, sum(a.v), count(*) FROM lake.w.t a JOIN lake.w.t b ON a.k = b.k GROUP BY a.g ORDER BY 1",
    "INSERT OVERWRITE lake.w.t SELECT * FROM lake.w.t WHERE k % 2 = 0",
    "SELECT * FROM lake.w.t.snapshots",
)
"""Statements that the archive is made from: roughly what a first refresh runs."""


def train(jars: str, folder: str, made: str, class_path: str) -> None:
    """Run typical statements in a session whose Java writes the archive when it ends.

    Args:
        jars: The folder of jars.
        folder: Where its tables are.
        made: The archive.
        class_path: What the class path begins with, in the order that sessions with the archive have.
    """
    settings = dataclasses.replace(
        default_settings(Path(folder)),
        jars_dir=jars,
        spark_master="local[2]",
        spark_options={
            "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={made}",
            "spark.driver.extraClassPath": class_path,
        },
    )
    session = open_session(settings)
    for statement in TRAINING:
        session.sql(statement).collect()
    session.stop()
    await_end()  # it writes the archive when it ends, and nobody else waits for it


if __name__ == "__main__":
    train(*sys.argv[1:5])
