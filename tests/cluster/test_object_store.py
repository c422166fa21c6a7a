"""A store that is slow, has too much to do, or refuses: plain errors, no secrets, and nothing published changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.object_store import SECRET, ObjectStore

from headrace.api.facade import Headrace
from headrace.errors import EnvironmentFault
from headrace.project.doctor import examine

REFUSALS = {
    "skewed": "STORE_CLOCK_SKEWED",
    "unknown": "STORE_CREDENTIALS",
    "expired": "STORE_CREDENTIALS",
    "writes": "STORE_DENIED",
}

ALWAYS = ("overloaded", "cut")
"""What happens to some requests on a bad day, and may happen to all."""


@pytest.fixture
def revenue(hr: Headrace, ns: str) -> str:
    hr.create_stream_table(
        f"{ns}.revenue",
        f"SELECT region, sum(amount) AS total FROM {ns}.orders GROUP BY region",
        refresh_mode="DIFFERENTIAL",
    )
    hr.sql(f"INSERT INTO lake.{ns}.orders VALUES (4, 'EU', 5)")
    return f"{ns}.revenue"


@pytest.mark.parametrize("fault", ALWAYS)
def test_a_store_that_is_slow_and_fails_now_and_then_only_takes_longer(
    hr: Headrace, ns: str, revenue: str, store: ObjectStore, fault: str
) -> None:
    store.behave(**{fault: 0.1}, seconds=0.05)
    hr.refresh(revenue)
    assert store.failed()
    store.behave()
    assert hr.verify(revenue).ok


def test_a_store_that_refuses_is_told_by_what_is_to_be_done(
    hr: Headrace, ns: str, revenue: str, store: ObjectStore, folder: Path
) -> None:
    published = hr.status([revenue])[0].version
    rows = sorted(map(tuple, hr.spark.table(f"lake.{revenue}").collect()))
    for how, code in {**REFUSALS, **dict.fromkeys(ALWAYS, "STORE_UNAVAILABLE")}.items():
        store.behave(**({how: 1.0} if how in ALWAYS else {"refuses": how}))
        with pytest.raises(EnvironmentFault, match=code) as caught:
            hr.refresh(revenue)
        assert SECRET not in repr(caught.value) + str(caught.value)
        assert caught.value.hint
        (warehouse,) = [check for check in examine(folder) if check.name == "Warehouse"]
        assert warehouse.outcome.value == "fail"
        assert warehouse.remedy
        assert SECRET not in warehouse.finding
        store.behave()
        assert hr.status([revenue])[0].version == published
        assert sorted(map(tuple, hr.spark.table(f"lake.{revenue}").collect())) == rows
    hr.refresh(revenue)
    assert hr.verify(revenue).ok
    assert hr.status([revenue])[0].version == published + 1
    store.behave(refuses="bucket")
    with pytest.raises(EnvironmentFault, match="STORE_BUCKET_MISSING"):
        hr.sql(f"CREATE TABLE lake.{ns}.more (id BIGINT) USING iceberg")
    (warehouse,) = [check for check in examine(folder) if check.name == "Warehouse"]
    assert "The bucket" in warehouse.finding
