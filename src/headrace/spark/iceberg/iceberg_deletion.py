"""Deletes snapshots and files of Iceberg tables in this process.

Iceberg's procedures, and `DROP TABLE … PURGE`, look for files in several Spark jobs, whatever the table's size: a
second and more for a table of five snapshots. Its Java API reads manifests in the driver, only those of the snapshots
that go, and can leave their files. PySpark's public API has no name for it, so that this file reaches behind it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from headrace.names import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = 1_000_000
"""Other snapshots to keep, beside those named: more than a table has."""


def forget(session: SparkSession, table: TableName, snapshots: Collection[int], *, files: bool = False) -> None:
    """Drop snapshots from a table's metadata, in one commit.

    Args:
        session: A session of Spark in this process (not over Spark Connect).
        table: The table.
        snapshots: By id; none of them is current or has a name.
        files: Whether the files that only they use are deleted; else they stay.
    """
    jvm: Any = session.sparkContext._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, table.sql)
    # without these two Iceberg adds what its defaults want: everything older than five days
    update = loaded.expireSnapshots().cleanExpiredFiles(files).expireOlderThan(0).retainLast(MANY)
    for snapshot in snapshots:
        update = update.expireSnapshotId(snapshot)
    update.commit()


def purge(session: SparkSession, metadata_location: str, table: TableName) -> None:
    """Delete all files of a table that no catalog has any more.

    Args:
        session: A session of Spark in this process.
        metadata_location: Its newest metadata file.
        table: A name to register it under meanwhile, in a namespace that exists.

    Raises:
        Exception: Of Java, when the metadata file is not there.
    """
    jvm: Any = session.sparkContext._jvm
    catalog = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(session._jsparkSession, table.catalog)
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(".".join(table.parts[1:]))
    catalog.registerTable(identifier, metadata_location)
    catalog.dropTable(identifier, True)
