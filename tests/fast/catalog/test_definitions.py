from dataclasses import replace

import pytest
from catalog_kit.clock import START, ManualClock
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, create, define, lake, refresh, see
from catalog_kit.stream_tables import drop_stream_table, readers, replace_stream_table

from headrace.catalog import Catalog, LogChange, Publication, RefreshMode, RelationKind, Status
from headrace.errors import EnvironmentFault, UserError
from headrace.names import TableName


def test_a_definition_comes_back_as_it_was_given(catalog: Catalog) -> None:
    details = {"columns": [{"name": "ünï", "type": "decimal(12,2)"}], "ansi": True, "z": 1, "a": None}
    companion, log = lake("_headrace.revenue_1_companion"), lake("_headrace.revenue_1_log")
    made = create(
        catalog,
        REVENUE,
        ORDERS,
        ITEMS,
        refresh_mode=RefreshMode.DIFFERENTIAL,
        schedule="1 minute",
        details=details,
        companion=companion,
        log=log,
    )
    assert catalog.stream_table(REVENUE) == made
    assert (made.name, made.sources, made.stored) == (REVENUE, (ORDERS, ITEMS), (REVENUE, companion, log))
    assert (made.refresh_mode, made.schedule) == (RefreshMode.DIFFERENTIAL, "1 minute")
    assert (made.details, list(made.details)) == (details, list(details))
    assert (made.generation, made.status, made.created_at) == (1, Status.NEW, START)


def test_what_was_altered_meanwhile_holds_where_nobody_gave_it(catalog: Catalog) -> None:
    create(catalog, REVENUE, ORDERS, schedule="1 minute")
    catalog.alter_stream_table(REVENUE, refresh_mode=RefreshMode.FULL, schedule="1 hour")
    read_before = define(REVENUE, ITEMS, schedule="1 minute")
    kept = replace_stream_table(catalog, replace(read_before, settings_kept=True))
    assert (kept.sources, kept.refresh_mode, kept.schedule) == ((ITEMS,), RefreshMode.FULL, "1 hour")
    given = replace_stream_table(catalog, read_before)
    assert (given.refresh_mode, given.schedule) == (RefreshMode.AUTO, "1 minute")


@pytest.mark.parametrize(
    "name",
    [
        TableName("lake", ("a", "b"), "c"),
        TableName("other", ("a",), "b"),
        TableName("other", ("x.y",), "ta`ble 1"),
        TableName("lake", ("with-dash",), "tbl-1"),
        TableName("other", (), "bare"),
    ],
)
def test_any_name_survives(catalog: Catalog, name: TableName) -> None:
    create(catalog, TOP, name)
    assert catalog.stream_table(TOP).sources == (name,)
    assert see(catalog, name) == 0
    assert catalog.newest_versions()[name].relation == name


def test_names_that_look_alike_stay_apart(catalog: Catalog) -> None:
    nested, foreign = TableName("lake", ("a", "b"), "c"), TableName("a", ("b",), "c")
    create(catalog, TOP, nested, foreign)
    assert see(catalog, nested, 1) == 0
    assert set(catalog.newest_versions()) == {nested}


def test_a_source_named_twice_is_one_dependency(catalog: Catalog) -> None:
    assert create(catalog, REVENUE, ORDERS, ITEMS, ORDERS).sources == (ORDERS, ITEMS)


def test_what_does_not_exist_is_named(catalog: Catalog) -> None:
    assert catalog.find_stream_table(REVENUE) is None
    for act in (
        lambda: catalog.stream_table(REVENUE),
        lambda: drop_stream_table(catalog, REVENUE),
        lambda: catalog.alter_stream_table(REVENUE, schedule="1 hour"),
        lambda: catalog.stop(REVENUE, "X", "y"),
        lambda: catalog.publish(Publication(logs=(LogChange(REVENUE, None),))),
    ):
        with pytest.raises(UserError) as caught:
            act()
        assert caught.value.code == "STREAM_TABLE_NOT_FOUND"
        assert "shop.revenue" in caught.value.message


def test_a_second_definition_of_a_name_is_refused(catalog: Catalog) -> None:
    create(catalog)
    with pytest.raises(UserError) as caught:
        create(catalog, REVENUE, ITEMS)
    assert caught.value.code == "STREAM_TABLE_EXISTS"
    assert catalog.stream_table(REVENUE).sources == (ORDERS,)
    assert {r.name for r in catalog.relations()} == {ORDERS, REVENUE}


def test_replacing_starts_again_but_keeps_identity_and_versions(catalog: Catalog, iceberg, clock: ManualClock) -> None:
    made = create(catalog)
    create(catalog, TOP, REVENUE)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    catalog.stop(REVENUE, "X", "y")
    clock.advance(5)
    replaced = replace_stream_table(catalog, define(REVENUE, ITEMS))
    assert (replaced.id, replaced.generation, replaced.status) == (made.id, 2, Status.NEW)
    assert (replaced.sources, replaced.stopped_code) == ((ITEMS,), None)
    assert replaced.created_at == START
    assert not catalog.frontier(REVENUE)
    assert catalog.newest_versions()[REVENUE].version == 0
    assert readers(catalog, REVENUE) == (TOP,)


def test_alter_changes_only_what_is_given(catalog: Catalog) -> None:
    made = create(catalog, schedule="1 minute", details={"a": 1})
    assert catalog.alter_stream_table(REVENUE, refresh_mode=RefreshMode.FULL).schedule == "1 minute"
    assert catalog.alter_stream_table(REVENUE, schedule="2 hours").refresh_mode is RefreshMode.FULL
    altered = catalog.alter_stream_table(REVENUE, clear_schedule=True, details={"b": 2})
    assert (altered.schedule, altered.details, altered.generation) == (None, {"b": 2}, made.generation)


def test_stopping(catalog: Catalog) -> None:
    create(catalog)
    catalog.stop(REVENUE, "COLUMN_DROPPED", "Column amount is gone.")
    stopped = catalog.stream_table(REVENUE)
    assert (stopped.status, stopped.stopped_code) == (Status.STOPPED, "COLUMN_DROPPED")
    assert stopped.stopped_reason == "Column amount is gone."


def test_a_log_can_be_set_and_taken_away(catalog: Catalog) -> None:
    companion, log = lake("_headrace.r_companion"), lake("_headrace.r_log")
    create(catalog, companion=companion)
    catalog.publish(Publication(logs=(LogChange(REVENUE, log),)))
    assert catalog.stream_table(REVENUE).stored == (REVENUE, companion, log)
    create(catalog, TOP, REVENUE)
    with pytest.raises(EnvironmentFault) as refused:  # somebody has begun to read it
        catalog.publish(Publication(logs=(LogChange(REVENUE, None),)))
    assert refused.value.code == "DEFINITION_CHANGED"
    drop_stream_table(catalog, TOP)
    catalog.create_sink("out", "uuid", "postgres", REVENUE, {}, None)
    with pytest.raises(EnvironmentFault, match="DEFINITION_CHANGED"):
        catalog.publish(Publication(logs=(LogChange(REVENUE, None),)))
    catalog.drop_sink("out")
    catalog.publish(Publication(logs=(LogChange(REVENUE, None),)))
    assert catalog.stream_table(REVENUE).stored == (REVENUE, companion)


def test_dependencies_and_consumers(catalog: Catalog) -> None:
    create(catalog, REVENUE, ORDERS, ITEMS)
    create(catalog, TOP, REVENUE, ORDERS)
    assert catalog.dependencies() == {REVENUE: (ORDERS, ITEMS), TOP: (REVENUE, ORDERS)}
    assert readers(catalog, ORDERS) == (REVENUE, TOP)
    assert readers(catalog, REVENUE) == (TOP,)
    assert readers(catalog, lake("no.such")) == ()
    kinds = {r.name: r.kind for r in catalog.relations()}
    assert kinds == {
        ORDERS: RelationKind.SOURCE,
        ITEMS: RelationKind.SOURCE,
        REVENUE: RelationKind.STREAM,
        TOP: RelationKind.STREAM,
    }


def test_a_drop_keeps_history(catalog: Catalog, iceberg) -> None:
    create(catalog)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    before = catalog.stream_table(REVENUE)
    drop_stream_table(catalog, REVENUE)
    assert catalog.stream_tables() == ()
    assert REVENUE not in catalog.newest_versions()
    assert [e.stream for e in catalog.history(REVENUE)] == [REVENUE]
    assert catalog.last_refreshes() == {}
    assert catalog.foreign_writes() == ()
    assert create(catalog).id > before.id


def test_a_dropped_relation_that_is_read_stays_as_a_source(catalog: Catalog, iceberg) -> None:
    create(catalog)
    create(catalog, TOP, REVENUE)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    drop_stream_table(catalog, REVENUE)
    assert catalog.newest_versions()[REVENUE].version == 0
    assert {r.name: r.kind for r in catalog.relations()}[REVENUE] is RelationKind.SOURCE
    again = create(catalog)
    assert {r.name: r.kind for r in catalog.relations()}[REVENUE] is RelationKind.STREAM
    assert again.status is Status.NEW
    assert readers(catalog, REVENUE) == (TOP,)


def test_dropping_a_chain_at_once_leaves_nothing(catalog: Catalog) -> None:
    create(catalog)
    create(catalog, TOP, REVENUE)
    catalog.publish(Publication(drops=(REVENUE, TOP)))
    assert {r.name for r in catalog.relations()} == {ORDERS}
