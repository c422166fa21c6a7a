"""Drops snapshots of Iceberg tables, and reads tables that no catalog lists.

In come table names and metadata files. Out: `forget`, `purge`, `unlisted`.
"""

from headrace.spark.iceberg.iceberg_deletion import forget, purge
from headrace.spark.iceberg.unlisted_tables import unlisted

__all__ = ["forget", "purge", "unlisted"]
