"""A project whose Spark is a cluster and whose lake is an object store, as whoever deploys one writes it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from catalog_kit.databases import Postgres
from catalog_kit.proxy import BreakingProxy

from headrace import config
from headrace.config import Settings
from kit.object_store import SECRET, ObjectStore, object_store
from kit.spark_cluster import SparkCluster, spark_cluster
from kit.sparks import SHORT_LIVED

ENVIRONMENT = {"TEST_S3_SECRET": SECRET, "SPARK_LOCAL_IP": "127.0.0.1"}

_OPTIONS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
}


@dataclass
class ClusterProjects:
    """Writes projects, and runs commands in them.

    Args:
        folder: Where they are.
        cluster: Their Spark.
        store: Their object store.
        port: Where their PostgreSQL is reached.
        postgres: That server.
    """

    folder: Path
    cluster: SparkCluster
    store: ObjectStore
    port: int
    postgres: Postgres
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def write(
        self,
        database: str,
        *,
        bucket: str,
        options: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the settings of a project, and return its folder.

        Args:
            database: The catalog's database, by its socket.
            bucket: Where the warehouse is.
            options: Further options of Spark.
        """
        folder = self.folder / f"project-{next(self._numbers)}"
        folder.mkdir()
        name = database.partition("?")[0].rpartition("/")[2]
        spark = "".join(f'"{name}" = {json.dumps(value)}\n' for name, value in {**_OPTIONS, **(options or {})}.items())
        (folder / "headrace.toml").write_text(
            f'[headrace]\ncatalog_url = "postgresql://postgres@127.0.0.1:{self.port}/{name}"\nwarehouse = "s3://{bucket}/{folder.name}"\n'
            f'spark_master = "{self.cluster.url}"\n[spark]\n{spark}{self.store.settings()}'
        )
        return folder

    def settings(self, options: Mapping[str, str]) -> Settings:
        """Write a project with a bucket and a catalog of its own, and return what it is opened with."""
        bucket = f"lake-{next(self._numbers)}"
        self.store.make(bucket)
        os.environ.update(ENVIRONMENT)
        return config.load(self.write(self.postgres.fresh(), bucket=bucket, options=options))


@contextmanager
def cluster_projects(folder: Path, postgres: Postgres) -> Iterator[ClusterProjects]:
    """Start a cluster, an object store and a way to PostgreSQL by TCP; end them afterwards."""
    folders = [folder / name for name in ("store", "cluster", "projects")]
    for each in folders:
        each.mkdir()
    proxy = BreakingProxy(postgres.socket_folder)  # Spark's JDBC driver knows no sockets of Unix
    with object_store(folders[0]) as store, spark_cluster(folders[1]) as cluster, closing(proxy):
        yield ClusterProjects(folders[2], cluster, store, proxy.port, postgres)


def environment() -> dict[str, str]:
    """Return this process's environment for another one that works in such a project."""
    return {**os.environ, **ENVIRONMENT}


def command(folder: Path, *arguments: str, seconds: float = 180) -> subprocess.CompletedProcess[str]:
    """Run a command of `headrace` in a project, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
