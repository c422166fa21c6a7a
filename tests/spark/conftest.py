"""One Spark session per pytest process: starting one takes seconds, and a JVM holds only one."""

from __future__ import annotations

import dataclasses
import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.long_tests import begin_with
from kit.sparks import FOR_A_TIER

from headrace.config import Settings, default_settings
from headrace.lake.metadata import TableMeta, read_metadata
from headrace.names import TableName, quote
from headrace.spark.runner import SparkRunner
from headrace.spark.session import open_session

LONGEST = ("test_reader_judged.py",)
"""Files with long tests."""

FOREIGN = "hadoop_cat"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin_with(LONGEST, items)


@dataclass(frozen=True)
class Lake:
    """A running lake: the session's runner and direct access to its catalog file."""

    settings: Settings
    runner: SparkRunner

    def meta(self, table: TableName) -> TableMeta:
        query = (
            "SELECT metadata_location FROM iceberg_tables WHERE catalog_name=? AND table_namespace=? AND table_name=?"
        )
        path = self.settings.catalog_url.removeprefix("sqlite:///")
        with sqlite3.connect(path) as connection:
            row = connection.execute(query, (table.catalog, table.namespace_text, table.table)).fetchone()
        return read_metadata(row[0])

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.runner.run(sql)]


def make_settings(root: Path) -> Settings:
    """Settings of the test session; jars come from HEADRACE_JARS_DIR, or are fetched."""
    options = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": FOR_A_TIER,
        "spark.driver.maxResultSize": "64m",  # what does not fit is met by a test
        f"spark.sql.catalog.{FOREIGN}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{FOREIGN}.type": "hadoop",
        f"spark.sql.catalog.{FOREIGN}.warehouse": str(root / "foreign"),
        f"spark.sql.catalog.{FOREIGN}.cache-enabled": "false",
    }
    return dataclasses.replace(
        default_settings(root),
        jars_dir=os.environ.get("HEADRACE_JARS_DIR"),
        spark_master="local[2]",
        spark_options=options,
    )


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    settings = make_settings(tmp_path_factory.mktemp("project"))
    session = open_session(settings)
    yield Lake(settings, SparkRunner(session))
    session.stop()


@pytest.fixture(scope="session")
def runner(lake: Lake) -> SparkRunner:
    return lake.runner


_numbers = itertools.count()


@pytest.fixture
def fresh(lake: Lake) -> Callable[..., TableName]:
    """Makes a namespace (once) and a name nobody used."""

    def make(catalog: str = "lake", stem: str = "t") -> TableName:
        lake.runner.run(f"CREATE NAMESPACE IF NOT EXISTS {quote(catalog)}.shop")
        return TableName(catalog, ("shop",), f"{stem}{next(_numbers)}")

    return make
