"""Has semi-joins with changes shared, and read by key ranges, also of sources as small as those of tests."""

from __future__ import annotations

import pytest

from headrace.optimizer.common_subexpressions import read_once
from headrace.physical import shared_semijoins


def small_sources_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here to the end of a test, no source is too small."""
    for module in (read_once, shared_semijoins):
        monkeypatch.setattr(module, "WORTH_ROWS", 1)
    monkeypatch.setattr(shared_semijoins, "WORTH_ASKING", 1)
