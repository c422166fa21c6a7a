"""When landings wait and when they end, with a source in which nothing was committed."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from catalog_kit.ready import ready_project
from catalog_kit.samples import lake, see

from headrace.api.facade import Headrace
from headrace.catalog import Catalog, DatabaseSource, Mirror, Publication, SourceMove, SourceStatus
from headrace.errors import EnvironmentFault, UserError
from headrace.events import Events
from headrace.landing.captured_tables import add_tables
from headrace.landing.lander import Lander, source_resource
from headrace.refresh.held_leases import holding_leases
from headrace.sources.capture import Landing

OPTIONS = {"url": "postgresql://db/shop", "tables": {"items": ["public", "items"]}}
MIRROR = Mirror(lake("shop.items"), lake("_headrace.shop_items_log"))


class Still:
    """A capture of a database in which nothing happens, and never all is read."""

    def __init__(self, _: DatabaseSource) -> None:
        self.caught_up = False

    def begin(self) -> Landing:
        return self.land({"lsn": 1})

    def land(self, position: Mapping[str, Any]) -> Landing:
        return Landing((), position, keep_position=False, transactions=0, rows=0, caught_up=self.caught_up)

    def acknowledge(self, position: Mapping[str, Any]) -> None:
        """Nothing was published."""

    def remove(self) -> None:
        """Nothing was installed."""

    def clear(self) -> None:
        """There are no files."""

    def sweep(self, age: dt.timedelta | None) -> None:
        """Nor any of former landings."""


@pytest.fixture
def hr(tmp_path: Path) -> Headrace:
    return Headrace(ready_project(tmp_path / "shop"))


@pytest.fixture
def catalog(hr: Headrace) -> Catalog:
    catalog = hr._catalog
    catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    catalog.publish(Publication(sources=(SourceMove("shop", None, {"lsn": 1}, ()),)))
    return catalog


def lander(hr: Headrace, patience: float = 0.0) -> Lander:
    return Lander(hr._catalog, hr._lazy, Events(), "file:///nowhere", 2, Still, {}, patience=patience)


def test_a_landing_ends_between_two_publications(hr: Headrace, catalog: Catalog) -> None:
    ended = threading.Event()
    ended.set()
    assert len(lander(hr).land("shop", ended)) == 1


def test_tables_are_not_added_to_what_is_held_back(hr: Headrace, catalog: Catalog) -> None:
    catalog.set_source_status("shop", SourceStatus.ACTIVE)
    see(catalog, MIRROR.name)
    catalog.close_gates([MIRROR.name])
    with pytest.raises(UserError, match="SOURCE_GATED"):
        add_tables(lander(hr), "shop", dict, ["orders"])


def test_sources_are_left_out_when_it_is_to_end(hr: Headrace, catalog: Catalog) -> None:
    ended = threading.Event()
    ended.set()
    assert hr.sources.land_for(None, until=ended) is None  # or it would say that it cannot reach the server


def test_a_verb_waits_for_who_lands_the_same_source(hr: Headrace, catalog: Catalog) -> None:
    ended, holding = threading.Event(), threading.Event()
    ended.set()

    def hold() -> None:
        with holding_leases(catalog, [source_resource("shop")]):
            holding.set()
            refused.wait(180)

    refused = threading.Event()
    other = threading.Thread(target=hold)
    other.start()
    assert holding.wait(180)
    with pytest.raises(EnvironmentFault, match="LEASE_HELD"):
        lander(hr).land("shop", ended)
    refused.set()
    assert len(lander(hr, patience=20).land("shop", ended)) == 1
    other.join()


@pytest.mark.parametrize(("ended", "patience"), [(None, 60.0), (threading.Event(), 0.0)])
def test_only_who_comes_again_has_no_patience(
    hr: Headrace, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, ended: threading.Event | None, patience: float
) -> None:
    seen: list[float] = []
    monkeypatch.setattr(Lander, "land", lambda self, *_: seen.append(self.patience) or ())
    hr.sources.land_for(None, until=ended)
    assert seen == [patience]
