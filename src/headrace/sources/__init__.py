"""Sources of rows: lakehouse tables and captured databases.

A table answers four questions: its head, its changes, its rows at a version, its schema; out go SQL expressions that
read them. A database is of a kind, which `registry` lists and `source_kind` describes; out go batches that are landed
(`capture`). Everything above asks the registry, and no kind by name.
"""
