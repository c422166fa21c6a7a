import datetime as dt

import pytest
from catalog_kit.clock import START, ManualClock
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, create, refresh, see

from headrace.catalog import Catalog, Observation
from headrace.errors import UserError


def test_a_head_is_numbered_once(catalog: Catalog) -> None:
    first = catalog.observe([Observation(ORDERS, 7, "u", row_count=3, schema={"columns": ["id"]})])[0]
    assert (first.version, first.snapshot_id, first.row_count, first.committed_at) == (0, 7, 3, START)
    again = catalog.observe([Observation(ORDERS, 7, "u")])[0]
    assert again == first
    assert catalog.versions(ORDERS) == (first,)


def test_a_rollback_is_a_new_version_of_the_old_snapshot(catalog: Catalog) -> None:
    assert [see(catalog, ORDERS, s) for s in (1, 2, 1, 1)] == [0, 1, 2, 2]
    assert [v.snapshot_id for v in catalog.versions(ORDERS)] == [1, 2, 1]


def test_an_empty_table_has_a_version_without_a_snapshot(catalog: Catalog) -> None:
    assert [see(catalog, ORDERS, s) for s in (None, None, 5, None)] == [0, 0, 1, 2]


def test_a_recreated_table_is_told_even_when_it_is_empty(catalog: Catalog) -> None:
    catalog.observe([Observation(ORDERS, None, "first")])
    seen = catalog.observe([Observation(ORDERS, None, "second")])[0]
    assert (seen.version, seen.table_uuid) == (1, "second")
    assert [v.table_uuid for v in catalog.versions(ORDERS)] == ["first", "second"]
    unknown = catalog.observe([Observation(ORDERS, None)])[0]
    assert unknown == seen


def test_several_heads_at_once_and_one_of_them_twice(catalog: Catalog) -> None:
    seen = catalog.observe([Observation(ORDERS, 1), Observation(ITEMS, 5), Observation(ORDERS, 2)])
    assert [(v.relation, v.version) for v in seen] == [(ORDERS, 0), (ITEMS, 0), (ORDERS, 1)]
    assert catalog.observe([]) == ()


def test_what_was_seen_of_a_table_is_kept(catalog: Catalog) -> None:
    catalog.observe([Observation(ORDERS, 1, "u", schema={"columns": ["a"]})])
    catalog.observe([Observation(ORDERS, 1)])
    assert catalog.relations()[0].schema == {"columns": ["a"]}
    catalog.observe([Observation(ORDERS, 1, schema={"columns": ["a", "b"]})])
    relation = catalog.relations()[0]
    assert (relation.schema, relation.table_uuid) == ({"columns": ["a", "b"]}, "u")
    assert len(catalog.versions(ORDERS)) == 1


def test_versions_are_found_by_number(catalog: Catalog) -> None:
    for snapshot in (10, 11, 12):
        see(catalog, ORDERS, snapshot)
    see(catalog, ITEMS, 20)
    assert catalog.version_at(ORDERS, 1).snapshot_id == 11
    assert catalog.version_at(ORDERS, 9) is None
    found = catalog.versions_at({ORDERS: 2, ITEMS: 0, REVENUE: 0})
    assert {n: v.snapshot_id for n, v in found.items()} == {ORDERS: 12, ITEMS: 20}
    assert {n: v.version for n, v in catalog.newest_versions().items()} == {ORDERS: 2, ITEMS: 0}
    assert [v.version for v in catalog.versions(ORDERS, after=0)] == [1, 2]
    with catalog.reading() as reader:
        each = reader.each_version_at({ORDERS: {0, 2, 9}, ITEMS: {0, 1}, REVENUE: {0}, TOP: ()})
    assert sorted((v.relation.table, v.version, v.snapshot_id) for v in each) == [
        ("items", 0, 20),
        ("orders", 0, 10),
        ("orders", 2, 12),
    ]


def test_the_past_by_time_and_by_publication(catalog: Catalog, iceberg, clock: ManualClock) -> None:
    create(catalog)
    create(catalog, TOP, ORDERS)
    see(catalog, ORDERS, 1)
    clock.advance(10)
    first = catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    clock.advance(10)
    see(catalog, ORDERS, 2)
    second = catalog.publish(refresh(catalog, iceberg, 2, REVENUE, TOP))
    assert REVENUE not in catalog.versions_as_of(START)
    assert catalog.versions_as_of(START + dt.timedelta(seconds=15))[REVENUE].version == 0
    assert catalog.versions_as_of(clock.now())[REVENUE].version == 1
    assert {n: v.version for n, v in catalog.versions_as_of(first.id).items()} == {ORDERS: 0, REVENUE: 0}
    assert {n: v.version for n, v in catalog.versions_as_of(second.id).items()} == {ORDERS: 1, REVENUE: 1, TOP: 0}
    assert catalog.publications() == (second, first)
    assert catalog.publications(1) == (second,)
    with pytest.raises(UserError) as caught:
        catalog.versions_as_of(99)
    assert caught.value.code == "PUBLICATION_NOT_FOUND"


def test_when_snapshots_were_shown_first(catalog: Catalog, clock: ManualClock) -> None:
    times = {}
    for snapshot in (7, 8, 9):
        see(catalog, ORDERS, snapshot)
        times[snapshot] = catalog.versions_as_of(clock.now())[ORDERS].committed_at
        clock.advance(10)
    with catalog.reading() as reader:
        assert reader.first_shown(ORDERS, {7, 9, 11}) == {7: times[7], 9: times[9]}
        assert reader.first_shown(ITEMS, {7}) == {}
        assert reader.first_shown(ORDERS, range(10**4)) == times


def test_times_that_name_no_zone_are_refused(catalog: Catalog) -> None:
    with pytest.raises(Exception, match="no time zone"):
        catalog.observe([Observation(ORDERS, 1, committed_at=dt.datetime(2026, 1, 1))])
    there = dt.datetime(2026, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    seen = catalog.observe([Observation(ORDERS, 1, committed_at=there)])[0]
    stored = catalog.version_at(ORDERS, 0).committed_at
    assert seen.committed_at == stored == there
    assert stored.tzinfo is dt.UTC


def test_the_first_version_after_each_that_is_reflected(catalog: Catalog, iceberg, clock: ManualClock) -> None:
    create(catalog)
    create(catalog, TOP, ORDERS)
    see(catalog, ORDERS, 1)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    times = {0: clock.now()}
    for number in (1, 2, 3):
        clock.advance(10)
        times[number] = clock.now()
        see(catalog, ORDERS, number + 1)
        if number == 1:
            catalog.publish(refresh(catalog, iceberg, 2, TOP))
    with catalog.reading() as reader:
        assert reader.first_unreflected({ORDERS}) == {(ORDERS, 0): times[1], (ORDERS, 1): times[2]}
        assert reader.first_unreflected(()) == {}
        first = [reader.first_version_after(ORDERS, after) for after in (None, 0, 2, 3)]
        assert [version and version.version for version in first] == [0, 1, 3, None]
