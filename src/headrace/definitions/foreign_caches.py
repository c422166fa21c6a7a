"""Refreshes sources in other catalogs, which may cache table metadata."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.names import LAKE, TableName
from headrace.ports import Runner


def look_anew(sources: Iterable[TableName], runner: Runner) -> None:
    """Drop Spark's cached metadata of tables in other catalogs.

    Args:
        sources: What is going to be read.
        runner: Reads it.
    """
    for source in dict.fromkeys(sources):
        if source.catalog != LAKE:
            runner.run(f"REFRESH TABLE {source.sql}")
