"""What the tests of killed processes share."""

from __future__ import annotations

import pytest
from kit.sparks import SHORT_LIVED

QUICK = f"spark.sql.shuffle.partitions=1 spark.driver.extraJavaOptions={SHORT_LIVED}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the Sparks of processes that a test starts be made for a short life."""
    monkeypatch.setenv("HEADRACE_SPARK_OPTIONS", QUICK)
