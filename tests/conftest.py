"""What several tiers need."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from catalog_kit.databases import Postgres, postgres_server
from hypothesis import settings

# What `make test` says of a commit must hold tomorrow: its random cases are the same each time, and change with the
# generators only. Cases never seen before are what `make test-long` and HEADRACE_EXAMPLES look at.
settings.register_profile("repeatable", derandomize=True, deadline=None)
if not os.environ.keys() & {"HEADRACE_TEST_LONG", "HEADRACE_EXAMPLES"}:
    settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL, started once per session and only when a test asks for it."""
    with postgres_server() as server:
        yield server
