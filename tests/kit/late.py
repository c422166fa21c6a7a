"""The Java of a process that was killed, or lost its lease, commits once more while its heir writes."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.spark.runner import SparkRunner


def commits_late(monkeypatch: pytest.MonkeyPatch, written: str, statement: str) -> list[Any]:
    """Run a statement after the first one that names a table; Iceberg appends to whatever there is when it commits.

    Args:
        monkeypatch: Undoes it.
        written: The table, as statements name it.
        statement: What is committed late.

    Returns:
        What came of it; empty until it has run.
    """
    run, late = SparkRunner.run, list[Any]()

    def commit(runner: SparkRunner, sql: str) -> list[Any]:
        found = run(runner, sql)
        if written in sql and not late:
            late.append(run(runner, statement))
        return found

    monkeypatch.setattr(SparkRunner, "run", commit)
    return late
