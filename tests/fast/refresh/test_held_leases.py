"""Leases are given back, also when the catalog does not answer just then."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from headrace.catalog import Catalog
from headrace.errors import EnvironmentFault
from headrace.refresh.held_leases import holding_leases


def test_leases_are_given_back_as_soon_as_the_catalog_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.refresh.held_leases.RELEASE_SECONDS", 0.05)
    left, release = [3], Catalog.release

    def sometimes(self: Catalog, leases: object) -> None:
        if left[0]:
            left[0] -= 1
            raise EnvironmentFault("CATALOG_UNREACHABLE", "It is gone.", retryable=True)
        release(self, leases)  # type: ignore[arg-type]

    monkeypatch.setattr(Catalog, "release", sometimes)
    with Catalog.open(f"sqlite:///{tmp_path / 'headrace.db'}") as catalog:
        with holding_leases(catalog, ["table:b"]):
            pass
        assert [lease.owner is not None for lease in catalog.leases()] == [True]
        with holding_leases(catalog, ["table:b"], patience=10):
            assert left == [0]
        end = time.monotonic() + 10
        while catalog.leases()[0].owner is not None:
            assert time.monotonic() < end
            time.sleep(0.01)
