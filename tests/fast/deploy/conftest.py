from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.ready import ready_catalog

from headrace.catalog import Catalog


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timed(tmp_path: Path, clock: ManualClock) -> Iterator[Catalog]:
    """A catalog whose time moves only when a test says so."""
    with Catalog.open(ready_catalog(tmp_path / "headrace.db"), clock=clock) as opened:
        yield opened
