"""What the tests of killed processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit.long_tests import begin_with
from kit.sparks import SHORT_LIVED_OPTIONS, as_text
from kit.surviving_spark import SurvivingSpark, surviving_spark

from headrace.project.new_project import init_project

LONGEST = (
    "test_chaos.py",
    "test_deploy_killed.py",
    "test_cycle_killed.py",
    "test_spark_killed.py",
    "test_landing_killed.py",
    "test_refresh_killed.py",
    "test_catalog_outage.py",
)
"""Files with long tests."""

QUICK = as_text(SHORT_LIVED_OPTIONS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin_with(LONGEST, items)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the Sparks of processes that a test starts be made for a short life."""
    monkeypatch.setenv("HEADRACE_SPARK_OPTIONS", QUICK)


@pytest.fixture(scope="session")
def surviving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SurvivingSpark]:
    """A JVM for all processes of this worker that are killed one after the other."""
    project = tmp_path_factory.mktemp("surviving") / "p"
    init_project(project)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HEADRACE_SPARK_OPTIONS", QUICK)
        with surviving_spark(project) as spark:
            yield spark
