"""One Spark session and one project for all tests of a process; every test has a namespace of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from kit.cluster_project import cluster_projects
from kit.connect_server import connect_server, remote
from kit.logical import LogicalServer, logical_server
from kit.long_tests import LONG, begin_with
from kit.spark_jobs import PROCESS, UI
from kit.sparks import FOR_A_TIER, WITHOUT_CODE

import headrace
from headrace.api.facade import Headrace
from headrace.config import Settings, default_settings

_numbers = itertools.count(1)

OVER_CONNECT = bool(os.environ.get("HEADRACE_TEST_CONNECT"))
"""Whether this process speaks to a server instead of having a JVM of its own."""

ON_A_CLUSTER = bool(os.environ.get("HEADRACE_TEST_CLUSTER"))
"""Whether executors are processes of their own, the lake is in an object store and the catalog in PostgreSQL."""

LONGEST = (
    "test_maintain.py",  # looks at all that is there, which is least in the beginning
    "test_tpch22.py",
    "test_operators.py",
    "test_deployment_readers.py",
    "test_bank_transfers.py",
    "test_ties.py",
    "test_moving_filters.py",
    "test_shared_semijoins.py",
)
"""Files with long tests."""

COMPILED = frozenset(
    {
        "test_broadcasts.py",
        "test_explaining.py",
        "test_functions.py",
        "test_keys.py",
        "test_moving_filters.py",
        "test_operators.py",
        "test_random_histories.py",
        "test_sessions.py",
        "test_shared_semijoins.py",
        "test_suites.py",
        "test_ties.py",
        "test_time_windows.py",
        "test_timeouts.py",
        "test_tpch22.py",
    }
)
"""Files about operators, functions and plans, for which Spark writes and compiles code as it does for users. Other
files are about what is committed, published, deployed, landed and delivered: `make test` has Spark interpret their
queries, which takes a fifth less time; clusters and the long tests have it compile them all."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin_with(LONGEST, items)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """The project; under `make test-connect` its Spark is a Connect server's, under `make test-cluster` a cluster."""
    root = tmp_path_factory.mktemp("project")
    hadoop = root / "hadoop"
    options = {
        "spark.sql.catalog.other": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.other.type": "hadoop",
        "spark.sql.catalog.other.warehouse": str(hadoop),
        "spark.driver.extraJavaOptions": FOR_A_TIER,
    }
    if ON_A_CLUSTER:
        with cluster_projects(root, request.getfixturevalue("postgres")) as projects:
            yield projects.settings(options)
        return
    settings = replace(default_settings(root), spark_master="local[2]", spark_options=options)
    if not OVER_CONNECT:
        yield settings
        return
    with connect_server(settings, root / "connect.log", {"spark.ui.enabled": "true"}) as server:
        os.environ.update({UI: server.ui, PROCESS: str(server.process.pid)})
        yield remote(settings, server)


@pytest.fixture(scope="session")
def over_connect() -> bool:
    """Whether Spark is a Connect server's, which keeps all rows in Spark's cache and counts fewer."""
    return OVER_CONNECT


@pytest.fixture(scope="session")
def shared(project: Settings) -> Iterator[Headrace]:
    with headrace.open(project) as hr:
        yield hr


@contextmanager
def without_code(hr: Headrace) -> Iterator[None]:
    """Have Spark interpret queries, in all sessions, those included that are made meanwhile."""
    for session in (hr.spark, *hr._lazy.runner().derived()):
        for name, value in WITHOUT_CODE.items():
            session.conf.set(name, value)
    try:
        yield
    finally:
        for session in (hr.spark, *hr._lazy.runner().derived()):
            for name in WITHOUT_CODE:
                session.conf.unset(name)


@pytest.fixture
def interpreted(shared: Headrace, request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.name not in COMPILED and not (LONG or ON_A_CLUSTER or OVER_CONNECT):
        with without_code(shared):
            yield
    else:
        yield


@pytest.fixture
def ns(shared: Headrace, interpreted: None) -> Iterator[str]:
    name = f"t{next(_numbers)}"
    shared.spark.sql(f"CREATE NAMESPACE lake.{name}")
    shared.spark.sql("USE lake")
    yield name
    for table in [t.name for t in shared.status() if t.name.startswith(f"{name}.")]:
        shared.drop_stream_table(table, if_exists=True, cascade=True)


@pytest.fixture
def hr(shared: Headrace, ns: str) -> Headrace:
    return shared


@pytest.fixture(scope="session")
def server() -> Iterator[LogicalServer]:
    """A private PostgreSQL server, which no test stops."""
    with logical_server() as started:
        yield started


@pytest.fixture
def url(server: LogicalServer, hr: Headrace) -> Iterator[str]:
    """An empty database; what is captured from it is dropped afterwards."""
    yield server.fresh()
    for table in [t.name for t in hr.status()]:
        hr.drop_stream_table(table, if_exists=True, cascade=True)
    for source in hr.sources.list():
        hr.sources.drop(source.name)


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection]:
    """Somebody who writes to it."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
