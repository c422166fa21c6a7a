"""Memory is given back where the system's allocator can be told to, and nothing fails where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from headrace.sources.postgres.spool import release_memory


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    release_memory._trimmer.cache_clear()
    yield
    release_memory._trimmer.cache_clear()


def test_the_allocator_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace(malloc_trim=told.append))
    release_memory.give_back()
    assert told == [0]


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace())
    release_memory.give_back()
