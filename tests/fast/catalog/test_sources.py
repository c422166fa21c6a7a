"""Database sources and their mirrors in the catalog."""

from __future__ import annotations

import pytest
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import REVENUE, create, lake

from headrace.catalog import Catalog, Mirror, NewVersion, Publication, SourceMove, SourceStatus, Swap
from headrace.errors import EnvironmentFault, UserError

ITEMS, LOG = lake("shop.items"), lake("_headrace.shop_items_log")
MIRROR = Mirror(ITEMS, LOG)
OPTIONS = {"url": "postgresql://db/shop", "tables": {"items": ["public", "items"]}}


def landed(
    catalog: Catalog, iceberg: Iceberg, version: int, expected: dict[str, int] | None, *, begins: bool = False
) -> None:
    for name in (ITEMS, LOG):
        iceberg.commit(name, f"{name.table}-{version}")
    move = SourceMove(
        "shop", expected, {"lsn": version}, (Mirror(ITEMS, LOG, {"oid": version}),), expected is None or begins
    )
    before = {n: p.metadata_location for n, p in catalog.pointers(names=[ITEMS, LOG]).items()}
    swaps = tuple(Swap(n, before.get(n)) for n in (ITEMS, LOG))
    catalog.publish(Publication(swaps=swaps, versions=(NewVersion(ITEMS, version, 7, 3),), sources=(move,)))


def source(catalog: Catalog) -> object:
    with catalog.reading() as reader:
        return reader.source("shop")


def test_a_source_lives(catalog: Catalog, iceberg: Iceberg) -> None:
    made = catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    assert (made.status, made.position, made.mirrors) == (SourceStatus.NEW, None, (MIRROR,))
    with pytest.raises(UserError, match="SOURCE_EXISTS"):
        catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    landed(catalog, iceberg, 0, None)
    landed(catalog, iceberg, 1, {"lsn": 0})
    found = source(catalog)
    assert (found.status, found.position, found.mirrors[0].details) == (SourceStatus.ACTIVE, {"lsn": 1}, {"oid": 1})
    assert [v.version for v in catalog.versions(ITEMS)] == [0, 1]
    catalog.set_source_status("shop", SourceStatus.STOPPED, "SLOT_LOST", "It is lost.")
    assert source(catalog).stopped_code == "SLOT_LOST"
    landed(catalog, iceberg, 2, {"lsn": 1}, begins=True)
    assert (source(catalog).status, source(catalog).stopped_reason) == (SourceStatus.ACTIVE, None)


def test_a_pause_is_no_way_round_a_stop(catalog: Catalog, iceberg: Iceberg) -> None:
    catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    with pytest.raises(UserError, match="SOURCE_NOT_ACTIVE"):
        catalog.pause_source("shop")
    landed(catalog, iceberg, 0, None)
    with pytest.raises(UserError, match="SOURCE_NOT_PAUSED"):
        catalog.resume_source("shop")
    catalog.pause_source("shop")
    assert source(catalog).status is SourceStatus.PAUSED
    catalog.resume_source("shop")
    assert source(catalog).status is SourceStatus.ACTIVE
    catalog.set_source_status("shop", SourceStatus.STOPPED, "SLOT_LOST", "It is lost.")
    with pytest.raises(UserError, match="SOURCE_NOT_ACTIVE"):
        catalog.pause_source("shop")
    assert source(catalog).stopped_code == "SLOT_LOST"


def test_a_landing_under_way_ends_no_pause_and_no_stop(catalog: Catalog, iceberg: Iceberg) -> None:
    catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    landed(catalog, iceberg, 0, None)
    catalog.pause_source("shop")
    landed(catalog, iceberg, 1, {"lsn": 0})
    assert (source(catalog).status, source(catalog).position) == (SourceStatus.PAUSED, {"lsn": 1})
    catalog.set_source_status("shop", SourceStatus.STOPPED, "SLOT_LOST", "It is lost.")
    landed(catalog, iceberg, 2, {"lsn": 1})
    assert (source(catalog).status, source(catalog).stopped_code) == (SourceStatus.STOPPED, "SLOT_LOST")


def test_a_landing_that_was_overtaken_publishes_nothing(catalog: Catalog, iceberg: Iceberg) -> None:
    catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    landed(catalog, iceberg, 0, None)
    with pytest.raises(EnvironmentFault, match="LANDING_OVERTAKEN"):
        landed(catalog, iceberg, 1, {"lsn": 99})
    assert source(catalog).position == {"lsn": 0}
    assert [v.version for v in catalog.versions(ITEMS)] == [0]
    assert iceberg.pointer(ITEMS) == "items-0"


@pytest.mark.parametrize("read", [False, True])
def test_a_dropped_source_leaves_only_what_is_read(catalog: Catalog, iceberg: Iceberg, read: bool) -> None:
    catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    landed(catalog, iceberg, 0, None)
    if read:
        create(catalog, REVENUE, ITEMS)
    catalog.publish(Publication(source_drops=("shop",), deletes=(ITEMS, LOG)))
    with pytest.raises(UserError, match="SOURCE_UNKNOWN"):
        source(catalog)
    assert (ITEMS in {r.name for r in catalog.relations()}) is read
    assert catalog.pointers(names=[ITEMS, LOG]) == {}
    assert catalog.foreign_writes() == ()
