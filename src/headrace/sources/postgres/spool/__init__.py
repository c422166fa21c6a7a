"""Batches as Parquet files of texts, and the SQL that makes changes of them.

In come net changes or copied rows. Out go files, and the relation a mirror's change is read from.
"""
