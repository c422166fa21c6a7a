"""Refreshes sources in other catalogs, which may cache table metadata."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.names import LAKE, TableName
from headrace.ports import Runner


def look_anew(sources: Iterable[TableName], runner: Runner) -> None:
    """Have those that are in other catalogs be looked at anew.

    Args:
        sources: What is going to be read.
        runner: Reads it.
    """
    for source in dict.fromkeys(sources):
        if source.catalog != LAKE:
            runner.run(f"REFRESH TABLE {source.sql}")
