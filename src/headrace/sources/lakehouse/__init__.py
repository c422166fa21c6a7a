"""Iceberg tables written by any engine: finds and reads changes between two snapshots.

In come metadata files and manifests; no Spark job is started. Out go change plans and the SQL that reads them.
"""
