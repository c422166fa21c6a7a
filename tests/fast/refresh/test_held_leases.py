"""Leases are given back, also when the catalog does not answer, and those of busy tables are taken in turn."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from catalog_kit.ready import ready_catalog

from headrace.catalog import Catalog
from headrace.errors import EnvironmentFault
from headrace.refresh.held_leases import holding_leases, holding_leases_in_turn


def test_leases_are_given_back_as_soon_as_the_catalog_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.refresh.held_leases.RELEASE_SECONDS", 0.05)
    left, release = [3], Catalog.release

    def sometimes(self: Catalog, leases: object) -> None:
        if left[0]:
            left[0] -= 1
            raise EnvironmentFault("CATALOG_UNREACHABLE", "It is gone.", retryable=True)
        release(self, leases)  # type: ignore[arg-type]

    monkeypatch.setattr(Catalog, "release", sometimes)
    with Catalog.open(ready_catalog(tmp_path / "headrace.db")) as catalog:
        with holding_leases(catalog, ["table:b"]):
            pass
        assert [lease.owner is not None for lease in catalog.leases()] == [True]
        with holding_leases(catalog, ["table:b"], patience=10):
            assert left == [0]
        end = time.monotonic() + 10
        while catalog.leases()[0].owner is not None:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_of_busy_tables_leases_are_taken_one_after_the_other(tmp_path: Path) -> None:
    all_ = ["table:a", "table:b", "table:c"]
    with Catalog.open(ready_catalog(tmp_path / "headrace.db")) as catalog:
        taken: list[str] = []

        def take() -> None:
            with holding_leases_in_turn(catalog, all_, patience=60) as leases:
                taken.extend(lease.resource for lease in leases())

        waits = threading.Thread(target=take)
        with holding_leases(catalog, ["table:b"]):
            waits.start()
            end = time.monotonic() + 60
            while not any(lease.resource == "table:a" and lease.owner for lease in catalog.leases()):
                assert time.monotonic() < end
                time.sleep(0.01)
            with pytest.raises(EnvironmentFault, match="LEASE_HELD"), holding_leases(catalog, ["table:a"]):
                pass
            assert taken == []
        waits.join(60)
        assert taken == all_
        assert [lease.owner for lease in catalog.leases()] == [None] * 3
        with holding_leases(catalog, ["table:c"]):
            with pytest.raises(EnvironmentFault, match="LEASE_HELD"), holding_leases_in_turn(catalog, all_, patience=0):
                pass
            assert [lease.resource for lease in catalog.leases() if lease.owner] == ["table:c"]
