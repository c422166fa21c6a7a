"""Iceberg tables written by anyone: what changed between two snapshots, and how to read it.

In come metadata files and manifests; no Spark job is started. Out go change plans and the SQL that reads them.
"""
