"""One Headrace project with one Spark for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.headrace.projects import close_projects
from jaffle import EXAMPLE, Shop

from headrace.project.new_project import init_project


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != "test_build.py")  # its first test looks at the first build


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    base = tmp_path_factory.mktemp("dbt")
    init_project(base / "shop")
    shutil.copytree(EXAMPLE, base / "jaffle", ignore=shutil.ignore_patterns("target", "logs"))
    settings = base / "jaffle" / "dbt_project.yml"
    differential = (
        "      +materialized: stream_table\n      +refresh_mode: DIFFERENTIAL\n"  # AUTO goes by how long it took
    )
    settings.write_text(settings.read_text().replace("      +materialized: stream_table\n", differential))
    monkey = pytest.MonkeyPatch()
    monkey.setenv("HEADRACE_PROJECT", str(base / "shop"))
    monkey.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    made = Shop(base / "shop", base / "jaffle")
    yield made
    close_projects()
    monkey.undo()


@pytest.fixture
def built(shop: Shop) -> Shop:
    """The example, built and up to date."""
    if not any(info.name == "jaffle.customers" for info in shop.hr.status()):
        assert shop.dbt("build").success
    return shop


@pytest.fixture
def model(built: Shop) -> Iterator[Any]:
    """Writes a model, which is gone afterwards, with what it made."""
    written: list[Path] = []

    def write(name: str, text: str) -> Path:
        written.append(built.model(name, text))
        return written[-1]

    yield write
    for path in written:
        path.unlink(missing_ok=True)
        name = f"jaffle.{path.stem}"
        if name in [info.name for info in built.hr.status()]:
            built.hr.drop_stream_table(name, cascade=True)
