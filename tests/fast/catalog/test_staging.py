"""Recovery: what a refresh staged and did not publish goes, unless somebody may still be at it."""

import dataclasses

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.iceberg import CommitFailed, Iceberg
from catalog_kit.samples import REVENUE, TOP, TTL, create, lake, refresh, see
from catalog_kit.stream_tables import empty_namespaces

from headrace.catalog import Catalog, Publication, resource_of
from headrace.errors import EnvironmentFault
from headrace.names import LAKE, STAGING

LOG = lake("_headrace.revenue_log")


@pytest.fixture
def dirty(catalog: Catalog, iceberg: Iceberg) -> Catalog:
    """REVENUE published once and staged again; its log staged but never published; TOP clean."""
    create(catalog, log=LOG)
    create(catalog, TOP)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE, TOP))
    iceberg.commit(REVENUE, "half-done")
    iceberg.commit(LOG, "log-half-done")
    return catalog


def test_staging_goes_back_to_what_everybody_sees(dirty: Catalog, iceberg: Iceberg) -> None:
    assert dirty.dirty_staging() == (LOG, REVENUE)
    assert dirty.reset_staging() == (LOG, REVENUE)
    assert iceberg.row(REVENUE, STAGING) == iceberg.row(REVENUE)
    assert iceberg.pointer(LOG, STAGING) is None
    assert iceberg.pointer(TOP, STAGING) == "top-1"
    assert dirty.dirty_staging() == ()
    assert dirty.reset_staging() == ()


def test_so_does_what_a_replacement_took_away_before_it_ended(dirty: Catalog, iceberg: Iceberg) -> None:
    iceberg.drop(TOP, catalog=STAGING)
    assert dirty.dirty_staging() == (LOG, REVENUE, TOP)
    assert dirty.reset_staging([TOP]) == (TOP,)
    assert iceberg.row(TOP, STAGING) == iceberg.row(TOP)


def test_a_namespace_goes_with_its_last_table_unless_somebody_makes_one_in_it(dirty: Catalog, iceberg: Iceberg) -> None:
    green = lake("shop__v2.revenue")
    for namespace in ("shop", "shop__v2", "_headrace"):
        iceberg.create_namespace(namespace)
    with dirty.reading() as reader:
        assert empty_namespaces(reader) == {"shop__v2"}
    leases = dirty.acquire([resource_of(green)], "one", TTL)
    dirty.reset_staging()
    create(dirty, green)
    dirty.publish(refresh(dirty, iceberg, 1, green))
    with dirty.reading() as reader:
        assert empty_namespaces(reader) == set()
    dirty.publish(Publication(drops=(green,), deletes=(green,), leases=leases))
    assert iceberg.namespaces() == ["_headrace", "shop"]


def test_files_of_what_was_never_published_are_removed_later(dirty: Catalog, iceberg: Iceberg) -> None:
    """A replacement and a companion in the making have folders of their own; a refresh writes where others read."""
    dirty.reset_staging()
    folders = ("shop/revenue-aaaaaaaaaa", "shop/revenue-bbbbbbbbbb", "_headrace/shop_revenue_cccccccccc_log")
    old, new, log = (f"/lake/{folder}/metadata/1.json" for folder in folders)
    publication = refresh(dirty, iceberg, 2, REVENUE)
    iceberg.commit(REVENUE, old)
    swaps = (dataclasses.replace(publication.swaps[0], staged=old),)
    dirty.publish(dataclasses.replace(publication, swaps=swaps))
    before = {r.metadata_location for r in dirty.retired(dirty.now())}
    iceberg.commit(REVENUE, "/lake/shop/revenue-aaaaaaaaaa/metadata/2.json")
    assert dirty.reset_staging() == (REVENUE,)
    assert {r.metadata_location for r in dirty.retired(dirty.now())} == before
    iceberg.commit(REVENUE, new)
    iceberg.commit(LOG, log)
    assert dirty.reset_staging() == (LOG, REVENUE)
    assert {r.metadata_location for r in dirty.retired(dirty.now())} == before | {new, log}
    iceberg.commit(LOG, log)  # as what removes its files does
    assert dirty.reset_staging() == (LOG,)
    assert sorted(r.metadata_location for r in dirty.retired(dirty.now())) == sorted(before | {new, log})
    iceberg.commit(LOG, log, catalog=LAKE)  # somebody shows it after all
    assert {r.metadata_location for r in dirty.retired(dirty.now())} == before | {new}


def test_what_is_published_after_all_is_not_removed(dirty: Catalog, iceberg: Iceberg) -> None:
    """A mirror's first copy that is begun again is made in the same folder."""
    dirty.reset_staging()
    iceberg.drop(TOP)
    folder = "/lake/shop/revenue-aaaaaaaaaa/metadata"
    iceberg.commit(REVENUE, f"{folder}/1.json")
    dirty.reset_staging()
    assert f"{folder}/1.json" in {r.metadata_location for r in dirty.retired(dirty.now())}
    publication = refresh(dirty, iceberg, 2, REVENUE)
    iceberg.commit(REVENUE, f"{folder}/2.json")
    swap = dataclasses.replace(publication.swaps[0], staged=f"{folder}/2.json")
    dirty.publish(dataclasses.replace(publication, swaps=(swap,)))
    iceberg.drop(REVENUE)  # by somebody else; it can be repaired
    dirty.reset_staging()
    assert not {r for r in dirty.retired(dirty.now()) if r.folder in folder}


def test_files_that_another_pointer_leads_to_stay(dirty: Catalog, iceberg: Iceberg) -> None:
    """A promotion stages each table's contents under the other's name; what was dropped by others can be repaired."""
    green, at = lake("shop__v2.revenue"), "/lake/shop__v2/revenue-bbbbbbbbbb/metadata/1.json"
    create(dirty, green)
    publication = refresh(dirty, iceberg, 1, green)
    iceberg.commit(green, at)
    dirty.publish(dataclasses.replace(publication, swaps=(dataclasses.replace(publication.swaps[0], staged=at),)))
    iceberg.commit(REVENUE, at)
    dirty.reset_staging()
    assert at not in {r.metadata_location for r in dirty.retired(dirty.now())}
    iceberg.drop(green)
    assert dirty.reset_staging([green]) == (green,)
    assert at not in {r.metadata_location for r in dirty.retired(dirty.now())}


def test_tables_of_others_are_never_staged_nor_removed(dirty: Catalog, iceberg: Iceberg) -> None:
    """Under a name that nothing was published as, and in place of what was; they go away again, under another name."""
    for name in (REVENUE, LOG):
        iceberg.drop(name)
        iceberg.commit(name, f"/lake/theirs/{name.table}/metadata/1.json", catalog=LAKE)
    assert dirty.reset_staging() == (LOG, REVENUE)
    assert iceberg.pointer(LOG, STAGING) is None
    assert iceberg.pointer(REVENUE, STAGING) == "/lake/theirs/revenue/metadata/1.json"  # a FULL refresh may replace it
    for name in (REVENUE, LOG):
        iceberg.drop(name)
    dirty.reset_staging()
    assert iceberg.pointer(REVENUE, STAGING) is None
    assert dirty.retired(dirty.now()) == ()


def test_only_the_named_ones_whatever_their_catalog(dirty: Catalog) -> None:
    assert dirty.reset_staging([REVENUE.within(STAGING), TOP]) == (REVENUE,)
    assert dirty.dirty_staging() == (LOG,)


def test_another_ones_live_lease_protects_all_its_stored_tables(dirty: Catalog, clock: ManualClock) -> None:
    leases = dirty.acquire([resource_of(REVENUE)], "one", TTL)
    assert dirty.reset_staging() == ()
    clock.advance(TTL.total_seconds() + 1)
    assert dirty.reset_staging([REVENUE]) == (REVENUE,)
    dirty.release(leases)
    assert dirty.reset_staging() == (LOG,)


def test_a_lease_on_a_stored_table_alone_protects_it(dirty: Catalog) -> None:
    dirty.acquire([resource_of(LOG)], "one", TTL)
    assert dirty.reset_staging() == (REVENUE,)


def test_a_lease_protects_what_is_being_made_for_a_table(dirty: Catalog, iceberg: Iceberg) -> None:
    made = lake("_headrace.shop_third_0123456789_companion")
    iceberg.commit(made, "empty")
    leases = dirty.acquire([resource_of(lake("shop.third"))], "one", TTL)
    assert made not in dirty.reset_staging()
    dirty.release(leases)
    assert dirty.reset_staging() == (made,)


def test_our_own_lease_does_not_stop_us(dirty: Catalog) -> None:
    leases = dirty.acquire([resource_of(REVENUE)], "one", TTL)
    assert dirty.reset_staging(held=leases) == (LOG, REVENUE)


def test_a_table_reset_under_a_slow_refresh_cannot_be_published(dirty: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(dirty, iceberg, 2, REVENUE)
    dirty.reset_staging()
    with pytest.raises(EnvironmentFault, match="STAGING_CHANGED"):
        dirty.publish(publication)


def test_users_own_tables_are_not_ours_to_reset(dirty: Catalog, iceberg: Iceberg) -> None:
    iceberg.commit(lake("shop.orders"), "users", catalog=LAKE)
    dirty.reset_staging()
    assert iceberg.pointer(lake("shop.orders")) == "users"
    assert iceberg.pointer(lake("shop.orders"), STAGING) is None


def test_iceberg_notices_that_its_base_was_reset(dirty: Catalog, iceberg: Iceberg) -> None:
    """The kit's Iceberg commits by compare-and-set, as the real one does."""
    stale = Iceberg(iceberg._url)
    assert stale.pointer(REVENUE, STAGING) == "half-done"
    dirty.reset_staging()
    with pytest.raises(CommitFailed):
        stale.commit(REVENUE, "next", expected="half-done")
