"""One server for all, and a catalog per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit.rest_server import RestServer, rest_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """Iceberg's own REST catalog."""
    folder = tmp_path_factory.mktemp("rest")
    with rest_server(folder / "server", folder / "warehouse") as running:
        yield running
