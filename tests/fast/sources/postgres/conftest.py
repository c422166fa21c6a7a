"""One private server for all tests of this folder; every test has a database of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit.logical import LogicalServer, logical_server


@pytest.fixture(scope="session")
def server() -> Iterator[LogicalServer]:
    with logical_server() as started:
        yield started
