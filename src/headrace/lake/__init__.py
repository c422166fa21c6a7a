"""Stored Iceberg tables: metadata, and statements that change them.

In come measured changes and table facts. Out go SQL statements and plans of maintenance, run by a `Runner` in
`staging`.
"""
