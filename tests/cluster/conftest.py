"""One cluster, one object store, one PostgreSQL and one session for all tests; each has a namespace of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from catalog_kit.databases import Postgres
from catalog_kit.proxy import BreakingProxy
from kit.cluster_project import ENVIRONMENT, ClusterProjects
from kit.object_store import ObjectStore, object_store
from kit.spark_cluster import SparkCluster, spark_cluster

import headrace
from headrace import config
from headrace.api.facade import Headrace

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def projects(
    tmp_path_factory: pytest.TempPathFactory, cluster: SparkCluster, store: ObjectStore, postgres: Postgres
) -> Iterator[ClusterProjects]:
    proxy = BreakingProxy(postgres.socket_folder)  # Spark's JDBC driver knows no sockets of Unix
    yield ClusterProjects(tmp_path_factory.mktemp("projects"), cluster, store, proxy.port)
    proxy.close()


@pytest.fixture(scope="session")
def folder(projects: ClusterProjects, postgres: Postgres, store: ObjectStore) -> Path:
    """The project that most tests are about."""
    store.make("lake")
    return projects.write(postgres.fresh(), bucket="lake")


@pytest.fixture(scope="session")
def hr(folder: Path) -> Iterator[Headrace]:
    os.environ.update(ENVIRONMENT)
    with headrace.open(replace(config.load(folder), allow_cycles=True)) as opened:
        yield opened


@pytest.fixture
def ns(hr: Headrace, store: ObjectStore) -> Iterator[str]:
    """A namespace with a table of orders."""
    name = f"t{next(_numbers)}"
    hr.sql(f"CREATE NAMESPACE lake.{name}")
    hr.sql(f"CREATE TABLE lake.{name}.orders (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg")
    hr.sql(f"INSERT INTO lake.{name}.orders VALUES (1, 'EU', 10), (2, 'US', 20), (3, 'EU', 30)")
    yield name
    store.behave()
    for table in [t.name for t in hr.status() if t.name.startswith(f"{name}.")]:
        hr.drop_stream_table(table, if_exists=True, cascade=True)
