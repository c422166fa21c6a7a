"""Greens beside public tables: groups of their own, whatever both read."""

from __future__ import annotations

from catalog_kit.samples import create, lake

from headrace.catalog import Catalog
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.schedule.options import DEPLOY_POOL

GREEN = {"deployment": "green"}


def units(catalog: Catalog) -> set[frozenset[str]]:
    cut = grouping({t.name: t for t in catalog.stream_tables()}, Defaults())
    return {frozenset(map(str, members)) for members in cut.units.members.values()}


def table(catalog: Catalog, name: str, *sources: TableName, green: bool = False, **options: str) -> TableName:
    create(catalog, lake(name), *sources, options=options, details=GREEN if green else {})
    return lake(name)


def test_greens_never_join_the_groups_of_public_tables(catalog: Catalog) -> None:
    a = lake("s.a")
    b, c = table(catalog, "s.b", a), table(catalog, "s.c", a)
    table(catalog, "s.d", b, c)
    new_b, new_c = table(catalog, "s__green.b", a, green=True), table(catalog, "s__green.c", a, green=True)
    table(catalog, "s__green.d", new_b, new_c, green=True)
    table(catalog, "s__green.e", new_b, c, green=True)  # meets where only one of the two is of its generation
    greens = frozenset({"s__green.b", "s__green.c", "s__green.d"})
    assert units(catalog) == {frozenset({"s.b", "s.c", "s.d"}), greens, frozenset({"s__green.e"})}


def test_greens_count_against_a_pool_of_their_own(catalog: Catalog) -> None:
    green = table(catalog, "s__green.b", lake("s.a"), green=True, pool="finance")
    public = table(catalog, "s.b", lake("s.a"), pool="finance")
    options = grouping({t.name: t for t in catalog.stream_tables()}, Defaults()).options
    assert (options[green].pool, options[public].pool) == (DEPLOY_POOL, "finance")


def test_declared_groups_are_of_one_generation(catalog: Catalog) -> None:
    for name, green in (("s.b", False), ("s.c", False), ("s__green.b", True), ("s__green.c", True)):
        table(catalog, name, lake("s.a"), green=green, refresh_group="both")
    assert units(catalog) == {frozenset({"s.b", "s.c"}), frozenset({"s__green.b", "s__green.c"})}
