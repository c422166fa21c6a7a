"""What one publication shows, and everything that makes it show nothing."""

import dataclasses
import datetime as dt

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, TTL, create, define, entry, lake, refresh, see
from catalog_kit.stream_tables import drop_stream_table, replace_stream_table

from headrace.catalog import (
    Catalog,
    Definition,
    FrontierMove,
    NewVersion,
    Observation,
    Publication,
    RefreshMode,
    Rename,
    Status,
    Swap,
    resource_of,
)
from headrace.errors import HeadraceError
from headrace.frontier import Frontier
from headrace.names import LAKE, STAGING

LOG = lake("_headrace.revenue_log")


@pytest.fixture
def ready(catalog: Catalog) -> Catalog:
    """Two stream tables over one source."""
    create(catalog, REVENUE, ORDERS, log=LOG)
    create(catalog, TOP, ORDERS)
    see(catalog)
    return catalog


def everything(catalog: Catalog) -> tuple[object, ...]:
    """All that readers see, to compare before and after."""
    with catalog.reading() as reader:
        return (
            reader.stream_tables(),
            reader.frontiers(),
            reader.newest_versions(),
            reader.publications(),
            reader.history(),
            reader.pointers(LAKE),
            reader.pointers(STAGING),
            reader.foreign_writes(),
        )


def refused(catalog: Catalog, publication: Publication) -> HeadraceError:
    """Publish something that must fail and change nothing."""
    before = everything(catalog)
    with pytest.raises(HeadraceError) as caught:
        catalog.publish(publication)
    assert everything(catalog) == before
    return caught.value


def test_a_group_becomes_visible_together(ready: Catalog, iceberg: Iceberg) -> None:
    record = ready.publish(refresh(ready, iceberg, 1, REVENUE, TOP))
    assert iceberg.row(REVENUE) == ("revenue-1", None, "TABLE")
    assert ready.frontiers() == {REVENUE: Frontier({ORDERS: 0}), TOP: Frontier({ORDERS: 0})}
    version = ready.newest_versions()[TOP]
    assert (version.version, version.snapshot_id, version.row_count) == (0, 1001, 1)
    assert (version.publication_id, version.committed_at) == (record.id, record.published_at)
    assert {t.status for t in ready.stream_tables()} == {Status.ACTIVE}
    assert {(e.stream, e.publication_id) for e in ready.history()} == {(REVENUE, record.id), (TOP, record.id)}
    assert ready.dirty_staging() == ()
    see(ready, ORDERS, 2)
    ready.publish(refresh(ready, iceberg, 2, REVENUE, TOP))
    assert iceberg.row(REVENUE) == ("revenue-2", "revenue-1", "TABLE")
    assert ready.frontier(TOP) == Frontier({ORDERS: 1})


def test_logs_and_companions_are_published_with_their_table(ready: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(ready, iceberg, 1, REVENUE)
    iceberg.commit(LOG, "log-1")
    ready.publish(dataclasses.replace(publication, swaps=(*publication.swaps, Swap(LOG, None, "log-1"))))
    assert ready.pointers(LAKE, [REVENUE, LOG, TOP]).keys() == {REVENUE, LOG}


def test_a_frontier_can_move_without_new_contents(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    see(ready, ORDERS, 2)
    ready.publish(Publication(frontiers=(FrontierMove(REVENUE, Frontier({ORDERS: 1})),)))
    assert ready.frontier(REVENUE) == Frontier({ORDERS: 1})
    assert ready.newest_versions()[REVENUE].version == 0
    assert iceberg.pointer(REVENUE) == "revenue-1"


def test_a_frontier_can_move_with_the_details_of_its_sources(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    before = ready.stream_table(REVENUE)
    see(ready, ORDERS, 2)
    ready.publish(Publication(frontiers=(FrontierMove(REVENUE, Frontier({ORDERS: 1}), details={"layout": 99}),)))
    after = ready.stream_table(REVENUE)
    assert after == dataclasses.replace(before, details={"layout": 99})
    assert ready.frontier(REVENUE) == Frontier({ORDERS: 1})


def test_a_companion_that_was_left_behind_is_remembered(ready: Catalog, iceberg: Iceberg) -> None:
    def moved(version: int, behind: bool | None) -> bool:
        see(ready, ORDERS, version)
        move = FrontierMove(REVENUE, Frontier({ORDERS: version - 1}), companion_behind=behind)
        ready.publish(Publication(frontiers=(move, FrontierMove(TOP, Frontier({ORDERS: version - 1})))))
        assert not ready.stream_table(TOP).companion_behind
        return ready.stream_table(REVENUE).companion_behind

    ready.publish(refresh(ready, iceberg, 1, REVENUE, TOP))
    assert not ready.stream_table(REVENUE).companion_behind
    asked = (True, None, True, False, None, False, True)
    assert [moved(number, behind) for number, behind in enumerate(asked, 2)] == [True] * 3 + [False] * 3 + [True]
    with pytest.raises(HeadraceError):
        ready.publish(Publication(frontiers=(FrontierMove(REVENUE, Frontier({ORDERS: 99}), companion_behind=False),)))
    assert ready.stream_table(REVENUE).companion_behind
    ready.alter_stream_table(REVENUE, refresh_mode=RefreshMode.FULL)
    assert ready.stream_table(REVENUE).companion_behind
    again = Definition(REVENUE, "SELECT 1", (ORDERS,))
    ready.publish(Publication(definitions=(again,)))
    assert not ready.stream_table(REVENUE).companion_behind


def test_maintenance_publishes_pointers_alone(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    iceberg.commit(REVENUE, "compacted")
    ready.publish(Publication(swaps=(Swap(REVENUE, "revenue-1", "compacted"),)))
    assert iceberg.pointer(REVENUE) == "compacted"
    assert ready.publish(Publication(swaps=(Swap(REVENUE, "compacted"),))).id == 3


def test_twice_is_once(ready: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(ready, iceberg, 1, REVENUE)
    assert ready.publication(publication.uuid) is None
    assert ready.settle(publication.uuid) is None
    record = ready.publish(publication)
    before = everything(ready)
    assert ready.publish(publication) == record
    assert everything(ready) == before
    assert ready.settle(publication.uuid) == ready.publication(publication.uuid) == record


def test_publication_times_do_not_go_back_where_clocks_differ_a_little(
    ready: Catalog, iceberg: Iceberg, clock: ManualClock
) -> None:
    first = ready.publish(refresh(ready, iceberg, 1, REVENUE))
    clock.advance(-60)
    assert ready.publish(refresh(ready, iceberg, 2, REVENUE)).published_at == first.published_at


def test_a_clock_that_was_wrong_is_not_followed(ready: Catalog, iceberg: Iceberg, clock: ManualClock) -> None:
    """By its time nothing that is published until then would ever be late."""
    clock.advance(18_000)
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    see(ready, ORDERS, 5)
    clock.advance(-18_000)
    right = ready.publish(refresh(ready, iceberg, 2, REVENUE))
    assert right.published_at == clock.now()
    with ready.reading() as reader:
        found = {name: reader.versions_as_of(clock.now())[name].version for name in (REVENUE,)}
    assert found == {REVENUE: 1}, "the last one by then"
    future = clock.now() + dt.timedelta(hours=5)
    (seen,) = ready.observe([Observation(ORDERS, 9, "uuid", committed_at=future)])
    assert seen.committed_at == clock.now()


def test_a_lost_lease_publishes_nothing(ready: Catalog, iceberg: Iceberg, clock: ManualClock) -> None:
    old = ready.acquire([resource_of(REVENUE), resource_of(TOP)], "one", TTL)
    publication = refresh(ready, iceberg, 1, REVENUE, TOP, leases=old)
    clock.advance(TTL.total_seconds() + 1)
    (new,) = ready.acquire([resource_of(TOP)], "two", TTL)
    assert refused(ready, publication).code == "LEASE_LOST"
    ready.release([new])
    assert refused(ready, publication).code == "LEASE_LOST"


def test_an_expired_lease_that_nobody_took_still_publishes(
    ready: Catalog, iceberg: Iceberg, clock: ManualClock
) -> None:
    leases = ready.acquire([resource_of(REVENUE)], "one", TTL)
    clock.advance(TTL.total_seconds() + 1)
    assert ready.publish(refresh(ready, iceberg, 1, REVENUE, leases=leases)).id == 1


def test_a_released_lease_publishes_nothing(ready: Catalog, iceberg: Iceberg) -> None:
    leases = ready.acquire([resource_of(REVENUE)], "one", TTL)
    publication = refresh(ready, iceberg, 1, REVENUE, leases=leases)
    ready.release(leases)
    assert refused(ready, publication).code == "LEASE_LOST"


def test_a_foreign_commit_during_the_refresh_is_never_overwritten(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE, TOP))
    publication = refresh(ready, iceberg, 2, REVENUE, TOP)
    iceberg.commit(TOP, "foreign", catalog=LAKE)
    error = refused(ready, publication)
    assert (error.code, error.retryable) == ("FOREIGN_WRITER", False)
    assert "shop.top" in error.message
    assert "shop.revenue" not in error.message
    assert iceberg.pointer(TOP) == "foreign"


def test_a_foreign_commit_between_refreshes_is_noticed_and_repaired_by_will(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE, TOP))
    assert ready.foreign_writes() == ()
    iceberg.commit(REVENUE, "foreign", catalog=LAKE)
    (write,) = ready.foreign_writes()
    assert (write.name, write.published, write.found) == (REVENUE, "revenue-1", "foreign")
    assert ready.foreign_writes([TOP]) == ()
    publication = refresh(ready, iceberg, 2, REVENUE)
    assert refused(ready, publication).code == "FOREIGN_WRITER"
    swaps = tuple(dataclasses.replace(s, overwrite_foreign=True) for s in publication.swaps)
    ready.publish(dataclasses.replace(publication, swaps=swaps))
    assert ready.foreign_writes() == ()
    assert iceberg.pointer(REVENUE) == "revenue-2"


def test_a_table_dropped_under_us_is_a_foreign_write(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    publication = refresh(ready, iceberg, 2, REVENUE)
    iceberg.drop(REVENUE)
    assert refused(ready, publication).code == "FOREIGN_WRITER"
    assert [w.found for w in ready.foreign_writes()] == [None]


def test_a_first_load_does_not_overwrite_a_table_that_appeared(ready: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(ready, iceberg, 1, REVENUE)
    iceberg.commit(REVENUE, "somebody's", catalog=LAKE)
    assert refused(ready, publication).code == "FOREIGN_WRITER"


def test_what_somebody_made_before_anything_was_published_is_neither_replaced_nor_dropped(
    ready: Catalog, iceberg: Iceberg
) -> None:
    iceberg.commit(REVENUE, "somebody's", catalog=LAKE)
    publication = refresh(ready, iceberg, 1, REVENUE)  # which began after it, and found it there
    swaps = tuple(dataclasses.replace(s, overwrite_foreign=True) for s in publication.swaps)
    assert [s.expected for s in swaps] == ["somebody's"]
    assert refused(ready, dataclasses.replace(publication, swaps=swaps)).code == "FOREIGN_WRITER"
    assert iceberg.pointer(REVENUE) == "somebody's"
    ready.publish(Publication(drops=(REVENUE,), deletes=(REVENUE,)))
    assert iceberg.pointer(REVENUE) == "somebody's"
    assert iceberg.pointer(REVENUE, catalog=STAGING) is None


def test_only_what_the_refresh_staged_is_published(ready: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(ready, iceberg, 1, REVENUE)
    iceberg.commit(REVENUE, "another")
    error = refused(ready, publication)
    assert (error.code, error.retryable) == ("STAGING_CHANGED", True)


@pytest.mark.parametrize("version", [0, 2])
def test_versions_are_contiguous(ready: Catalog, iceberg: Iceberg, version: int) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    assert refused(ready, Publication(versions=(NewVersion(REVENUE, version, 1),))).code == "PUBLICATION_INVALID"


def test_frontiers_never_go_back_nor_beyond_their_source(ready: Catalog, iceberg: Iceberg) -> None:
    see(ready, ORDERS, 2)
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    for frontier in ({ORDERS: 0}, {ORDERS: 2}, {ORDERS: -1}, {ITEMS: 0}):
        error = refused(ready, Publication(frontiers=(FrontierMove(REVENUE, Frontier(frontier)),)))
        assert error.code == "PUBLICATION_INVALID"


def test_a_frontier_may_name_a_version_of_the_same_publication(ready: Catalog, iceberg: Iceberg) -> None:
    create(ready, lake("shop.third"), REVENUE)
    publication = refresh(ready, iceberg, 1, REVENUE)
    third = FrontierMove(lake("shop.third"), Frontier({REVENUE: 0}))
    ready.publish(dataclasses.replace(publication, frontiers=(*publication.frontiers, third)))
    assert ready.frontier(third.stream) == third.frontier


def test_a_definition_changed_meanwhile_publishes_nothing(ready: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(ready, iceberg, 1, REVENUE)
    move = dataclasses.replace(publication.frontiers[0], generation=1)
    publication = dataclasses.replace(publication, frontiers=(move,))
    replace_stream_table(ready, define(REVENUE, ITEMS))
    error = refused(ready, publication)
    assert (error.code, error.retryable) == ("DEFINITION_CHANGED", True)


def test_a_table_dropped_meanwhile_publishes_nothing(ready: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(ready, iceberg, 1, REVENUE)
    drop_stream_table(ready, REVENUE)
    assert refused(ready, publication).code in ("STREAM_TABLE_NOT_FOUND", "PUBLICATION_INVALID")
    moved = dataclasses.replace(publication, versions=())
    assert refused(ready, moved).code == "STREAM_TABLE_NOT_FOUND"


def test_nothing_staged_is_our_mistake(ready: Catalog) -> None:
    assert refused(ready, Publication(swaps=(Swap(REVENUE, None),))).code == "PUBLICATION_INVALID"


def test_the_last_refusal_undoes_what_came_before_it(ready: Catalog, iceberg: Iceberg) -> None:
    publication = refresh(ready, iceberg, 1, REVENUE)
    bad = FrontierMove(TOP, Frontier({ORDERS: 5}))
    drops = dataclasses.replace(publication, frontiers=(*publication.frontiers, bad), deletes=(LOG,))
    assert refused(ready, drops).code == "PUBLICATION_INVALID"


def test_a_definition_and_its_first_contents_appear_together(catalog: Catalog, iceberg: Iceberg) -> None:
    see(catalog)
    publication = refresh(catalog, iceberg, 1, REVENUE)
    catalog.publish(dataclasses.replace(publication, definitions=(define(),)))
    made = catalog.stream_table(REVENUE)
    assert (made.status, made.generation) == (Status.ACTIVE, 1)
    see(catalog, ITEMS, 5)
    publication = refresh(catalog, iceberg, 2, REVENUE, sources=[ITEMS])
    catalog.publish(dataclasses.replace(publication, definitions=(define(REVENUE, ITEMS),)))
    assert (catalog.stream_table(REVENUE).id, catalog.stream_table(REVENUE).generation) == (made.id, 2)
    assert catalog.frontier(REVENUE) == Frontier({ITEMS: 0})


def test_a_drop_takes_definition_and_pointers_at_once(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    ready.publish(Publication(drops=(REVENUE,), deletes=(REVENUE, LOG), history=(entry(REVENUE),)))
    assert ready.find_stream_table(REVENUE) is None
    assert (iceberg.pointer(REVENUE), iceberg.pointer(REVENUE, STAGING)) == (None, None)
    assert ready.foreign_writes() == ()
    assert ready.history(REVENUE)[0].stream_id is None


def test_two_tables_swap_names(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE, TOP))
    ready.publish(Publication(renames=(Rename(REVENUE, TOP), Rename(TOP, REVENUE))))
    assert (iceberg.pointer(REVENUE), iceberg.pointer(TOP, STAGING)) == ("top-1", "revenue-1")
    assert (ready.foreign_writes(), ready.dirty_staging()) == ((), ())


def test_a_promotion_deletes_renames_and_swaps(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE, TOP))
    ready.publish(Publication(deletes=(REVENUE,), renames=(Rename(TOP, REVENUE),)))
    assert (iceberg.pointer(REVENUE), iceberg.pointer(TOP)) == ("top-1", None)


def test_a_rename_needs_a_table_and_a_free_name(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE, TOP))
    for rename in (Rename(REVENUE, TOP), Rename(LOG, ITEMS)):
        assert refused(ready, Publication(renames=(rename,))).code == "PUBLICATION_INVALID"


def test_more_names_than_a_query_lists(catalog: Catalog, iceberg: Iceberg) -> None:
    see(catalog)
    streams = [lake(f"many.t{i:03}") for i in range(250)]
    with catalog._database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO iceberg_tables VALUES "
            + ",".join(f"('staging', 'many', '{s.table}', '{s.table}-1', null, 'TABLE')" for s in streams)
        )
    catalog.publish(
        Publication(
            definitions=tuple(define(s) for s in streams[:3]),
            swaps=tuple(Swap(s, None) for s in streams),
            versions=tuple(NewVersion(s, 0, 1) for s in streams[:3]),
        )
    )
    assert len(catalog.pointers(LAKE, streams)) == 250
    assert set(catalog.pointers(LAKE)) == set(streams)
    assert catalog.dirty_staging() == ()


def test_readers_see_one_state_while_others_publish(ready: Catalog, iceberg: Iceberg) -> None:
    ready.publish(refresh(ready, iceberg, 1, REVENUE))
    with ready.reading() as reader:
        before = reader.newest_version(REVENUE)
        ready.publish(refresh(ready, iceberg, 2, REVENUE))
        assert reader.newest_version(REVENUE) == before
        assert reader.pointers()[REVENUE].metadata_location == "revenue-1"
        assert len(reader.history()) == 1
    assert ready.newest_versions()[REVENUE].version == 1
