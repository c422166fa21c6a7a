"""What several tiers need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from catalog_kit.databases import Postgres, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL, started once per session and only when a test asks for it."""
    with postgres_server() as server:
        yield server
