"""Mirrors of one database: what reads several of them must show its transactions whole."""

from kit.pipelines import PublishingWorker, define, full, scheduler

from headrace.catalog import Mirror
from headrace.refresh.groups.grouping import Defaults, grouping


def units(catalog):
    with catalog.reading() as reader:
        tables, databases = {t.name: t for t in reader.stream_tables()}, reader.sources()
    return {tuple(n.table for n in names) for names in grouping(tables, Defaults(), databases).units.members.values()}


def source(catalog, name, *mirrors):
    catalog.create_source(
        name,
        "postgres",
        {"url": "postgresql://db/shop"},
        [Mirror(full(m), full(f"{m}_log")) for m in mirrors],
    )


def test_ways_from_two_mirrors_of_a_database_that_meet_are_one_group(lake_, catalog):
    source(catalog, "shop", "orders", "customers")
    define(catalog, "b: orders; d: b customers; x: orders")
    assert units(catalog) == {("b", "d"), ("x",)}
    define(catalog, "c: customers; e: b c")
    assert {frozenset(names) for names in units(catalog)} == {frozenset("bcde"), frozenset("x")}


def test_mirrors_of_two_databases_have_nothing_in_common(lake_, catalog):
    source(catalog, "shop", "orders")
    source(catalog, "crm", "customers")
    define(catalog, "b: orders; d: b customers")
    assert units(catalog) == {("b",), ("d",)}


def test_reading_two_mirrors_at_once_is_no_diamond(lake_, catalog):
    source(catalog, "shop", "orders", "customers")
    define(catalog, "b: orders customers; d: b")
    with catalog.reading() as reader:
        tables, databases = {t.name: t for t in reader.stream_tables()}, reader.sources()
    assert grouping(tables, Defaults(), databases).meetings.bottoms == frozenset()


def test_who_refreshes_by_schedule_keeps_them_together(lake_, catalog):
    source(catalog, "shop", "orders", "customers")
    define(catalog, "b: orders; d: b customers")
    one = scheduler(catalog, PublishingWorker(lake_, catalog))
    assert [p.tables for p in one.plan()] == [("s.b", "s.d")]
