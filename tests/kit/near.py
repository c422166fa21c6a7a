"""Has what is near a change collected, within the spans of its keys, also of sources as small as those of tests."""

from __future__ import annotations

import pytest

from headrace.delta import common_near, nearby
from headrace.engine import collecting


def small_sources_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here to the end of a test, no source is too small."""
    for module in (nearby, common_near, collecting):
        monkeypatch.setattr(module, "WORTH_ROWS", 1)
    monkeypatch.setattr(collecting, "WORTH_ASKING", 1)
