"""Has an Iceberg table forget snapshots, and nothing else.

Iceberg's procedure looks for the files that only these used, in several Spark jobs over all snapshots that stay; a
landing cannot wait for that, and maintenance finds such files later. It has no option to leave them, nor has PySpark's
public API a name for Iceberg's own, so that this file reaches behind it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from headrace.names import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = 1_000_000
"""So many snapshots are kept beside those named: all."""


def forget(session: SparkSession, table: TableName, snapshots: Collection[int]) -> None:
    """Drop snapshots from a table's metadata, in one commit; their files stay.

    Args:
        session: A session of Spark in this process (not over Spark Connect).
        table: The table.
        snapshots: By id; none of them is current or has a name.
    """
    jvm: Any = session.sparkContext._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, table.sql)
    # without these two Iceberg adds what its defaults want: everything older than five days
    update = loaded.expireSnapshots().cleanExpiredFiles(False).expireOlderThan(0).retainLast(MANY)
    for snapshot in snapshots:
        update = update.expireSnapshotId(snapshot)
    update.commit()
