from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.ready import ready_catalog
from kit.pipelines import Lake

from headrace.catalog import Catalog


@pytest.fixture
def lake_(tmp_path: Path) -> Lake:
    return Lake(ready_catalog(tmp_path / "headrace.db"), tmp_path)


@pytest.fixture
def catalog(lake_: Lake) -> Iterator[Catalog]:
    with Catalog.open(lake_.url) as opened:
        yield opened
