"""Databases to run the contract on: a SQLite file, or a database of a real PostgreSQL server."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from kit.clusters import started_cluster

from headrace.catalog import Catalog
from headrace.catalog.schema import definitions, iceberg_metadata, metadata
from headrace.demo.server import patiently

BACKENDS = ("sqlite", "postgresql")


class Postgres:
    """A server of its own, started once per test session; one prepared database that tests empty and reuse."""

    def __init__(self, folder: Path) -> None:
        # a JVM that outlasts killed drivers keeps the connections of all of them
        self._server = started_cluster(folder, {"max_connections": "500"})
        self.socket_folder = self._server.get_uri().rpartition("host=")[2]
        self._numbers = itertools.count(1)
        self.prepared = self.fresh()
        Catalog.open(self.prepared).close()

    @property
    def prepared_name(self) -> str:
        """The prepared database's name."""
        return self.prepared.partition("?")[0].rpartition("/")[2]

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.socket_folder}"

    def fresh(self) -> str:
        """A new, empty database."""
        name = f"headrace_{next(self._numbers)}"
        self._admin(f"CREATE DATABASE {name}")
        return self.url(name)

    def copy(self, url: str) -> str:
        """A copy of a database that nobody is connected to."""
        name = f"headrace_{next(self._numbers)}"
        self._admin(f"CREATE DATABASE {name} TEMPLATE {url.partition('?')[0].rpartition('/')[2]}")
        return self.url(name)

    def stop(self) -> None:
        self._server.cleanup()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """The server is stopped while the block lasts."""
        self._server.stop()
        try:
            yield
        finally:
            patiently(self._server.ensure_postgres_running)

    def _admin(self, statement: str) -> None:
        with sql(self.url("postgres"), autocommit=True) as connection:
            connection.exec_driver_sql(statement)


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    # Not pytest's tmp_path: the server runs as a user of its own (never root), who may not look in there.
    folder = Path(tempfile.mkdtemp(prefix="hr-pg-"))
    folder.chmod(0o755)
    server = Postgres(folder / "data")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def sql(url: str, *, autocommit: bool = False) -> Iterator[sa.Connection]:
    """A connection of somebody who is not Headrace; commits at the end."""
    with _engine(url, autocommit).begin() as connection:
        yield connection


@cache
def _engine(url: str, autocommit: bool) -> sa.Engine:
    options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
    if url.startswith("sqlite"):
        options["connect_args"] = {"timeout": 60}  # others take turns at writing, and SQLite's are not fair
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool, **options)


def break_a_connection(url: str) -> None:
    """Break a connection to a PostgreSQL database, of whomever."""
    with sql(url, autocommit=True) as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database() ORDER BY random() LIMIT 1"
        )


def empty(url: str) -> None:
    """Take every row out of a catalog but the one that is always there, and let numbering begin again."""
    known = [t for t in (*metadata.sorted_tables, *iceberg_metadata.sorted_tables) if t is not definitions]
    tables = [f"DELETE FROM {t.name}" for t in reversed(known)]
    with sql(url) as connection:
        if connection.dialect.name == "postgresql":
            # TRUNCATE makes new files for all tables and their indexes, which takes five times as long
            found = connection.exec_driver_sql("SELECT quote_ident(sequencename) FROM pg_sequences").scalars()
            connection.exec_driver_sql("; ".join([*tables, *(f"ALTER SEQUENCE {name} RESTART" for name in found)]))
            return
        for statement in (*tables, "DELETE FROM sqlite_sequence"):
            connection.exec_driver_sql(statement)
