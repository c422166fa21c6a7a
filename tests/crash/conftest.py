"""What the tests of killed processes share."""

from __future__ import annotations

import pytest

QUICK = "spark.sql.shuffle.partitions=1 spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"
"""Such a process lives too short for code to be worth optimising, and compiling it takes time from others."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the Sparks of processes that a test starts be made for a short life."""
    monkeypatch.setenv("HEADRACE_SPARK_OPTIONS", QUICK)
