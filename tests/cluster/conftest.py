"""One cluster, one object store, one PostgreSQL and one session for all tests; each has a namespace of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from catalog_kit.databases import Postgres
from kit.cluster_project import ENVIRONMENT, ClusterProjects, cluster_projects
from kit.object_store import ObjectStore
from kit.spark_cluster import SparkCluster

import headrace
from headrace import config
from headrace.api.facade import Headrace

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[ClusterProjects]:
    with cluster_projects(tmp_path_factory.mktemp("cluster"), postgres) as running:
        yield running


@pytest.fixture(scope="session")
def store(projects: ClusterProjects) -> ObjectStore:
    return projects.store


@pytest.fixture(scope="session")
def cluster(projects: ClusterProjects) -> SparkCluster:
    return projects.cluster


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
