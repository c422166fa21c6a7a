"""One server of each kind for all, and a catalog per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit.nessie_server import Nessie, nessie_server
from kit.object_store import object_store
from kit.rest_server import RestServer, rest_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """Iceberg's own REST catalog."""
    folder = tmp_path_factory.mktemp("rest")
    with rest_server(folder / "server", folder / "warehouse") as running:
        yield running


@pytest.fixture(scope="session")
def nessie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nessie]:
    """Nessie, with its tables in a simulated S3."""
    folder = tmp_path_factory.mktemp("nessie")
    with object_store(folder) as store, nessie_server(folder, store) as running:
        yield running
