"""A catalog with its schema, as the migrations make it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.ready import ready_catalog

from headrace.catalog import Catalog


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ready_catalog(tmp_path / "headrace.db")


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as opened:
        yield opened
