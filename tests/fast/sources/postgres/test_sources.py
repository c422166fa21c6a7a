"""Sources as users have them, as far as no Spark is needed: what becomes of those that fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.house import House
from kit.logical import LogicalServer

from headrace.api.facade import Headrace
from headrace.catalog import Mirror, Publication, SourceMove, SourceStatus
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Notice, RefreshFailed
from headrace.names import TableName
from headrace.sources.postgres.postgres_kind import KIND
from headrace.sources.postgres.setup.open_capture import options_of


@pytest.fixture
def house(server: LogicalServer, tmp_path: Path) -> House:
    return House(server, tmp_path)


def test_a_source_that_cannot_be_created_leaves_nothing(house: House) -> None:
    seen: list[int] = []
    with pytest.raises(EnvironmentFault, match="SPARK_LOST"):
        house.sources(lambda: seen.append(house.slots())).create("shop", house.url, ["orders"])
    assert (seen, house.slots(), house.sources().list()) == ([1], 0, ())


def test_a_slot_that_cannot_be_removed_is_known(house: House) -> None:
    with pytest.raises(EnvironmentFault, match="SPARK_LOST"):
        house.sources(lambda: house.reachable(False)).create("shop", house.url, ["orders"])
    (left,) = house.sources().list()
    assert (left.name, left.status, house.slots()) == ("shop", SourceStatus.STOPPED, 1)
    assert any(isinstance(e, Notice) and "headrace source drop shop" in e.message for e in house.told)
    with pytest.raises(HeadraceError, match="SOURCE_NOT_LOADED"):
        house.sources().land("shop")
    house.reachable(True)
    house.sources().drop("shop")
    assert (house.sources().list(), house.slots()) == ((), 0)


def test_a_failure_is_told_once(house: House) -> None:
    options = options_of("shop", house.url, {"orders": ("public", "orders")})
    name = TableName("lake", ("shop",), "orders")
    house.catalog.create_source("shop", KIND, options, [Mirror(name, name)])
    house.catalog.publish(Publication(sources=(SourceMove("shop", None, {"system": "1", "timeline": 1}, (), True),)))
    hr = Headrace(house.settings)
    hr.events.subscribe(house.told.append)

    def told() -> list[str]:
        with pytest.raises(HeadraceError):
            hr.sources.land("shop")
        return [e.code for e in house.told if isinstance(e, RefreshFailed)]

    house.reachable(False)
    assert told() == told() == ["SOURCE_UNREACHABLE"]
    house.reachable(True)
    assert told() == ["SOURCE_UNREACHABLE", "SOURCE_CHANGED"]
    hr.close()


def test_a_source_whose_variable_is_not_set_can_be_dropped(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_TEST_NOT_SET", house.url)
    tables = {"orders": ("public", "orders"), "items": ("public", "items")}
    options = options_of("shop", "env:HEADRACE_TEST_NOT_SET", tables)
    names = [TableName("lake", ("shop",), table) for table in tables]
    house.catalog.create_source("shop", KIND, options, [Mirror(n, n) for n in names])
    house.catalog.publish(Publication(sources=(SourceMove("shop", None, {"system": "1", "timeline": 1}, (), True),)))
    monkeypatch.delenv("HEADRACE_TEST_NOT_SET")
    house.sources().drop_tables("shop", ["items"])
    assert any(isinstance(e, Notice) and "stay in the publication" in e.message for e in house.told)
    with pytest.raises(UserError, match="SOURCE_URL_INVALID"):
        house.sources().drop("shop")
    house.sources().drop("shop", force=True)
    assert house.sources().list() == ()
