"""One private server for all tests of this folder; every test has a database of its own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from kit.logical import LogicalServer, logical_server

OWN_SERVERS = "test_cluster_copies.py"
"""Begun first, and so by one process: what is left for the end is shared out, and each process starts servers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != OWN_SERVERS)


@pytest.fixture(scope="session")
def server() -> Iterator[LogicalServer]:
    with logical_server() as started:
        yield started


@pytest.fixture
def url(server: LogicalServer) -> str:
    """An empty database."""
    return server.fresh()


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection]:
    """Somebody who writes to it."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
