from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.pipelines import Lake

from headrace.catalog import Catalog


@pytest.fixture
def lake_(tmp_path: Path) -> Lake:
    url = f"sqlite:///{tmp_path / 'headrace.db'}"
    Catalog.open(url).close()
    return Lake(url, tmp_path)


@pytest.fixture
def catalog(lake_: Lake) -> Iterator[Catalog]:
    with Catalog.open(lake_.url) as opened:
        yield opened
